/**
 * What a processor looks up while it serves one request: immutable, versioned, swapped whole.
 * It knows no Envoy and no Kubernetes type. A request reads it once, at its start.
 */
import type { Secret } from "../platform/secret.ts";

/** Dialect an upstream speaks on its native endpoint. */
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

/** Retry settings of a ModelProvider, defaults applied. Times in milliseconds. */
export interface RetryPolicy {
  /** Attempts at this provider, the first included (>= 1). */
  readonly attempts: number;
  readonly baseIntervalMs: number;
  readonly maxIntervalMs: number;
  /** A `retry-after` above this goes to the next provider at once. */
  readonly maxRetryAfterMs: number;
}

/** One attempt target of a chain: a provider and the model to ask it for. */
export interface FallbackTarget {
  /** Key into {@link PolicySnapshot.providers}. */
  readonly provider: string;
  /** Model to ask there; undefined keeps the model that was asked. */
  readonly model: string | undefined;
}

/** A ModelProvider that may be used. */
export interface ProviderPolicy {
  /** `<namespace>/<name>`: also the name of its Envoy cluster, prefixed. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly kind: ProviderKind;
  readonly dialect: DialectName;
  /** Where it is: scheme, host, port and path prefix, without a trailing slash. */
  readonly endpoint: {
    readonly tls: boolean;
    readonly host: string;
    readonly port: number;
    /** e.g. `/v1`; empty for none. */
    readonly basePath: string;
  };
  /** undefined where the upstream wants none (a local mock or model server). */
  readonly apiKey: Secret | undefined;
  /** Azure's `api-version`; undefined for the v1 API or other kinds. */
  readonly apiVersion: string | undefined;
  readonly retries: RetryPolicy;
  /** Longest wait for the first byte of one attempt, milliseconds. */
  readonly firstByteTimeoutMs: number;
  readonly fallbacks: readonly FallbackTarget[];
  /** Answers are read to their end when their client leaves, for their usage. */
  readonly readsToEnd: boolean;
  /** Features that requests may use although their cost or their reach cannot be checked. */
  readonly allowedFeatures: ReadonlySet<Feature>;
  /** Through the external gateway; undefined where it is off. */
  readonly external: ExternalPolicy | undefined;
  /** `allowedModels` less `deniedModels`; `*` at the end of an entry is a wildcard. */
  allowsModel(model: string): boolean;
}

export interface ExternalPolicy {
  /** Tokens in a day (UTC) across all keys. */
  readonly maxTokensPerDay: number | undefined;
}

/** A model an agent may use. */
export interface ModelGrant {
  /** `<provider>/<model>` as the agent's spec writes it. */
  readonly ref: string;
  readonly provider: ProviderPolicy;
  readonly model: string;
}

/** Limits of an Agent; undefined where there is none. */
export interface AgentLimits {
  /** In any 60 seconds. */
  readonly requestsPerMinute: number | undefined;
  readonly maxConcurrentRequests: number | undefined;
  /** In a day (UTC), input and output. */
  readonly maxTokensPerDay: number | undefined;
  readonly maxTokensPerRequest: number | undefined;
  /** Micro-dollars in a day (UTC). */
  readonly maxMicroUsdPerDay: number | undefined;
}

/** Who may call: an Agent with its workload token, or whoever holds an AccessKey. */
export type CallerPolicy = AgentPolicy | AccessKeyPolicy;

/**
 * An AccessKey: opens one ModelProvider, to callers outside. What is refused, and why, is asked for
 * each request.
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
  /** Key into {@link PolicySnapshot.providers}, which may hold none: the provider is not in use. */
  readonly providerKey: string;
  readonly limits: {
    readonly maxTokensPerDay: number | undefined;
    readonly maxRequestsPerDay: number | undefined;
  };
  readonly grants: readonly ModelGrant[];
  /** Whether a client's address may use the key. */
  allowsAddress(address: string): boolean;
  /** What of its ModelProvider the key opens. */
  resolveModel(model: string): ModelResolution;
}

/** A hash that opens an AccessKey: its key, or the one before while the grace period lasts. */
export interface KeyEntry {
  readonly key: AccessKeyPolicy;
  /** Milliseconds since the epoch; undefined for the key in force. */
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
  /**
   * The grant a request's `model` names (`<provider>/<model>`, or the bare model where
   * unambiguous).
   */
  resolveModel(model: string): ModelResolution;
}

export type ModelResolution =
  | { readonly kind: "granted"; readonly grant: ModelGrant }
  /** The bare name stands in several grants. */
  | { readonly kind: "ambiguous"; readonly candidates: readonly string[] }
  /** No ModelProvider configured serves it. */
  | { readonly kind: "unknown" }
  /** It exists, but not for this agent, or its ModelProvider denies it. */
  | { readonly kind: "denied"; readonly reason: string };

export interface PolicySnapshot {
  /** Content hash: equal versions mean equal policy. */
  readonly version: string;
  /** By SHA-256 (hex) of the workload token. */
  readonly agentsByTokenHash: ReadonlyMap<string, AgentPolicy>;
  /** By SHA-256 (hex) of the raw key. */
  readonly keysByHash: ReadonlyMap<string, KeyEntry>;
  readonly providers: ReadonlyMap<string, ProviderPolicy>;
}

export const EMPTY_SNAPSHOT: PolicySnapshot = {
  version: "empty",
  agentsByTokenHash: new Map(),
  keysByHash: new Map(),
  providers: new Map(),
};
