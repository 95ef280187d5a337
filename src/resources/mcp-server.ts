/**
 * Fields of a Provider that binds an MCP server: where it is, and which of its items may be used.
 */
import * as z from "zod";
import { type BaseURLResult, type Endpoint, parseBaseURL } from "./base-url.ts";
import { withRules } from "./rule.ts";

/**
 * Transports of the Model Context Protocol. `streamable-http` is the specification's name of what
 * clients' configurations call `http`.
 */
export const MCP_TRANSPORTS = ["http", "streamable-http", "sse", "stdio"] as const;

const QUERY = /^[A-Za-z0-9._~!$&'()+,;=:@/?%*-]*$/;

/** The form of a server's URL as RE2; {@link parseServerURL} checks the rest. */
const SERVER_URL_FORM = String.raw`^[hH][tT][tT][pP][sS]?://[^\s#@\\\pC]+$`;

/** Address of an MCP server. */
export interface ServerURL {
  readonly endpoint: Endpoint;
  /** Path and query, as requests to it have them. */
  readonly path: string;
}

export type ServerURLResult =
  | ({ readonly kind: "ok" } & ServerURL)
  | { readonly kind: "error"; readonly message: string };

/** Parses the URL of an MCP server: like a base URL, and it may have a query. */
export function parseServerURL(text: string): ServerURLResult {
  const [base = "", ...rest] = text.split("?");
  const query = rest.join("?");
  if (!QUERY.test(query)) return { kind: "error", message: "has a query with invalid characters" };
  const parsed: BaseURLResult = parseBaseURL(base);
  if (parsed.kind === "error") return parsed;
  const slash = base.endsWith("/") || parsed.endpoint.basePath === "" ? "/" : "";
  const path = `${parsed.endpoint.basePath}${slash}`;
  return {
    kind: "ok",
    endpoint: parsed.endpoint,
    path: text.includes("?") ? `${path}?${query}` : path,
  };
}

/** Program and arguments of a server. */
export const commandSchema = z.array(z.string().min(1).max(4096)).min(1).max(64);

export const mcpServerSchema = withRules(
  z.strictObject({
    transport: z
      .enum(MCP_TRANSPORTS)
      .default("http")
      .describe(
        "Transport that the server speaks: `http` (Streamable HTTP; `streamable-http` is the " +
          "same), `sse` (the older HTTP with server-sent events), or `stdio` (a process in the " +
          "agent's sidecar). Clients may use another one.",
      ),
    url: z
      .string()
      .max(2048)
      .regex(new RegExp(SERVER_URL_FORM.replaceAll("\\pC", "\\p{C}"), "u"), "must be a URL")
      .superRefine((url, context) => {
        const parsed = parseServerURL(url);
        if (parsed.kind === "error") context.addIssue({ code: "custom", message: parsed.message });
      })
      .optional()
      .describe("URL of the server; required unless the transport is `stdio`."),
    command: commandSchema
      .optional()
      .describe("Program and arguments of a server of the transport `stdio`; without a shell."),
  }),
  [
    {
      test: ({ transport, url }) => (transport === "stdio") === (url === undefined),
      cel: "(self.transport == 'stdio') != has(self.url)",
      field: "url",
      message: "must be given, unless transport is stdio",
    },
    {
      test: ({ transport, command }) => (transport === "stdio") === (command !== undefined),
      cel: "(self.transport == 'stdio') == has(self.command)",
      field: "command",
      message: "must be given if transport is stdio, and only then",
    },
  ],
);

export type McpServerSpec = z.output<typeof mcpServerSchema>;

/** Name of a tool or prompt. */
const itemName = z.string().min(1).max(256);

const uriGlob = z.string().min(1).max(2048);

const names = (what: string) => ({
  allowed: z
    .array(itemName)
    .max(1000)
    .optional()
    .describe(`Names of the ${what} that may be used. Default: all.`),
  denied: z
    .array(itemName)
    .max(1000)
    .optional()
    .describe(
      `Names of the ${what} that may not be used. Checked first, without regard to case and ` +
        "similar forms.",
    ),
});

const tools = names("tools");
const prompts = names("prompts");

/** `spec.policy.mcp`. */
export const mcpPolicySchema = z.strictObject({
  allowedTools: tools.allowed,
  deniedTools: tools.denied,
  allowedPrompts: prompts.allowed,
  deniedPrompts: prompts.denied,
  allowedResources: z
    .array(uriGlob)
    .max(1000)
    .optional()
    .describe("URIs of the resources that may be read; `*` matches any text. Default: all."),
  deniedResources: z
    .array(uriGlob)
    .max(1000)
    .optional()
    .describe("URIs of the resources that may not be read; `*` matches any text."),
});

export type McpPolicySpec = z.output<typeof mcpPolicySchema>;

/** How a Provider of type `mcp` authenticates; the values are in the keys of its Secret. */
export type McpAuth =
  | { readonly kind: "none" }
  /** The Secret's key `token`, after the prefix, in a header. */
  | { readonly kind: "header"; readonly header: string; readonly prefix: string }
  /** The Secret's keys `clientId` and `clientSecret`. */
  | {
      readonly kind: "client-credentials";
      readonly tokenUrl: string;
      readonly parameters: Readonly<Record<string, string>>;
    }
  /** Every key of the Secret is a variable of the process (transport `stdio`). */
  | { readonly kind: "environment" };

export type McpAuthResult =
  | { readonly kind: "ok"; readonly auth: McpAuth }
  | { readonly kind: "error"; readonly message: string };

/** Values of `spec.auth.type` of a Provider of type `mcp`, with the keys of the Secret. */
export const MCP_AUTH_TYPES = {
  "api-key": { required: ["token"], optional: [] },
  oauth2: { required: ["clientId", "clientSecret"], optional: [] },
  environment: { required: [], optional: [], every: true },
} as const;

/** Names of `spec.config` of a Provider of type `mcp`. */
export const MCP_CONFIG_KEYS = {
  header: "Header that carries the token (api-key). Default: `Authorization`",
  prefix: "Text before the token. Default: `Bearer ` in `Authorization`, else none",
  tokenUrl: "Token endpoint (oauth2), an https URL",
  scope: "Scopes to request (oauth2), divided by spaces",
  audience: "Parameter `audience` of the token request (oauth2)",
  resource: "Parameter `resource` of the token request (oauth2; RFC 8707)",
} as const;

/** RFC 9110 section 5.6.2, in lower case. */
const HEADER_NAME = /^[a-z0-9!#$%&'*+.^_`|~-]{1,64}$/;

/** Headers of the transport, which no credential may replace. */
const RESERVED_HEADER =
  /^(?:host|content-.*|transfer-encoding|connection|accept|mcp-.*|last-event-id|x-svc-.*|te|upgrade)$/;

/** Variables of a server's process that svc sets. */
const SET_VARIABLES: ReadonlySet<string> = new Set(["PATH", "HOME"]);

/** Returns whether a key of a Secret can be a variable of a server's process. */
export function isServerVariable(key: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]{0,255}$/.test(key) && !SET_VARIABLES.has(key);
}

/** Reads `spec.auth` and `spec.config` of a Provider of type `mcp`. */
export function mcpAuth(
  type: string | undefined,
  config: Readonly<Record<string, string>>,
): McpAuthResult {
  const error = (message: string): McpAuthResult => ({ kind: "error", message });
  if (type === undefined || type === "none") return { kind: "ok", auth: { kind: "none" } };
  if (type === "environment") return { kind: "ok", auth: { kind: "environment" } };
  if (type === "api-key") {
    const header = (config["header"] ?? "authorization").toLowerCase();
    if (!HEADER_NAME.test(header) || RESERVED_HEADER.test(header))
      return error("spec.config.header must be the name of a header for credentials");
    const prefix = config["prefix"] ?? (header === "authorization" ? "Bearer " : "");
    if (!/^[\x20-\x7e]{0,64}$/.test(prefix))
      return error("spec.config.prefix must be printable ASCII of at most 64 characters");
    return { kind: "ok", auth: { kind: "header", header, prefix } };
  }
  const { tokenUrl = "", header, prefix, ...parameters } = config;
  if (header !== undefined || prefix !== undefined)
    return error("spec.config.header and prefix are for the authentication type api-key");
  if (parseServerURL(tokenUrl).kind === "error" || !/^https:/i.test(tokenUrl))
    return error("spec.config.tokenUrl must be the https URL of the token endpoint");
  return { kind: "ok", auth: { kind: "client-credentials", tokenUrl, parameters } };
}
