/** Input of a request serialiser, besides the request. */
import type { ChangeLog } from "./changes.ts";

export interface TranslationTarget {
  readonly model: string;
  readonly stream: boolean;
  /** Receives what was changed or left out. */
  readonly changes: ChangeLog;
}
