/**
 * The stage that reads the body: JSON within bounds, and the facts for the decisions about the
 * call.
 */
import { MAX_REQUEST_BODY_BYTES } from "../surface.ts";
import { readFacts, type RequestFacts } from "../request/facts.ts";
import { JsonBody } from "../request/json-body.ts";
import { refuse } from "../../access/refusal.ts";
import type { Entered } from "./enter.ts";
import type { Identified } from "./identify.ts";
import type { Outcome } from "./pipeline.ts";

/** A request whose body has arrived. */
export interface BodyArrival extends Identified, Entered {
  readonly address: string;
  readonly raw: Buffer;
}

export interface ReadBody {
  readonly body: JsonBody;
  readonly facts: RequestFacts;
}

/** @throws BadRequestError */
export function readBody({ route, entry, raw }: BodyArrival): Outcome<ReadBody> {
  entry.bytes.resize(raw.length);
  if (raw.length > MAX_REQUEST_BODY_BYTES) {
    return refuse("body_too_large", `The request body is above ${MAX_REQUEST_BODY_BYTES} bytes.`);
  }
  const body = JsonBody.read(raw);
  return { body, facts: readFacts(route, body) };
}
