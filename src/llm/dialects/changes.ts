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

export class ChangeLog implements Changes {
  readonly #mode: TranslationMode;
  readonly #notes = new Set<string>();
  readonly #dropped = new Set<string>();

  constructor(mode: TranslationMode) {
    this.#mode = mode;
  }

  get notes(): readonly string[] {
    return [...this.#notes];
  }

  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** Notes a change. A repeated note counts once. */
  note(text: string): void {
    this.#notes.add(text);
  }

  /** Notes a field that is left out in both modes, because that does not affect the answer. */
  drop(param: string, reason: string): void {
    this.#dropped.add(param);
    this.#notes.add(`${param} dropped: ${reason}`);
  }

  /**
   * Notes a hint that the target cannot express.
   *
   * @param why e.g. `has no equivalent at OpenAI`
   * @throws BadRequestError if the ModelProvider's translation is strict
   */
  lose(param: string, why: string): void {
    if (this.#mode === "strict") throw unsupported(param, why);
    this.#dropped.add(param);
    this.#notes.add(`${param} dropped: it ${why}`);
  }
}

export function unsupported(param: string, why: string): BadRequestError {
  return new BadRequestError(
    `${param} ${why}; remove it or choose a model whose provider supports it`,
    param,
    "unsupported_by_upstream",
  );
}
