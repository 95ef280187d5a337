/** Records that could not be kept, until a CHAIN.GAP record has told of them. */
import type { AuditValue } from "./event.ts";

export interface Losses {
  readonly byType: ReadonlyMap<string, number>;
  readonly since: string;
}

/** Types beyond this many are told together. */
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

  /** What is to be told; counting begins anew. */
  take(): Losses {
    const losses = { byType: this.#byType, since: this.#since };
    this.#byType = new Map();
    return losses;
  }

  /** Telling failed. */
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
