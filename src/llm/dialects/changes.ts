/**
 * ChangeLog collects what a translation changed or left out. The gateway's log shows it to the
 * operator, and the response header `x-svc-dropped` to the client.
 */
import type { TranslationMode } from "../../policy/snapshot.ts";
import { BadRequestError } from "./dialect.ts";

export interface Changes {
  /** One line for each documented change or omission. */
  readonly notes: readonly string[];
  /** Fields of the client's request that the provider did not receive, e.g. `messages[0].name`. */
  readonly dropped: readonly string[];
}

export const UNCHANGED: Changes = { notes: [], dropped: [] };

/** Maximum number of dropped fields that are named: a body may have 200,000. */
export const MAX_NAMED = 64;

/** Maximum number of characters of a named field: a body may hold one of many MiB. */
const MAX_NAME = 256;

/** Returns a short name. The copy does not keep the long one in memory while the call lives. */
function shortened(param: string): string {
  if (param.length <= MAX_NAME) return param;
  return `${Buffer.from(param.slice(0, MAX_NAME), "utf16le").toString("utf16le")}...`;
}

export class ChangeLog implements Changes {
  readonly #mode: TranslationMode;
  readonly #notes = new Set<string>();
  readonly #dropped = new Set<string>();
  #unnamed = 0;

  constructor(mode: TranslationMode) {
    this.#mode = mode;
  }

  get notes(): readonly string[] {
    return this.#unnamed === 0
      ? [...this.#notes]
      : [...this.#notes, `${this.#unnamed} more fields dropped`];
  }

  /** Ends with `...` if more fields were dropped than are named. */
  get dropped(): readonly string[] {
    return this.#unnamed === 0 ? [...this.#dropped] : [...this.#dropped, "..."];
  }

  /** Whether a further hint is dropped without being named: its reason is then not needed. */
  get isFull(): boolean {
    return this.#mode === "lenient" && this.#dropped.size >= MAX_NAMED;
  }

  /** Notes a change. A repeated note counts once. */
  note(text: string): void {
    this.#notes.add(text);
  }

  /** Notes a field that is left out in both modes, because that does not affect the answer. */
  drop(param: string, reason: string): void {
    this.#drop(param, reason);
  }

  /**
   * Notes a hint that the target cannot express.
   *
   * @param why e.g. `has no equivalent at OpenAI`
   * @throws BadRequestError if the ModelProvider's translation is strict
   */
  lose(param: string, why: string): void {
    if (this.#mode === "strict") throw unsupported(param, why);
    this.#drop(param, `it ${why}`);
  }

  #drop(param: string, reason: string): void {
    if (this.#dropped.size >= MAX_NAMED) {
      this.#unnamed += 1;
      return;
    }
    const name = shortened(param);
    this.#dropped.add(name);
    this.#notes.add(`${name} dropped: ${reason}`);
  }
}

export function unsupported(param: string, why: string): BadRequestError {
  return new BadRequestError(
    `${param} ${why}; remove it or choose a model whose provider supports it`,
    param,
    "unsupported_by_upstream",
  );
}
