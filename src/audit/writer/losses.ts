/** Counts of records that could not be written, until a CHAIN.GAP record has reported them. */
import type { AuditValue } from "../event.ts";

export interface Losses {
  readonly byType: ReadonlyMap<string, number>;
  readonly since: string;
}

/** Number of types that are counted separately; further types are counted together. */
const MAX_TYPES = 100;

const OTHER = "other";

export class LossTally {
  #byType = new Map<string, number>();
  #since = "";

  get empty(): boolean {
    return this.#byType.size === 0;
  }

  add(type: string, time: string): void {
    if (this.empty) this.#since = time;
    const name = this.#byType.has(type) || this.#byType.size < MAX_TYPES ? type : OTHER;
    this.#byType.set(name, (this.#byType.get(name) ?? 0) + 1);
  }

  /** Returns the counts and resets them. */
  take(): Losses {
    const losses = { byType: this.#byType, since: this.#since };
    this.#byType = new Map();
    return losses;
  }

  /** Restores counts that could not be reported. */
  putBack(losses: Losses): void {
    const later = this.#byType;
    this.#byType = new Map(losses.byType);
    this.#since = losses.since;
    for (const [type, count] of later)
      this.#byType.set(type, (this.#byType.get(type) ?? 0) + count);
  }
}

export function gapFields(
  { byType, since }: Losses,
  until: string,
  reason: string,
): { readonly [key: string]: AuditValue } {
  const lost = [...byType.values()].reduce((sum, count) => sum + count, 0);
  return { lost, byType: Object.fromEntries(byType), since, until, reason };
}
