/** Errors that the gateway itself writes into a stream. */

/** The upstream ended without its dialect's final event. */
export const STREAM_CUT: PublicError = {
  status: 502,
  code: "stream_interrupted",
  message: "the upstream ended the stream before the answer was complete",
};

/** The upstream sent an event that its dialect does not define. */
export const STREAM_MALFORMED: PublicError = {
  status: 502,
  code: "upstream_invalid",
  message: "the upstream sent an event that could not be read",
};

export function parseJson(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
import type { PublicError } from "../../access/errors.ts";
