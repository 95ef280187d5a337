/** A stream reader that removes the keys of its call. */
import type { StreamOutcome, StreamReader, Usage } from "../dialects/dialect.ts";
import type { KeyRedactor } from "./key-redactor.ts";

export class RedactingReader implements StreamReader {
  readonly #reader: StreamReader;
  readonly #redactor: KeyRedactor;
  #failed = false;

  /** @param reader returns only whole events, so that a key is never split */
  constructor(reader: StreamReader, redactor: KeyRedactor) {
    this.#reader = reader;
    this.#redactor = redactor;
  }

  push(chunk: Buffer): Buffer {
    return this.#clean(this.#reader.push(chunk));
  }

  end(): Buffer {
    return this.#clean(this.#reader.end());
  }

  get outcome(): StreamOutcome {
    return this.#reader.outcome;
  }

  get usage(): Usage | undefined {
    return this.#reader.usage;
  }

  get usageIsFinal(): boolean {
    return this.#reader.usageIsFinal;
  }

  get outputBytes(): number {
    return this.#reader.outputBytes;
  }

  get outputEvents(): number {
    return this.#reader.outputEvents;
  }

  get sawContent(): boolean {
    return this.#reader.sawContent;
  }

  #clean(block: Buffer): Buffer {
    if (block.length === 0) return block;
    // The block with the error, and the provider's data after it.
    this.#failed ||= this.#reader.outcome.kind === "error";
    return this.#failed ? this.#redactor.events(block) : this.#redactor.answer(block);
  }
}
