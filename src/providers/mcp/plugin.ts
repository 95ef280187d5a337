/**
 * MCP servers. Agents call a server at the host and path of its URL, or at
 * `<provider>.mcp.internal` if it runs in their sidecar. `policy.mcp` judges the items that a
 * message uses; lists in answers are filtered by `src/mcp/sidecar`.
 */
import { McpPolicy } from "../../mcp/protocol/item-policy.ts";
import { listsOfPolicy } from "../../compile/mcp-servers.ts";
import type { Secret } from "../../platform/secret.ts";
import { isServerVariable, MCP_AUTH_TYPES, MCP_CONFIG_KEYS } from "../../resources/mcp-server.ts";
import type { BoundMcpServer } from "../../resources/binding-spec.ts";
import {
  type ActionResolution,
  ConfigError,
  type Denial,
  type Injection,
  NO_INJECTION,
  type PluginContext,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
  type WordedDenial,
} from "../contract.ts";
import { credentialSource, type McpCredentialHeader, readAuth } from "./credential.ts";
import { wordDenial } from "./denial.ts";
import { MessageEndpoints } from "./endpoints.ts";
import { readMessage } from "./message.ts";
import { resolveMessage } from "./resolve.ts";

export const plugin: ProviderPlugin = {
  providerName: "mcp",
  defaultHosts: [],
  hostPatterns: [],
  authTypes: MCP_AUTH_TYPES,
  scopeKeys: {},
  scopeIgnoresCase: false,
  configKeys: MCP_CONFIG_KEYS,
  // Messages are read by routes of their own: see src/envoy/config/sidecar.ts.
  bodies: [],
  credentialHeaders: ["authorization", "cookie", "x-api-key", "api-key"],
  credentialQuery: ["access_token"],
  compileItems: (policy) => new McpPolicy(listsOfPolicy(policy)),
  create: (context) => new McpInstance(context),
};

/** An MCP server of a binding. */
export class McpInstance implements ProviderInstance {
  readonly server: BoundMcpServer;
  /** Message paths of the older transport. */
  readonly endpoints: MessageEndpoints;
  readonly credentialHeaders: readonly string[];
  readonly isLocal: boolean;
  /** Variables of a server that runs in the sidecar. */
  readonly environment: ReadonlyMap<string, Secret>;
  /** Without its query. */
  readonly #path: string;
  readonly #source: ReturnType<typeof credentialSource>;

  /** @throws ConfigError */
  constructor(context: PluginContext) {
    const { mcp, binding } = context;
    if (mcp === undefined) throw new ConfigError(`Provider ${binding}: spec.mcp must be given`);
    const auth = readAuth(context);
    this.server = mcp;
    this.#path = mcp.path.split("?", 1)[0] ?? "";
    this.endpoints = new MessageEndpoints(mcp.host);
    this.credentialHeaders = auth.kind === "header" ? [auth.header] : [];
    this.isLocal = mcp.transport === "stdio";
    this.environment = auth.kind === "environment" ? context.secrets : new Map();
    const unfit = [...this.environment.keys()].find((key) => !isServerVariable(key));
    if (unfit !== undefined)
      throw new ConfigError(`Provider ${binding}: the Secret's key ${unfit} cannot be a variable`);
    this.#source = credentialSource(context);
  }

  /**
   * Every request that a server might take for one to its endpoint is judged here, so that no rule
   * of `policy.httpRules` lets it pass unread.
   */
  claims({ host, method, path }: ServiceRequest): boolean {
    if (host !== this.server.host) return false;
    if (this.server.transport === "sse" && method === "POST") return true;
    return lenient(path) === lenient(this.#path);
  }

  /** Returns whether a request is to the path of the URL, not to that of a stream's messages. */
  isStream({ path }: ServiceRequest): boolean {
    return path === this.#path;
  }

  misread(request: ServiceRequest): string | undefined {
    if (request.headers.has("upgrade")) return "MCP servers have no upgrade.";
    if (request.method !== "POST") return undefined;
    const read = readMessage(request);
    return read.kind === "misread" ? read.message : undefined;
  }

  resolveAction(request: ServiceRequest): ActionResolution {
    if (request.host !== this.server.host)
      return { kind: "unresolved", reason: "This host is not that of the MCP server" };
    if (this.claims(request))
      return this.#isEndpoint(request) ? resolveMessage(request) : ELSEWHERE;
    if (!/^[A-Z]+$/.test(request.method))
      return { kind: "unresolved", reason: "The method is not known" };
    const action = `http:${request.method.toLowerCase()}`;
    const resources = [{ kind: "none" }] as const;
    return { kind: "resolved", actions: [{ action, resources }], onlyByRule: true };
  }

  #isEndpoint({ method, path, query }: ServiceRequest): boolean {
    const target = query === "" ? path : `${path}?${query}`;
    if (target === this.server.path) return true;
    return this.server.transport === "sse" && method === "POST" && this.endpoints.has(target);
  }

  wordDenial(request: ServiceRequest, denial: Denial): WordedDenial | undefined {
    const worded = wordDenial(request, denial);
    if (worded === undefined || this.isStream(request)) return worded;
    // Clients of the older transport do not read the answer to a message, but its status.
    return { ...worded, status: denial.status };
  }

  injectCredentials({ host }: ServiceRequest): Injection | Promise<Injection> {
    if (host !== this.server.host) return NO_INJECTION;
    const header = this.#source.current();
    return header instanceof Promise ? header.then(injectionOf) : injectionOf(header);
  }

  start(): Promise<void> {
    return this.#source.start();
  }

  stop(): Promise<void> {
    return this.#source.stop();
  }

  refreshToken(): Promise<void> {
    return this.#source.refresh();
  }
}

const ELSEWHERE: ActionResolution = {
  kind: "unresolved",
  reason: "This is not the address of the MCP server's endpoint, or of one of its open streams",
  hint: "Use the URL of the Provider exactly",
};

/** Servers may take paths for equal that differ in case, or in slashes at the end. */
function lenient(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end -= 1;
  return path.slice(0, end).toLowerCase();
}

function injectionOf(header: McpCredentialHeader | undefined): Injection {
  return header === undefined
    ? NO_INJECTION
    : { ...NO_INJECTION, set: [[header.name, header.value.reveal()]] };
}
