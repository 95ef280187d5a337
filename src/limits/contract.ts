/**
 * What limits promise to those who ask: admit before a call, settle after it. Who is limited, and
 * how much, is the caller's to say; here are only counters, windows and leases.
 *
 * All that one call touches is in one *scope* (`agent/<namespace>/<name>`,
 * `external/<namespace>/<provider>`), which is one hash slot of the store. In a scope there are
 * *accounts*, each with counters of its own (`agent`; `provider` and `key/<name>`).
 */

export type Unit = "tokens" | "requests" | "microUsd";

export type Check =
  /** At most `limit` admissions in any `windowMs`. */
  | {
      readonly kind: "rate";
      readonly account: string;
      readonly limit: number;
      readonly windowMs: number;
    }
  /** At most `limit` leases at once. */
  | { readonly kind: "concurrency"; readonly account: string; readonly limit: number }
  /** Used, reserved and this reservation are at most `limit` in a UTC day. */
  | {
      readonly kind: "daily";
      readonly account: string;
      readonly unit: Unit;
      readonly limit: number;
    };

/** Whole numbers from 0 to 2^53. */
export interface Amounts {
  readonly tokens: number;
  /** Millionths of a US dollar. */
  readonly microUsd: number;
  readonly requests: number;
}

export interface AdmitRequest {
  /** Unique over all processes and time: it names the lease in the store. */
  readonly id: string;
  readonly scope: string;
  /** All that the call counts on, whether a check looks at them or not. */
  readonly accounts: readonly string[];
  /** Of those accounts. The first that refuses is the one that is reported. */
  readonly checks: readonly Check[];
  /** Taken from each account until the call is settled. */
  readonly reserve: Amounts;
  /**
   * Reserved instead of `reserve` where no daily limit is near: a guess at what {@link
   * Limits.reserve} will ask for, so that the store need not be asked twice. Not below `reserve`.
   */
  readonly expect?: Amounts;
}

export type Admission =
  | { readonly kind: "admitted"; readonly lease: Lease }
  | {
      readonly kind: "refused";
      readonly check: Check;
      /** What is spent: of the day, in the window, or 0 for concurrency. */
      readonly used: number;
      /** What calls under way have reserved, or how many there are. */
      readonly reserved: number;
      readonly retryAfterMs: number;
    };

/**
 * The right to one call. Renewed in the background until it is settled; expires in the store when
 * its process dies.
 */
export interface Lease {
  readonly id: string;
  readonly scope: string;
  /** The UTC day that the call counts into, `2026-11-21`. */
  readonly day: string;
}

export interface Usage extends Amounts {
  /** Its model has no price: the cost in it is not all of it. */
  readonly unpriced: boolean;
}

export interface Subject {
  readonly scope: string;
  readonly account: string;
}

export interface AccountUsage extends Amounts {
  readonly unpricedRequests: number;
  readonly inFlight: number;
}

export interface Limits {
  /**
   * Never rejects. Does not wait for a store that is slow or away. At once where no store is asked.
   */
  admit(request: AdmitRequest): Admission | Promise<Admission>;
  /**
   * Raises what a lease has reserved to `amounts`, where the daily ones of `checks` allow it. A
   * refusal leaves the lease as it was: it still has to be settled. Otherwise as {@link admit}.
   */
  reserve(lease: Lease, checks: readonly Check[], amounts: Amounts): Admission | Promise<Admission>;
  /**
   * Once per lease; what was really used. All zero gives everything back; a failed call still
   * counts as a request if `requests: 1` is passed. Never throws, does not wait for the store.
   * Settling twice does nothing.
   */
  settle(lease: Lease, used: Usage): void;
  /**
   * Usage of a call that needed no admission, of the UTC day of `admittedAt` (ms since the epoch).
   */
  record(scope: string, accounts: readonly string[], used: Usage, admittedAt: number): void;
  /**
   * Today's usage, in the order asked: of all processes when the store is up, else what this one
   * knows.
   */
  usage(subjects: readonly Subject[]): Promise<readonly AccountUsage[]>;
  /** Writes what is pending, for a second at most. */
  close(): Promise<void>;
}
