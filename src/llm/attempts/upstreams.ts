/** Address of each kind of upstream: path, host and authentication. One entry per kind. */
import type { ProviderKind, ModelProviderPolicy } from "../../policy/snapshot.ts";
import type { DialectName, WireFormat } from "../dialects/dialect.ts";
import { hasEmbeddings } from "../dialects/embeddings/translate.ts";
import type { AttemptTarget } from "./retry-plan.ts";
import type { LlmOperation, LlmRoute } from "../request/routes.ts";

export interface UpstreamAddress {
  /** `:authority`. */
  readonly authority: string;
  /** `:path`. */
  readonly path: string;
}

type HeaderPair = readonly [name: string, value: string];

interface UpstreamKind {
  /** Path below the base path; undefined if the kind has no such endpoint. */
  path(
    provider: ModelProviderPolicy,
    operation: LlmOperation,
    model: string,
    stream: boolean,
  ): string | undefined;
  authenticate(key: string): HeaderPair;
}

const bearer = (key: string): HeaderPair => ["authorization", `Bearer ${key}`];

const OPENAI_PATHS: Partial<Record<LlmOperation, string>> = {
  chat: "/chat/completions",
  embeddings: "/embeddings",
  responses: "/responses",
};

const openai: UpstreamKind = {
  path: (_provider, operation) => OPENAI_PATHS[operation],
  authenticate: bearer,
};

const KINDS: Readonly<Record<ProviderKind, UpstreamKind>> = {
  openai,
  "openai-compatible": openai,
  mock: openai,
  "azure-openai": {
    // Without apiVersion this is the v1 API, whose paths are OpenAI's; with it, the model is a
    // deployment in the path.
    path: (provider, operation, model) => {
      const suffix = OPENAI_PATHS[operation];
      if (suffix === undefined || provider.apiVersion === undefined) return suffix;
      const version = `?api-version=${encodeURIComponent(provider.apiVersion)}`;
      return operation === "responses"
        ? suffix + version
        : `/deployments/${encodeURIComponent(model)}${suffix}${version}`;
    },
    authenticate: (key) => ["api-key", key],
  },
  anthropic: {
    path: (_provider, operation) =>
      operation === "chat"
        ? "/messages"
        : operation === "count_tokens"
          ? "/messages/count_tokens"
          : undefined,
    authenticate: (key) => ["x-api-key", key],
  },
  gemini: {
    path: (_provider, operation, model, stream) => {
      const resource = `/models/${encodeURIComponent(model)}`;
      switch (operation) {
        case "chat":
          return stream
            ? `${resource}:streamGenerateContent?alt=sse`
            : `${resource}:generateContent`;
        case "count_tokens":
          return `${resource}:countTokens`;
        case "embeddings":
          return `${resource}:batchEmbedContents`;
        case "embed_content":
          return `${resource}:embedContent`;
        case "responses":
          return undefined;
      }
    },
    authenticate: (key) => ["x-goog-api-key", key],
  },
};

/** Returns the call's address at this provider; undefined if it has no such endpoint. */
export function upstreamAddress(
  provider: ModelProviderPolicy,
  operation: LlmOperation,
  model: string,
  stream: boolean,
): UpstreamAddress | undefined {
  const path = KINDS[provider.kind].path(provider, operation, model, stream);
  if (path === undefined) return undefined;
  const { host, port, tls, basePath } = provider.endpoint;
  const name = host.includes(":") ? `[${host}]` : host;
  return { authority: port === (tls ? 443 : 80) ? name : `${name}:${port}`, path: basePath + path };
}

/** Returns the header with the provider's key; undefined if it needs none. */
export function upstreamKey(provider: ModelProviderPolicy): HeaderPair | undefined {
  return provider.apiKey === undefined
    ? undefined
    : KINDS[provider.kind].authenticate(provider.apiKey.reveal());
}

/**
 * How a provider is sent a call: unchanged but for what the gateway replaces, or translated to the
 * provider's own dialect.
 */
export type Delivery =
  | { readonly kind: "pass"; readonly operation: LlmOperation; readonly dialect: WireFormat }
  | { readonly kind: "translate"; readonly operation: LlmOperation; readonly dialect: DialectName };

/** Returns how a provider is sent the calls of a route; undefined if it cannot serve them. */
export function deliveryOf(
  provider: Pick<ModelProviderPolicy, "dialect" | "servesResponses">,
  { operation, dialect }: Pick<LlmRoute, "operation" | "dialect">,
): Delivery | undefined {
  const pass = { kind: "pass", operation, dialect } as const;
  switch (operation) {
    case "chat":
      if (provider.dialect === dialect) return pass;
      return { kind: "translate", operation, dialect: provider.dialect };
    case "responses":
      // A provider without this API serves its requests as chats.
      if (provider.servesResponses) return pass;
      return { kind: "translate", operation: "chat", dialect: provider.dialect };
    case "embeddings":
    case "embed_content":
      if (provider.dialect === dialect) return pass;
      return hasEmbeddings(provider.dialect)
        ? { kind: "translate", operation: "embeddings", dialect: provider.dialect }
        : undefined;
    case "count_tokens":
      return provider.dialect === dialect ? pass : undefined;
  }
}

/** Returns whether a provider serves a route's calls. */
export function serves({ provider }: AttemptTarget, route: LlmRoute): boolean {
  return deliveryOf(provider, route) !== undefined;
}
