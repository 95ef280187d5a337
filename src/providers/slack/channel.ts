import type { ServiceResource } from "../contract.ts";
import type { StrictJson } from "../strict-json.ts";

const CHANNEL = /^[A-Za-z0-9#_@.-]{1,200}$/;

/** Returns the resource of a conversation named in an argument or a link. */
export function channelResource(value: StrictJson): ServiceResource {
  return typeof value === "string" && CHANNEL.test(value)
    ? { kind: "scoped", key: "channels", value }
    : { kind: "unscopable", reason: "The conversation is named in a form that is not understood" };
}
