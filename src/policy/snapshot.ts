/**
 * The policy that a processor uses to serve one request: immutable, versioned, replaced as a whole.
 * It contains no Envoy and no Kubernetes types. A request reads it once, at its start.
 */
import type { Secret } from "../platform/secret.ts";

/** Dialect of an upstream's native endpoint. */
export type DialectName = "openai" | "anthropic" | "gemini";

/** Upstream kinds of a ModelProvider (`spec.provider`). */
export const PROVIDER_KINDS = [
  "openai",
  "anthropic",
  "gemini",
  "azure-openai",
  "openai-compatible",
  "mock",
] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

/** Features of requests that a ModelProvider may allow (`spec.allowedFeatures`). */
export const FEATURES = [
  "background",
  "serverTools",
  "serviceTiers",
  "remoteResources",
  "otherModels",
] as const;
export type Feature = (typeof FEATURES)[number];

/**
 * How a request that the provider's dialect cannot fully express is translated
 * (`spec.translation`): without the hints that it cannot express, or not at all.
 */
export type TranslationMode = "lenient" | "strict";

/** Retry settings of a ModelProvider, defaults applied. Times in milliseconds. */
export interface RetryPolicy {
  /** Attempts at this provider, the first included (>= 1). */
  readonly attempts: number;
  readonly baseIntervalMs: number;
  readonly maxIntervalMs: number;
  /** A longer `retry-after` makes the next provider be tried at once. */
  readonly maxRetryAfterMs: number;
}

/** One target of a chain: a provider and the model to request from it. */
export interface FallbackTarget {
  /** Key into {@link PolicySnapshot.providers}. */
  readonly provider: string;
  /** Model to request; undefined keeps the requested model. */
  readonly model: string | undefined;
}

/** A ModelProvider that may be used. */
export interface ModelProviderPolicy {
  /** `<namespace>/<name>`; also, with a prefix, the name of its Envoy cluster. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly kind: ProviderKind;
  readonly dialect: DialectName;
  /** Address: scheme, host, port and path prefix, without a trailing slash. */
  readonly endpoint: {
    readonly tls: boolean;
    readonly host: string;
    readonly port: number;
    /** e.g. `/v1`; empty for none. */
    readonly basePath: string;
  };
  /** undefined if the upstream needs none (a local mock or model server). */
  readonly apiKey: Secret | undefined;
  /** Whether it has OpenAI's Responses API; otherwise responses are translated to chats. */
  readonly servesResponses: boolean;
  /** Azure's `api-version`; undefined for the v1 API or other kinds. */
  readonly apiVersion: string | undefined;
  readonly retries: RetryPolicy;
  /** Maximum wait for the first byte of one attempt, in milliseconds. */
  readonly firstByteTimeoutMs: number;
  readonly fallbacks: readonly FallbackTarget[];
  /** Answers are read to their end after the client disconnected, to learn their usage. */
  readonly readsToEnd: boolean;
  /** How requests of other dialects are translated. */
  readonly translation: TranslationMode;
  /** Features that requests may use although their cost or reach cannot be checked. */
  readonly allowedFeatures: ReadonlySet<Feature>;
  /** Access through the external gateway; undefined if it is disabled. */
  readonly external: ExternalPolicy | undefined;
  /**
   * Returns whether `allowedModels` without `deniedModels` contains a model; `*` at the end of an
   * entry is a wildcard.
   */
  allowsModel(model: string): boolean;
}

export interface ExternalPolicy {
  /** Tokens per day (UTC) across all keys. */
  readonly maxTokensPerDay: number | undefined;
}

/** Lists of one kind of items of an MCP server. */
export interface ItemLists {
  /** Names, or URIs with `*`, that may be used; undefined for all. */
  readonly allowed: readonly string[] | undefined;
  /** Names, or URIs with `*`, that may not be used. */
  readonly denied: readonly string[];
}

/** The lists of a Provider (`spec.policy.mcp`) or of an access key. */
export interface McpLists {
  readonly tools: ItemLists;
  readonly prompts: ItemLists;
  readonly resources: ItemLists;
}

/** How the gateway authenticates itself to an MCP server. */
export type McpCredential =
  | { readonly kind: "none" }
  /** A header with a value that does not expire. */
  | { readonly kind: "header"; readonly name: string; readonly value: Secret }
  /** OAuth 2.0 client credentials (RFC 6749 section 4.4): a bearer token that is renewed. */
  | {
      readonly kind: "client-credentials";
      readonly tokenUrl: string;
      readonly clientId: Secret;
      readonly clientSecret: Secret;
      /** Parameters of the token request, such as `scope`. */
      readonly parameters: Readonly<Record<string, string>>;
    };

/** An MCP server that access keys may use: a Provider of type `mcp` with external access. */
export interface McpServerPolicy {
  /** `<namespace>/<name>` of the Provider. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** What the server speaks. */
  readonly transport: "http" | "sse";
  readonly endpoint: {
    readonly tls: boolean;
    readonly host: string;
    readonly port: number;
  };
  /** Path and query of its URL. */
  readonly path: string;
  readonly credential: McpCredential;
  readonly lists: McpLists;
  /** Violations are recorded, and not refused (`spec.audit.enforcement: audit`). */
  readonly auditOnly: boolean;
  /** The arguments of calls are recorded (`spec.audit.toolArguments`). */
  readonly recordsArguments: boolean;
  /** Requests per day (UTC) across all keys; undefined for no limit. */
  readonly maxRequestsPerDay: number | undefined;
}

/** A model an agent may use. */
export interface ModelGrant {
  /** `<provider>/<model>` as the agent's spec writes it. */
  readonly ref: string;
  readonly provider: ModelProviderPolicy;
  readonly model: string;
}

/** Limits of an Agent; undefined for no limit. */
export interface AgentLimits {
  /** In any 60 seconds. */
  readonly requestsPerMinute: number | undefined;
  readonly maxConcurrentRequests: number | undefined;
  /** Per day (UTC), input and output. */
  readonly maxTokensPerDay: number | undefined;
  readonly maxTokensPerRequest: number | undefined;
  /** Micro-dollars per day (UTC). */
  readonly maxMicroUsdPerDay: number | undefined;
}

/** Types of classifiers (`spec.classifier.type` of a GuardBinding). */
export type ClassifierType = "promptGuard" | "stub" | "llamaGuard" | "custom";

/** A classifier, and how it is asked. */
export interface ClassifierPolicy {
  /**
   * Hash of everything that its verdicts depend on, such as type, address and model: a verdict is
   * remembered for this id only.
   */
  readonly id: string;
  readonly type: ClassifierType;
  /**
   * `classify`: the protocol of the guard service, `POST <url>` with a text. `chat`: an endpoint of
   * OpenAI's Chat Completions that serves Llama Guard.
   */
  readonly protocol: "classify" | "chat";
  /** Address of the request; undefined if the classifier cannot be asked, see `problem`. */
  readonly url: string | undefined;
  readonly model: string | undefined;
  /** Header of every request; undefined for none. */
  readonly header: { readonly name: string; readonly value: Secret } | undefined;
  /** Why it cannot be asked, for people; undefined if it can. */
  readonly problem: string | undefined;
}

/** A guard of a caller's calls: a GuardBinding, and what it scans. */
export interface GuardPolicy {
  /** Name of the GuardBinding. */
  readonly binding: string;
  readonly classifier: ClassifierPolicy;
  /** Scores from which a text is flagged, 0 to 1. */
  readonly thresholds: { readonly injection: number; readonly jailbreak: number };
  /** `enforce` refuses a flagged call; `audit` forwards and records it. */
  readonly enforcement: "enforce" | "audit";
  /** Maximum time that the guard adds to a call, in milliseconds. */
  readonly timeoutMs: number;
  /** Maximum length of the text in audit events; undefined if it is not recorded. */
  readonly maxPayloadChars: number | undefined;
  readonly scan: {
    readonly prompts: boolean;
    readonly responses: boolean;
    /** Whether the results of a tool are scanned. */
    readonly toolResults: "none" | "all" | ReadonlySet<string>;
  };
}

/** A caller: an Agent with its workload token, or the holder of an AccessKey. */
export type CallerPolicy = AgentPolicy | AccessKeyPolicy;

/**
 * An AccessKey: gives external callers access to one ModelProvider. Whether it is refused, and why,
 * is evaluated for each request.
 */
export interface AccessKeyPolicy {
  readonly kind: "key";
  readonly namespace: string;
  readonly name: string;
  /** `ext:<name>`: the value of the label `workload` in metrics, logs and audit. */
  readonly workload: string;
  readonly revoked: boolean;
  /** Milliseconds since the epoch; undefined for never. */
  readonly expiresAt: number | undefined;
  /** Key into {@link PolicySnapshot.providers}, which lacks it if the provider is not in use. */
  readonly providerKey: string;
  /** The MCP server that the key is for; undefined if it is for a ModelProvider. */
  readonly mcp: McpGrant | undefined;
  readonly limits: {
    readonly maxTokensPerDay: number | undefined;
    readonly maxRequestsPerDay: number | undefined;
    readonly requestsPerMinute: number | undefined;
  };
  readonly grants: readonly ModelGrant[];
  /** Guards of its calls: those of its ModelProvider and its own. */
  readonly guards: readonly GuardPolicy[];
  /** Whether a client's address may use the key. */
  allowsAddress(address: string): boolean;
  /** Whether the key's restrictions contain a model, at whichever ModelProvider. */
  allowsModel(model: string): boolean;
  /** Resolves a model of its ModelProvider that the key may use. */
  resolveModel(model: string): ModelResolution;
}

/** What an access key may use of its MCP server. */
export interface McpGrant {
  /** Name of the Provider, in the key's namespace. */
  readonly provider: string;
  /** Key into {@link PolicySnapshot.mcpServers}, which lacks it if the Provider is not in use. */
  readonly server: string;
  /** The key's own lists, which narrow the Provider's. */
  readonly lists: McpLists;
}

/**
 * A hash that identifies an AccessKey: that of its key, or of the previous one during the grace
 * period.
 */
export interface KeyEntry {
  readonly key: AccessKeyPolicy;
  /** Milliseconds since the epoch; undefined for the current key. */
  readonly graceUntil: number | undefined;
}

/** An Agent that may call the gateway. */
export interface AgentPolicy {
  readonly kind: "agent";
  readonly namespace: string;
  readonly name: string;
  /** `<namespace>/<name>`: the value of the label `workload` in metrics, logs and audit. */
  readonly workload: string;
  readonly limits: AgentLimits;
  readonly grants: readonly ModelGrant[];
  /** Guards of its calls. */
  readonly guards: readonly GuardPolicy[];
  /**
   * Resolves a request's `model` to a grant (`<provider>/<model>`, or the bare model if it is
   * unambiguous).
   */
  resolveModel(model: string): ModelResolution;
}

export type ModelResolution =
  | { readonly kind: "granted"; readonly grant: ModelGrant }
  /** Several grants contain the bare name. */
  | { readonly kind: "ambiguous"; readonly candidates: readonly string[] }
  /** No configured ModelProvider serves it. */
  | { readonly kind: "unknown" }
  /** It exists, but this agent may not use it, or its ModelProvider denies it. */
  | { readonly kind: "denied"; readonly reason: string };

export interface PolicySnapshot {
  /** Content hash: equal versions mean equal policy. */
  readonly version: string;
  /** By SHA-256 (hex) of the workload token. */
  readonly agentsByTokenHash: ReadonlyMap<string, AgentPolicy>;
  /** By SHA-256 (hex) of the raw key. */
  readonly keysByHash: ReadonlyMap<string, KeyEntry>;
  readonly providers: ReadonlyMap<string, ModelProviderPolicy>;
  /** By `<namespace>/<name>` of the Provider: those with external access that are in use. */
  readonly mcpServers: ReadonlyMap<string, McpServerPolicy>;
  /** `<namespace>/<name>` of every other Provider of type `mcp`, with what keeps it from use. */
  readonly closedMcpServers: ReadonlyMap<string, "disabled" | "not-ready">;
}

export const EMPTY_SNAPSHOT: PolicySnapshot = {
  version: "empty",
  agentsByTokenHash: new Map(),
  keysByHash: new Map(),
  providers: new Map(),
  mcpServers: new Map(),
  closedMcpServers: new Map(),
};
