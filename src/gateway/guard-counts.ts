/** Counts of the checks of guards, for the statuses of GuardBindings. */
import type { GuardUsage } from "../resources/usage.ts";

/** Checks of a GuardBinding by their result, since this process started. */
export type ChecksByLabel = Readonly<
  Record<"benign" | "injection" | "jailbreak" | "unavailable", number>
>;

/** Returns the checks by `<namespace>/<name>` of the GuardBinding; one without checks is absent. */
export type GuardCountsOf = () => ReadonlyMap<string, ChecksByLabel>;

/** Returns what the status of a GuardBinding shows, for the checks of one or several processes. */
export function guardUsage(counts: readonly (ChecksByLabel | undefined)[]): GuardUsage {
  let checks = 0;
  let flagged = 0;
  let unavailable = 0;
  for (const one of counts) {
    if (one === undefined) continue;
    const found = one.injection + one.jailbreak;
    checks += one.benign + found + one.unavailable;
    flagged += found;
    unavailable += one.unavailable;
  }
  return { checks, flagged, unavailable };
}
