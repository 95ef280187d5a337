/** Resolves requests to Slack. */
import type { ActionResolution, ServiceResource, ServiceRequest } from "../contract.ts";
import type { StrictJson } from "../strict-json.ts";
import { splitPath } from "../url-path.ts";
import { readArguments } from "./arguments.ts";
import { ABOUT_NOTHING, BROADER, IN_CHANNEL, WIDE } from "./methods.ts";
import { resourcesOf } from "./reach.ts";

export interface SlackRequest {
  readonly resolution: ActionResolution;
  /** False if the address contains a signature of its own. */
  readonly authenticated: boolean;
}

type Kind = "channel" | "wide" | "nothing";

const METHODS: ReadonlyMap<string, { readonly action: string; readonly kind: Kind }> = new Map(
  (
    [
      [IN_CHANNEL, "channel"],
      [WIDE, "wide"],
      [ABOUT_NOTHING, "nothing"],
    ] as const
  ).flatMap(([table, kind]) =>
    Object.entries(table).flatMap(([action, methods]) =>
      methods.map((method): [string, { action: string; kind: Kind }] => [method, { action, kind }]),
    ),
  ),
);

const API = /^\/api\/([A-Za-z.]{1,80})$/;
const UPLOAD = /^\/upload\/v1\/[A-Za-z0-9_-]+$/;
const WIDER: ServiceResource = {
  kind: "unscopable",
  reason: "The method is about more than one conversation, or about none that it names",
};

export function resolveSlack(request: ServiceRequest): SlackRequest {
  if (request.host === "files.slack.com") return resolveFile(request);
  const name = request.host === "slack.com" ? API.exec(request.path)?.[1] : undefined;
  if (name === undefined)
    return refused("This is not Slack's Web API", "It is at https://slack.com/api/<method>");
  const method = METHODS.get(name);
  if (method === undefined || (request.method !== "GET" && request.method !== "POST")) {
    return refused(
      "This is not a known method of Slack's Web API",
      "See https://docs.slack.dev/reference/methods",
    );
  }
  const read = readArguments(request);
  if (read.kind === "refused") return refused(read.reason, read.hint);
  if (read.values.has("token"))
    return refused("The arguments hold a token", "Omit it: the proxy adds the credential");
  return resolved(method.action, touched(name, method.kind, read.values));
}

function touched(
  method: string,
  kind: Kind,
  values: ReadonlyMap<string, StrictJson>,
): readonly ServiceResource[] {
  if (kind === "nothing") return [{ kind: "none" }];
  return kind === "wide" ? [WIDER] : resourcesOf(method, values);
}

/**
 * Downloads need the token; uploads go to an address from files.getUploadURLExternal and need none.
 */
function resolveFile({ method, path }: ServiceRequest): SlackRequest {
  const split = splitPath(path);
  if (split.kind === "segments" && !split.trailingSlash && split.segments.length > 1) {
    const isFile =
      ["files-pri", "files-tmb"].includes(split.segments[0]?.text ?? "") &&
      split.segments.every(({ slashed }) => !slashed);
    if (isFile && (method === "GET" || method === "HEAD")) return resolved("files:read", [WIDER]);
    if (method === "POST" && UPLOAD.test(path))
      return { ...resolved("files:write", [WIDER]), authenticated: false };
  }
  return refused(
    "This host only serves files",
    "Use the address that files.info, or files.getUploadURLExternal, gives",
  );
}

function resolved(action: string, resources: readonly ServiceResource[]): SlackRequest {
  return {
    authenticated: true,
    resolution: {
      kind: "resolved",
      actions: [
        {
          action,
          ...(Object.hasOwn(BROADER, action) ? { broader: BROADER[action] ?? [] } : {}),
          resources,
        },
      ],
    },
  };
}

function refused(reason: string, hint: string): SlackRequest {
  return { authenticated: false, resolution: { kind: "unresolved", reason, hint } };
}

/** Removes the signature of an upload. */
export function redactPath(path: string): string {
  return path.replace(/(\/upload\/v1\/)[^/]+/gi, "$1[redacted]");
}
