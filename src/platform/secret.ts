/**
 * A secret value that cannot be shown by accident: its `toString`, JSON and inspect forms are
 * redacted. Only {@link Secret.reveal} returns the value; search for its calls to find every use of
 * a secret.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the value itself, only for the header that carries it upstream. */
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
