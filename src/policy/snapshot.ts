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
  /** `allowedModels` less `deniedModels`; `*` at the end of an entry is a wildcard. */
  allowsModel(model: string): boolean;
}

/** A model an agent may use. */
export interface ModelGrant {
  /** `<provider>/<model>` as the agent's spec writes it. */
  readonly ref: string;
  readonly provider: ProviderPolicy;
  readonly model: string;
}

/** An Agent that may call the gateway. */
export interface AgentPolicy {
  readonly kind: "agent";
  readonly namespace: string;
  readonly name: string;
  /** `<namespace>/<name>`: the value of the label `workload` in metrics, logs and audit. */
  readonly workload: string;
  readonly grants: readonly ModelGrant[];
  /** The grant a request's `model` names (`<provider>/<model>`, or the bare model where unambiguous). */
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
  readonly providers: ReadonlyMap<string, ProviderPolicy>;
}

export const EMPTY_SNAPSHOT: PolicySnapshot = {
  version: "empty",
  agentsByTokenHash: new Map(),
  providers: new Map(),
};
