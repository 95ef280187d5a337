/**
 * The contract of limits: admit before a call, settle after it. The caller of this interface
 * decides who is limited and how much; limits only know counters, windows and leases.
 *
 * Everything that one call touches is in one *scope* (`agent/<namespace>/<name>`,
 * `external/<namespace>/<provider>`), which is one hash slot of the store. A scope has *accounts*,
 * each with its own counters (`agent`; `provider` and `key/<name>`).
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
  /** The sum of used, reserved and this reservation is at most `limit` in a UTC day. */
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
  /** Unique across all processes and time: identifies the lease in the store. */
  readonly id: string;
  readonly scope: string;
  /** All accounts that count the call, whether or not a check uses them. */
  readonly accounts: readonly string[];
  /** Checks on those accounts. The first one that refuses is reported. */
  readonly checks: readonly Check[];
  /** Reserved in each account until the call is settled. */
  readonly reserve: Amounts;
  /**
   * Reserved instead of `reserve` if no daily limit is near: an estimate of the later {@link
   * Limits.reserve}, to save a second call to the store. Not below `reserve`.
   */
  readonly expect?: Amounts;
}

export type Admission =
  | { readonly kind: "admitted"; readonly lease: Lease }
  | {
      readonly kind: "refused";
      readonly check: Check;
      /** Amount used in the day or in the window; 0 for concurrency. */
      readonly used: number;
      /** Amount that calls under way have reserved, or their number. */
      readonly reserved: number;
      readonly retryAfterMs: number;
    };

/**
 * The right to make one call. Renewed in the background until it is settled; expires in the store
 * when its process dies.
 */
export interface Lease {
  readonly id: string;
  readonly scope: string;
  /** The UTC day to which the call belongs, `2026-11-21`. */
  readonly day: string;
}

export interface CountedUsage extends Amounts {
  /** The model has no price: the cost is incomplete. */
  readonly unpriced: boolean;
}

/** Returns the whole reservation of a lease. */
export const NOTHING_USED: CountedUsage = {
  tokens: 0,
  microUsd: 0,
  requests: 0,
  unpriced: false,
};

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
   * Never rejects. Does not wait for a slow or unavailable store. Synchronous if no store is asked.
   */
  admit(request: AdmitRequest): Admission | Promise<Admission>;
  /**
   * Raises the reservation of a lease to `amounts`, if the daily limits in `checks` allow it. A
   * refusal leaves the lease unchanged; it still has to be settled. Otherwise like {@link admit}.
   */
  reserve(lease: Lease, checks: readonly Check[], amounts: Amounts): Admission | Promise<Admission>;
  /**
   * Settles a lease with the amounts that were actually used; called once per lease. All zero
   * returns the whole reservation; a failed call still counts as a request if `requests: 1` is
   * passed. Never throws and does not wait for the store. Settling twice does nothing.
   */
  settle(lease: Lease, used: CountedUsage): void;
  /**
   * Records the usage of a call that needed no admission, in the UTC day of `admittedAt` (ms since
   * the epoch).
   */
  record(scope: string, accounts: readonly string[], used: CountedUsage, admittedAt: number): void;
  /**
   * Returns today's usage in the order of `subjects`: of all processes if the store is up, else as
   * known to this one.
   */
  usage(subjects: readonly Subject[]): Promise<readonly AccountUsage[]>;
  /** Writes pending changes, for a second at most. */
  close(): Promise<void>;
}
