/** Input and output of a request serialiser. */
export interface TranslationTarget {
  readonly model: string;
  readonly stream: boolean;
}

export interface Serialised {
  readonly body: object;
  /** Documented omissions and changes, for the log. */
  readonly notes: string[];
}
