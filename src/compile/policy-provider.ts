/**
 * A ModelProvider's part of the policy: defaults applied, its key resolved, its patterns compiled.
 */
import type {
  DialectName,
  FallbackTarget,
  ProviderKind,
  ModelProviderPolicy,
} from "../policy/snapshot.ts";
import type { Reason } from "../policy/status.ts";
import type { Secret } from "../platform/secret.ts";
import type { Endpoint } from "../resources/base-url.ts";
import { parseBaseURL } from "../resources/base-url.ts";
import { keyOf } from "../resources/metadata.ts";
import type { ModelProvider } from "../resources/model-provider.ts";
import { DEFAULT_BASE_URLS } from "../resources/model-provider.ts";
import { MAX_ATTEMPTS } from "../envoy/config/names.ts";
import { compilePatterns } from "../resources/model-names.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { ScopedProvider } from "./policy-agent.ts";
import type { Env } from "./policy-secrets.ts";
import { resolveSecret } from "./policy-secrets.ts";

const DIALECTS: Readonly<Record<ProviderKind, DialectName>> = {
  openai: "openai",
  anthropic: "anthropic",
  gemini: "gemini",
  "azure-openai": "openai",
  "openai-compatible": "openai",
  mock: "openai",
};

/** Kinds that have OpenAI's Responses API; servers of openai-compatible may not. */
const SERVES_RESPONSES: ReadonlySet<ProviderKind> = new Set(["openai", "azure-openai", "mock"]);

/** A ModelProvider before its fallbacks are resolved: usable by itself, or not. */
export type ProviderBase =
  | {
      readonly kind: "usable";
      readonly resource: ModelProvider;
      readonly endpoint: Endpoint;
      readonly apiKey: Secret | undefined;
    }
  | {
      readonly kind: "unusable";
      readonly resource: ModelProvider;
      readonly reason: Reason;
      readonly message: string;
    };

/** Resolves a provider's own address and key. */
export function resolveProvider(
  resource: ModelProvider,
  resources: ResourceSet,
  env: Env,
  mockEndpoint: Endpoint | undefined,
): ProviderBase {
  const unusable = (reason: Reason, message: string): ProviderBase => ({
    kind: "unusable",
    resource,
    reason,
    message,
  });
  const { spec } = resource;
  let endpoint: Endpoint;
  if (spec.provider === "mock") {
    if (mockEndpoint === undefined)
      return unusable("MockNotAvailable", "no mock upstream runs here; it comes with svc up");
    endpoint = mockEndpoint;
  } else {
    // The schema has validated it; a resource created without the schema still cannot pass.
    const parsed = parseBaseURL(spec.baseURL ?? DEFAULT_BASE_URLS[spec.provider] ?? "");
    if (parsed.kind === "error") return unusable("InvalidSpec", `spec.baseURL ${parsed.message}`);
    endpoint = parsed.endpoint;
  }
  if (spec.apiKeySecretRef === undefined)
    return { kind: "usable", resource, endpoint, apiKey: undefined };
  const key = resolveSecret(resources, env, resource.namespace, spec.apiKeySecretRef);
  if (key.kind === "missing") return unusable(key.reason, key.message);
  return { kind: "usable", resource, endpoint, apiKey: key.secret };
}

export interface CompiledProvider {
  readonly scoped: ScopedProvider;
  /** Fallbacks left out because of a mistake. */
  readonly broken: readonly string[];
  /** Fallbacks left out on purpose. */
  readonly skipped: readonly string[];
}

/**
 * Builds a provider with its usable fallbacks. Only its own list counts: a fallback's fallbacks are
 * not followed, so there are no cycles.
 */
export function compileProvider(
  base: ProviderBase & { kind: "usable" },
  lookup: (key: string) => ProviderBase | "skipped" | undefined,
): CompiledProvider {
  const { resource, endpoint, apiKey } = base;
  const { spec, namespace, name } = resource;
  const fallbacks: FallbackTarget[] = [];
  const broken: string[] = [];
  const skipped: string[] = [];
  let attempts = spec.retries.attempts;
  for (const { provider, model } of spec.fallbacks) {
    const key = `${namespace}/${provider}`;
    const target = lookup(key);
    if (target === undefined) broken.push(`fallback ${provider} does not exist`);
    else if (target === "skipped") skipped.push(`fallback ${provider} is skipped`);
    else if (target.kind === "unusable") broken.push(`fallback ${provider} is not ready`);
    else if (provider === name && model === undefined)
      broken.push(`fallback ${provider} is itself, with no other model`);
    else if (model !== undefined && !allowsModelOf(target.resource)(model))
      broken.push(`fallback ${provider} does not expose model ${model}`);
    else if (attempts + target.resource.spec.retries.attempts > MAX_ATTEMPTS)
      broken.push(
        `fallback ${provider} would make attempt ${attempts + 1} to ` +
          `${attempts + target.resource.spec.retries.attempts} of one request, and at most ` +
          `${MAX_ATTEMPTS} are made: lower retries.attempts or remove a fallback`,
      );
    else {
      fallbacks.push({ provider: key, model });
      attempts += target.resource.spec.retries.attempts;
    }
  }
  const policy: ModelProviderPolicy = {
    key: keyOf(resource),
    namespace,
    name,
    kind: spec.provider,
    dialect: DIALECTS[spec.provider],
    endpoint,
    apiKey,
    apiVersion: spec.apiVersion,
    servesResponses: spec.servesResponses ?? SERVES_RESPONSES.has(spec.provider),
    retries: spec.retries,
    firstByteTimeoutMs: spec.timeouts.firstByteMs,
    fallbacks,
    readsToEnd: spec.onDisconnect === "readToEnd",
    translation: spec.translation,
    allowedFeatures: new Set(spec.allowedFeatures),
    external: spec.externalAccess.enabled
      ? { maxTokensPerDay: spec.externalAccess.maxTokensPerDay }
      : undefined,
    allowsModel: allowsModelOf(resource),
  };
  return {
    scoped: { policy, allowed: spec.allowedModels ?? ["*"], denied: spec.deniedModels },
    broken,
    skipped,
  };
}

/** `allowedModels` without `deniedModels`. */
function allowsModelOf({ spec }: ModelProvider): (model: string) => boolean {
  const allowed = compilePatterns(spec.allowedModels ?? ["*"]);
  if (spec.deniedModels.length === 0) return allowed;
  const denied = compilePatterns(spec.deniedModels);
  return (model) => allowed(model) && !denied(model);
}
