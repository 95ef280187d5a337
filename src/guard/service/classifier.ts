/** The classifier that the guard service serves, of any type. */
import type { ClassifierType } from "../../policy/snapshot.ts";
import type { Scores } from "../protocol.ts";

export const CLASSIFIER_TYPES: readonly ClassifierType[] = [
  "stub",
  "promptGuard",
  "llamaGuard",
  "custom",
];

export interface Classifier {
  readonly type: ClassifierType;
  /** Name of its model; undefined if it has none. */
  readonly model: string | undefined;
  /**
   * Rejects with a {@link ClassifierError} if the text cannot be classified, and with the signal's
   * reason if it is aborted.
   */
  classify(text: string, signal: AbortSignal): Promise<Scores>;
  close(): Promise<void>;
}

/** Callbacks by which a classifier reports its work. */
export interface ClassifierReport {
  /** The model has run on a number of windows at once. */
  batch(windows: number): void;
}

/** ClassifierError is the failure to classify one text. Its message has nothing of the text. */
export class ClassifierError extends Error {
  /** HTTP status that the guard service answers. */
  readonly status: 500 | 502 | 504;

  constructor(status: 500 | 502 | 504, message: string) {
    super(message);
    this.name = "ClassifierError";
    this.status = status;
  }
}

/** ClassifierSetupError says why a classifier cannot start, and what to do. */
export class ClassifierSetupError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ClassifierSetupError";
  }
}
