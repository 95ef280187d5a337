/**
 * The second stage: the caller's share of this process. It precedes the limits, so that a caller
 * above its limits cannot occupy the process with refused requests.
 */
import { callerName } from "../../access/caller.ts";
import { refuse, Refusal } from "../../access/refusal.ts";
import type { RequestContext } from "./context.ts";
import type { Arrival, Identified } from "./identify.ts";
import type { Outcome } from "./pipeline.ts";

const RETRY_MS = 1_000;

export function share(
  { headers, caller }: Arrival & Identified,
  context: RequestContext,
): Outcome<object> {
  const name = callerName(caller);
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
