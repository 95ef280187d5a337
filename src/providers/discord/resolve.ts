/** Resolves requests to Discord. */
import type {
  ActionResolution,
  ResolvedAction,
  ServiceResource,
  ServiceRequest,
} from "../contract.ts";
import { type RouteMatch, RouteTrie } from "../route-trie.ts";
import { splitPath } from "../url-path.ts";
import { linkedResources } from "./reach.ts";
import { ROUTES, TOKEN_ROUTES } from "./routes.ts";

export interface DiscordRequest {
  readonly resolution: ActionResolution;
  /** False if the path contains a token of its own. */
  readonly authenticated: boolean;
}

const HOST = "discord.com";
const API = /^\/api\/v(?:9|10)(?=\/)/;
/** Requests about the bot itself, or about no channel. */
const ABOUT_NOTHING = new Set([
  "GET /users/@me",
  "GET /gateway",
  "GET /gateway/bot",
  "GET /voice/regions",
  "GET /applications/@me",
]);

const trie = new RouteTrie();
for (const [table, kind] of [
  [ROUTES, "bot"],
  [TOKEN_ROUTES, "token"],
] as const) {
  for (const [category, lines] of Object.entries(table)) {
    for (const line of lines) {
      const [methods = "", path = ""] = line.split(" ");
      for (const method of methods.split(",")) trie.add(`${method} ${path} ${category} ${kind} -`);
    }
  }
}

export function resolveDiscord(request: ServiceRequest): DiscordRequest {
  const prefix = request.host === HOST ? API.exec(request.path)?.[0] : undefined;
  if (prefix === undefined)
    return refused("This is not Discord's API", "It is at https://discord.com/api/v10");
  const split = splitPath(request.path.slice(prefix.length));
  if (split.kind === "refused") return refused(split.reason, split.hint);
  const match = trie.find(request.method, split.segments, split.trailingSlash);
  if (match === undefined)
    return refused(
      `${request.method} of this path is not a known operation of Discord's API`,
      "See https://docs.discord.com/developers/reference",
    );
  const { category, method, subcategory, template } = match.route;
  const line = `${method} ${template}`;
  const resources = resourcesOf(match, request);
  return {
    authenticated: subcategory === "bot",
    resolution: { kind: "resolved", actions: [{ ...actionOf(category, method, line), resources }] },
  };
}

/** Deletes with another method. */
const DELETES = new Set(["POST /channels/{channel}/messages/bulk-delete"]);

/** A delete is also a write: policies that name only the wider action cover it. */
function actionOf(
  category: string,
  method: string,
  line: string,
): Pick<ResolvedAction, "action" | "broader"> {
  if (method === "GET") return { action: `${category}:read` };
  const write = `${category}:write`;
  return method === "DELETE" || DELETES.has(line)
    ? { action: `${category}:delete`, broader: [write] }
    : { action: write };
}

function resourcesOf(
  { route, parameters }: RouteMatch,
  request: ServiceRequest,
): readonly ServiceResource[] {
  const line = `${route.method} ${route.template}`;
  const channel = parameters.get("channel")?.[0]?.text;
  if (channel !== undefined)
    return [{ kind: "scoped", key: "channels", value: channel }, ...linkedResources(line, request)];
  if (ABOUT_NOTHING.has(line)) return [{ kind: "none" }];
  const reason = `${route.template} is about more than one channel, or names none`;
  return [{ kind: "unscopable", reason }];
}

function refused(reason: string, hint: string): DiscordRequest {
  return { authenticated: false, resolution: { kind: "unresolved", reason, hint } };
}

/** Removes the tokens of webhooks and interactions: anybody who has the path may post. */
export function redactPath(path: string): string {
  return path.replace(/(\/(?:webhooks|interactions)\/[^/]*\/)[^/]+/gi, "$1[redacted]");
}
