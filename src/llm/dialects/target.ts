/** What a request serialiser is told and what it gives. */
export interface Target {
  readonly model: string;
  readonly stream: boolean;
}

export interface Serialised {
  readonly body: object;
  /** What was dropped or changed in a documented way, for the log. */
  readonly notes: string[];
}
