/**
 * Parses the arguments of a call: from the query and from a body, JSON or a form. Slack merges
 * them; a duplicate argument, or one whose name another parser could interpret as another's
 * (`channel[]`, `channel.id`), cannot be evaluated.
 */
import type { ServiceRequest } from "../contract.ts";
import { isJsonObject, type StrictJson, parseStrictJson } from "../strict-json.ts";

export type SlackArguments =
  | { readonly kind: "arguments"; readonly values: ReadonlyMap<string, StrictJson> }
  | { readonly kind: "refused"; readonly reason: string; readonly hint: string };

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

export function readArguments(request: ServiceRequest): SlackArguments {
  const values = new Map<string, StrictJson>();
  const body = bodyArguments(request);
  if (typeof body === "string")
    return refused(body, "Send the arguments as JSON or as a form, uncompressed");
  for (const [name, value] of [
    ...new URLSearchParams(request.query),
    ...body,
  ] as readonly (readonly [string, StrictJson])[]) {
    if (!NAME.test(name))
      return refused(
        "An argument has a name that could be read in more than one way",
        "Use letters, digits and `_`",
      );
    if (values.has(name))
      return refused("An argument comes twice", "Send each once, in the query or in the body");
    values.set(name, value);
  }
  return { kind: "arguments", values };
}

/** A text result is the reason for a failure. */
function bodyArguments({
  method,
  headers,
  body,
}: ServiceRequest): readonly (readonly [string, StrictJson])[] | string {
  const length = headers.get("content-length") ?? "0";
  if (body === undefined)
    return length === "0" && !headers.has("transfer-encoding") ? [] : "The body was not read";
  if (body.length === 0) return [];
  if (method === "GET") return "A GET has a body";
  if (headers.has("content-encoding")) return "The body is compressed";
  const type = (headers.get("content-type") ?? "").toLowerCase();
  if (/^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/.test(type)) {
    const parsed = parseStrictJson(body);
    if (parsed.kind === "invalid") return `The body ${parsed.reason}`;
    return isJsonObject(parsed.value) ? Object.entries(parsed.value) : "The body is not an object";
  }
  if (/^application\/x-www-form-urlencoded(?:\s*;\s*charset="?utf-8"?)?\s*$/.test(type)) {
    const text = body.toString("latin1");
    // `;` was once a separator of arguments, and parsers disagree on bytes beyond ASCII.
    return /^[\x21-\x3a\x3c-\x7e]*$/.test(text)
      ? [...new URLSearchParams(text)]
      : "The form holds bytes that must be percent-encoded";
  }
  return "The body is neither JSON nor a form";
}

function refused(reason: string, hint: string): SlackArguments {
  return { kind: "refused", reason, hint };
}
