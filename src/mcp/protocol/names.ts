/** Names of the Model Context Protocol that a gateway needs. */

/** Headers of the Streamable HTTP transport, in lower case. */
export const McpHeader = {
  /** Session of revisions before 2026-07-28; removed since. */
  session: "mcp-session-id",
  protocolVersion: "mcp-protocol-version",
  /** Mirror of `method` (2026-07-28). */
  method: "mcp-method",
  /** Mirror of `params.name` or `params.uri` (2026-07-28). */
  name: "mcp-name",
  lastEventId: "last-event-id",
} as const;

/**
 * First revision without sessions: each request carries its version, and headers mirror the body.
 * https://modelcontextprotocol.io/specification/2026-07-28
 */
export const STATELESS_REVISION = "2026-07-28";

/**
 * Key of `params._meta` that carries the revision of a request, from {@link STATELESS_REVISION}.
 */
export const VERSION_META = "io.modelcontextprotocol/protocolVersion";

/** What a policy restricts. */
export type ItemKind = "tools" | "prompts" | "resources";

/**
 * Methods that use one item, and where its name is. Methods that are not listed here or in {@link
 * LIST_METHODS} name no item; they pass.
 */
export const ITEM_METHODS: Readonly<Record<string, ItemKind>> = {
  "tools/call": "tools",
  "prompts/get": "prompts",
  "resources/read": "resources",
  "resources/subscribe": "resources",
  "resources/unsubscribe": "resources",
};

/** Methods whose result has a list of items, under the name of their kind. */
export const LIST_METHODS: Readonly<Record<string, ItemKind>> = {
  "tools/list": "tools",
  "prompts/list": "prompts",
  "resources/list": "resources",
};

/** Asks for values of an argument of a prompt or of a resource template (`params.ref`). */
export const COMPLETE_METHOD = "completion/complete";

/** Opens a stream of notifications (2026-07-28); it names resources to watch. */
export const LISTEN_METHOD = "subscriptions/listen";

/** Member of an item that names it. */
export const NAME_MEMBER: Readonly<Record<ItemKind, "name" | "uri">> = {
  tools: "name",
  prompts: "name",
  resources: "uri",
};
