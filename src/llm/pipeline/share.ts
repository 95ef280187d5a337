/**
 * The second stage: the caller's share of this process. It precedes the limits, so that a caller
 * above its limits cannot occupy the process with refused requests.
 */
import type { CallerPolicy } from "../../policy/snapshot.ts";
import { refuse, Refusal } from "../refusal.ts";
import type { RequestContext } from "./context.ts";
import type { Arrival, Identified } from "./identify.ts";
import type { Outcome } from "./pipeline.ts";

/** All requests without a known caller have one share. */
export const ANONYMOUS = "anonymous";

const RETRY_MS = 1_000;

/** Returns the name of a caller among all callers of the process. */
export function shareName({ kind, namespace, name }: CallerPolicy): string {
  return `${kind} ${namespace}/${name}`;
}

export function share(
  { headers, caller }: Arrival & Identified,
  context: RequestContext,
): Outcome<object> {
  const name = shareName(caller);
  context.chargeTo(name);
  // The price of a body of unannounced size is added when it has arrived.
  const turn = context.share.enter(name, Number(headers.get("content-length") ?? 0));
  return turn === undefined ? {} : turn.then((admitted) => (admitted ? {} : aboveShare()));
}

function aboveShare(): Refusal {
  const { error } = refuse(
    "fair_share_exceeded",
    "The gateway is busy, and you have used more than your share of it. Try again later, or with fewer requests at once.",
  );
  return new Refusal(error, { retryAfterMs: RETRY_MS });
}
