/**
 * A secret value that cannot be shown by accident: its `toString`, JSON and inspect forms are
 * redacted. Only {@link Secret.reveal} gives the value; grep for it to see every place a secret
 * leaves.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself: for the header that carries it upstream, and nothing else. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[redacted]";
  }

  toJSON(): string {
    return "[redacted]";
  }

  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[redacted]";
  }
}
