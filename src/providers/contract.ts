/**
 * The contract of provider plugins. A plugin knows one kind of external service, and nothing of
 * Envoy, Kubernetes or policy. It determines the actions and resources of a request, and injects a
 * credential into a permitted one. The binding pipeline, which calls it, decides on permissions.
 * All plugins pass one suite: contract.test.ts.
 */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { McpPolicy } from "../mcp/protocol/item-policy.ts";
import type { ItemKind } from "../mcp/protocol/names.ts";
import type { Secret } from "../platform/secret.ts";
import type { BoundMcpServer } from "../resources/binding-spec.ts";
import type { McpPolicySpec } from "../resources/mcp-server.ts";
import type { KeptState } from "./kept-state.ts";

/**
 * A request of an agent, exactly as on the wire: the proxy forwards the bytes that are evaluated
 * here.
 */
export interface ServiceRequest {
  /** As sent; `GET`, ... */
  readonly method: string;
  /** Lower-case, without port and trailing dot. */
  readonly host: string;
  /** Raw: not decoded, not normalised. Begins with `/` and contains no `?`. */
  readonly path: string;
  /** Raw, without `?`; empty for none. */
  readonly query: string;
  /** By lower-case name; a repeated header's values are joined with `, `. */
  readonly headers: ReadonlyMap<string, string>;
  /** The whole body if a {@link BodyRule} requests it; else undefined. */
  readonly body: Buffer | undefined;
}

/** A resource that an action touches, in the terms of a Provider's `spec.scope`. */
export type ServiceResource =
  /**
   * Matched against the globs of `spec.scope.<key>`. Records show `shown` if it is more precise
   * than the compared value, such as the blob of a container.
   */
  | {
      readonly kind: "scoped";
      readonly key: ScopeKey;
      readonly value: string;
      readonly shown?: string;
    }
  /**
   * Touches something that no scope key can name: denied if a scope is set. With `keys`, only if
   * one of these keys is set.
   */
  | { readonly kind: "unscopable"; readonly reason: string; readonly keys?: readonly ScopeKey[] }
  /**
   * Touches nothing that a scope could name (a rate limit, the caller's own identity): always in
   * scope.
   */
  | { readonly kind: "none" };

export type ScopeKey =
  | "repositories"
  | "arns"
  | "projects"
  | "subscriptions"
  | "resourceGroups"
  | "containers"
  | "channels";

/** One action of a request. */
export interface ResolvedAction {
  /** E.g. `pulls:read`, `s3:GetObject`. No `*`. */
  readonly action: string;
  /**
   * Wider actions that cover it, such as `messages:write` for `messages:delete`: policies that name
   * one of these also apply to it.
   */
  readonly broader?: readonly string[];
  /** All of them must be in scope. Empty is `none`. */
  readonly resources: readonly ServiceResource[];
  /** The item of an MCP server that it uses; `policy.mcp` must allow it. */
  readonly item?: ServiceItem;
}

/** A tool, prompt or resource of an MCP server. */
export interface ServiceItem {
  readonly kind: ItemKind;
  /** Name, or URI; as the agent wrote it. */
  readonly name: string;
}

export type ActionResolution =
  /** At least one; the request is permitted only if every one is. */
  | {
      readonly kind: "resolved";
      readonly actions: readonly ResolvedAction[];
      /** Whether the request is denied unless a rule of `policy.httpRules` allows it. */
      readonly onlyByRule?: boolean;
    }
  /**
   * Denied in enforce mode: in doubt, deny. `reason` is a sentence for the agent, `hint` states an
   * alternative that works.
   */
  | { readonly kind: "unresolved"; readonly reason: string; readonly hint?: string };

/** Changes that inject the credential. Names of headers are lower-case. */
export interface Injection {
  readonly set: readonly (readonly [name: string, value: string])[];
  readonly remove: readonly string[];
  /** Query parameters to add; values as they are, not yet encoded. */
  readonly setQuery: readonly (readonly [name: string, value: string])[];
}

export const NO_INJECTION: Injection = { set: [], remove: [], setQuery: [] };

/**
 * Requests whose body must be read completely before they can be evaluated or signed. Compiled into
 * Envoy's routes.
 */
export interface BodyRule {
  /** Hosts as in {@link ProviderPlugin.hosts}; empty for all of the binding's. */
  readonly hosts: readonly string[];
  /** RE2 for the whole host: hosts excluded from `hosts`, so that transfers to them stream. */
  readonly exceptHosts?: string;
  /** Undefined for all. */
  readonly methods: readonly string[] | undefined;
  /**
   * Exact paths, prefixes that end in `*`, or suffixes that begin with `*` (of the path, without
   * the query). `{}` matches one segment.
   */
  readonly paths: readonly string[];
  /** RE2 for the whole path: paths excluded from `paths`. Their bodies stream and are not read. */
  readonly exceptPaths?: string;
  /**
   * RE2 for the whole `content-type` in any case: excluded types, so that transfers and streams of
   * these types are not buffered. Such a body is not read.
   */
  readonly exceptContentTypes?: string;
  /** A larger body is refused with 413. */
  readonly maxBytes: number;
}

/** A denial as reported to the agent. Requested names are in the agent's own words. */
export interface Denial {
  readonly status: number;
  readonly code: string;
  /** Message for people. */
  readonly message: string;
  /** Members of the JSON form: binding, action, resource, rule, ... */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface WordedDenial {
  /** Status instead of that of the denial. */
  readonly status?: number;
  /** Includes `content-type`. Names are lower-case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** A request to a token server. */
export interface TokenRequest {
  readonly method: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/** The part of the web's `Response` that plugins use. Its body has been read. */
export interface TokenResponse extends Pick<Response, "ok" | "status" | "text"> {
  readonly headers: Pick<Headers, "get">;
  bytes(): Promise<Uint8Array>;
}

/** Rejects if there is no response, or a redirect. */
export type TokenFetch = (url: string, request: TokenRequest) => Promise<TokenResponse>;

/** Dependencies of a plugin instance. */
export interface PluginContext {
  /** Name of the bound Provider. */
  readonly binding: string;
  /** `spec.auth.type`. */
  readonly authType: string;
  /** The Secret's values by key. */
  readonly secrets: ReadonlyMap<string, Secret>;
  /** `spec.config`: the plugin's own settings, text by name; unknown names are an error. */
  readonly config: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** The MCP server; undefined for other services. */
  readonly mcp?: BoundMcpServer | undefined;
  /**
   * State of this Provider that outlives the sidecar's process; undefined if there is no folder
   * for it.
   */
  readonly state: KeptState | undefined;
  /**
   * Fetches from token servers: resolves names through DNS servers only and verifies certificates;
   * never goes through the agent's interception.
   */
  readonly fetch: TokenFetch;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/** A plugin instance for one binding. */
export interface ProviderInstance {
  /** Pure. Never throws: a request that cannot be evaluated is unresolved. */
  resolveAction(request: ServiceRequest): ActionResolution;
  /**
   * Returns whether the request is for this binding's own endpoint. Of several bindings of a host,
   * only those that claim a request judge it, if there are any. Pure.
   */
  claims?(request: ServiceRequest): boolean;
  /**
   * Returns why the service might read the request in another way than the plugin: the request is
   * then refused in every mode. Called for claimed requests. Pure, never throws.
   */
  misread?(request: ServiceRequest): string | undefined;
  /** Like {@link ProviderPlugin.wordDenial}, which it replaces, for this binding's own settings. */
  wordDenial?(request: ServiceRequest, denial: Denial): WordedDenial | undefined;
  /** Names of further headers that {@link injectCredentials} sets to credentials. */
  readonly credentialHeaders?: readonly string[];
  /** Whether the service runs in the sidecar, so that DNS has no address of it. */
  readonly isLocal?: boolean;
  /**
   * Called only for permitted requests, after the audit record is written and the agent's own
   * credentials are removed ({@link ProviderPlugin.credentialHeaders}).
   * @throws InjectionError if no credential is available now; the request is refused with 502 or
   * 503
   */
  injectCredentials(request: ServiceRequest): Injection | Promise<Injection>;
  /**
   * Obtains credentials that are needed before the first request, and renews them in the background
   * until {@link stop}.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Obtains a new token now; concurrent calls share one exchange. Does nothing if credentials do
   * not expire.
   */
  refreshToken(): Promise<void>;
}

/**
 * One kind of external service: a folder of `src/providers` whose `plugin.ts` exports it as
 * `plugin`.
 */
export interface ProviderPlugin {
  /** `spec.type` of a Provider. */
  readonly providerName: string;
  /** Exact host names to intercept. */
  readonly defaultHosts: readonly string[];
  /**
   * Host patterns to intercept, each `*.` and a domain: any number of labels before it, at least
   * one.
   */
  readonly hostPatterns: readonly string[];
  /**
   * Returns the exact hosts that replace both lists according to `spec.config`; undefined, or no
   * such function, for none.
   */
  hostsFor?(config: Readonly<Record<string, string>>): readonly string[] | undefined;
  /** Returns the path for logs and the audit trail, for services that accept credentials in it. */
  redactPath?(path: string): string;
  /**
   * Returns a denial in the form in which the service's own clients show its message; undefined, or
   * no such function, for JSON with a `message`. Pure; escapes the inserted text.
   */
  wordDenial?(request: ServiceRequest, denial: Denial): WordedDenial | undefined;
  /** Compiles `policy.mcp`; for MCP servers only. */
  compileItems?(policy: McpPolicySpec | undefined): McpPolicy;
  /** Kinds of `spec.auth.type` and the Secret's keys that each needs. */
  readonly authTypes: Readonly<
    Record<
      string,
      {
        readonly required: readonly string[];
        readonly optional: readonly string[];
        /** Whether every key of the Secret is used. */
        readonly every?: boolean;
      }
    >
  >;
  /**
   * Scope vocabulary: the keys of `spec.scope` that it fills, with the values that the globs of
   * each are matched against. A Provider whose scope has another key is refused, because it could
   * not be enforced.
   */
  readonly scopeKeys: Readonly<Partial<Record<ScopeKey, string>>>;
  /** Whether globs of `spec.scope` are compared without regard to case. */
  readonly scopeIgnoresCase: boolean;
  /** Names of `spec.config`, with descriptions. */
  readonly configKeys: Readonly<Record<string, string>>;
  readonly bodies: readonly BodyRule[];
  /**
   * Headers and query parameters in which an agent could send a credential of its own: removed in
   * every mode.
   */
  readonly credentialHeaders: readonly string[];
  readonly credentialQuery: readonly string[];
  /** @throws ConfigError */
  create(context: PluginContext): ProviderInstance;
}

/**
 * Error for settings or a Secret that cannot work. The message states the problem and the fix, and
 * shows no value.
 */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/**
 * Error for a credential that is not available now. The message is for the agent: it shows no value
 * and no address of ours.
 */
export class InjectionError extends Error {
  override readonly name = "InjectionError";
  readonly status: 502 | 503 | 400;

  constructor(message: string, status: 502 | 503 | 400 = 503) {
    super(message);
    this.status = status;
  }
}
