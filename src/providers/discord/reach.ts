/**
 * The reach of each operation on a channel. Every route that names a channel is in exactly one of
 * these tables, after a review of its body and response in Discord's documentation. An unlisted
 * route is out of every scope, and a test fails.
 *
 * A thread is a channel of its own. Reading a thread shows the message that started it, which
 * belongs to its parent; messages forwarded to a channel, or shown by its webhooks, belong to the
 * channel.
 */
import type { BodyRule, ServiceResource, ServiceRequest } from "../contract.ts";
import { isJsonObject, type StrictJson, parseStrictJson } from "../strict-json.ts";

type JsonObject = { readonly [key: string]: StrictJson };

/** Routes whose effect and response stay within the channel of the path. */
const WITHIN_LINES = `
  GET,DELETE /channels/{channel}
  PUT,DELETE /channels/{channel}/permissions/{overwrite}
  GET /channels/{channel}/messages
  GET,PATCH,DELETE /channels/{channel}/messages/{message}
  POST /channels/{channel}/messages/bulk-delete
  POST /channels/{channel}/typing
  GET /channels/{channel}/pins
  PUT,DELETE /channels/{channel}/pins/{message}
  GET /channels/{channel}/messages/pins
  PUT,DELETE /channels/{channel}/messages/pins/{message}
  DELETE /channels/{channel}/messages/{message}/reactions
  GET,DELETE /channels/{channel}/messages/{message}/reactions/{emoji}
  PUT,DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me
  DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/{user}
  GET /channels/{channel}/polls/{message}/answers/{answer}
  POST /channels/{channel}/polls/{message}/expire
  POST /channels/{channel}/messages/{message}/threads
  GET /channels/{channel}/thread-members
  PUT,DELETE /channels/{channel}/thread-members/@me
  GET,PUT,DELETE /channels/{channel}/thread-members/{user}
  GET /channels/{channel}/invites
  GET,POST /channels/{channel}/webhooks
`;

export const WITHIN: ReadonlySet<string> = new Set(
  WITHIN_LINES.trim()
    .split("\n")
    .flatMap((line) => {
      const [methods = "", path = ""] = line.trim().split(" ");
      return methods.split(",").map((method) => `${method} ${path}`);
    }),
);

const THREADS = "Threads are channels of their own, and this lists all that the channel has";

/** Routes that return or change something of another channel, with the reason. */
export const REACHES_FURTHER: Readonly<Record<string, string>> = {
  "POST /channels/{channel}/messages/{message}/crosspost":
    "Every channel that follows this one gets the message",
  "POST /channels/{channel}/invites": "Who is invited joins the whole guild",
  "GET /channels/{channel}/threads/archived/public": THREADS,
  "GET /channels/{channel}/threads/archived/private": THREADS,
  "GET /channels/{channel}/users/@me/threads/archived/private": THREADS,
};

/** A reply or, with `type` 1, a forwarded message, which is read from `channel_id`. */
function reference(message: StrictJson | undefined): readonly ServiceResource[] {
  const found = isJsonObject(message) ? (message["message_reference"] ?? null) : null;
  if (found === null) return [];
  if (!isJsonObject(found)) return [unscopable("`message_reference` is not understood")];
  const isReply = (found["type"] ?? 0) === 0;
  if (isReply && (found["channel_id"] ?? null) === null) return [];
  return [channel(found["channel_id"], "message_reference.channel_id")];
}

/** By route: the channels that the body names. */
const JUDGES: Readonly<Record<string, (body: JsonObject) => readonly ServiceResource[]>> = {
  "PATCH /channels/{channel}": (body) =>
    (body["parent_id"] ?? null) === null ? [] : [channel(body["parent_id"], "parent_id")],
  "POST /channels/{channel}/followers": (body) => [
    channel(body["webhook_channel_id"], "webhook_channel_id"),
  ],
  "POST /channels/{channel}/messages": reference,
  "POST /channels/{channel}/threads": (body) => [...reference(body), ...reference(body["message"])],
};

export const JUDGED_BY_BODY: ReadonlySet<string> = new Set(Object.keys(JUDGES));

const MAX_BODY_BYTES = 1024 * 1024;

/** Messages with files are multipart and stream: they cannot be evaluated by their body. */
export const BODIES: readonly BodyRule[] = ["PATCH", "POST"].map((method) => ({
  hosts: [],
  exceptContentTypes: "multipart/.*",
  methods: [method],
  paths: [...JUDGED_BY_BODY]
    .filter((route) => route.startsWith(`${method} `))
    .map((route) => route.slice(method.length + 1).replace("{channel}", "{}"))
    .flatMap((path) => [`/api/v9${path}`, `/api/v10${path}`]),
  maxBytes: MAX_BODY_BYTES,
}));

/**
 * Returns the channels that a route reaches besides the one of its path. @param route `METHOD
 * template`
 */
export function linkedResources(
  route: string,
  request: ServiceRequest,
): readonly ServiceResource[] {
  if (WITHIN.has(route)) return [];
  const further = REACHES_FURTHER[route];
  if (further !== undefined) return [unscopable(further)];
  const judge = JUDGES[route];
  if (judge === undefined) return [unscopable("How far this operation reaches is not known here")];
  const body = readBody(request);
  return body === undefined
    ? [unscopable("The body may name another channel and is not plain JSON: send files apart")]
    : judge(body);
}

function readBody({ body, headers }: ServiceRequest): JsonObject | undefined {
  const isJson = /^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/i.test(
    headers.get("content-type") ?? "",
  );
  if (body === undefined || !isJson || headers.has("content-encoding")) return undefined;
  const parsed = parseStrictJson(body);
  return parsed.kind === "parsed" && isJsonObject(parsed.value) ? parsed.value : undefined;
}

function channel(id: StrictJson | undefined, member: string): ServiceResource {
  return typeof id === "string" && /^[0-9]{1,20}$/.test(id)
    ? { kind: "scoped", key: "channels", value: id }
    : unscopable(`\`${member}\` is not the id of a channel, as text`);
}

function unscopable(reason: string): ServiceResource {
  return { kind: "unscopable", reason };
}
