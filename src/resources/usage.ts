/** Usage that the status of an object shows, and the counters that it is read from. */

/** Today's usage (UTC), in the fields of a status. */
export interface ObjectUsage {
  readonly tokensToday: number;
  readonly requestsToday: number;
  /** US dollars, for models with a price. */
  readonly costTodayUSD?: number | undefined;
  /** Requests to models without a price. */
  readonly unpricedToday?: number | undefined;
  readonly inFlight?: number | undefined;
}

/** What the guards of a GuardBinding found, since their processes started. */
export interface GuardUsage {
  /** Scans of a call's texts. */
  readonly checks: number;
  /** Checks that found an injection or a jailbreak. */
  readonly flagged: number;
  /** Checks without a verdict, because the classifier gave no answer. */
  readonly unavailable: number;
}

/** The counter whose usage of today is shown in an object's status. */
export type UsageCounter =
  /** The calls of the Agent itself. */
  | { readonly kind: "agent" }
  /** All external calls of the ModelProvider itself. */
  | { readonly kind: "model-provider" }
  /** All external calls of the Provider itself. */
  | { readonly kind: "provider" }
  /** The calls of the AccessKey itself, at a ModelProvider of its namespace. */
  | { readonly kind: "access-key"; readonly modelProvider: string }
  /** The calls of the AccessKey itself, at a Provider of its namespace. */
  | { readonly kind: "access-key"; readonly provider: string };
