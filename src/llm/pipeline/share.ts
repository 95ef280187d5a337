/**
 * The second stage: the caller's share of this process. It precedes the limits, so that a caller
 * above its limits cannot occupy the process with refused requests.
 */
import { MAX_REQUEST_BODY_BYTES } from "../surface.ts";
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
  const turn = context.share.enter(name, announcedBytes(headers.get("content-length")));
  return turn === undefined ? {} : turn.then((admitted) => (admitted ? {} : aboveShare()));
}

/**
 * Returns the size that a request announces, at most that of the largest body. It is 0 if none is
 * announced: the price of such a body is added when it has arrived.
 */
function announcedBytes(contentLength: string | undefined): number {
  const bytes = Number(contentLength ?? 0);
  return bytes >= 0 ? Math.min(bytes, MAX_REQUEST_BODY_BYTES) : 0;
}

function aboveShare(): Refusal {
  const { error } = refuse(
    "fair_share_exceeded",
    "The gateway is busy, and you have used more than your share of it. Try again later, " +
      "or with fewer requests at once.",
  );
  return new Refusal(error, { retryAfterMs: RETRY_MS });
}
