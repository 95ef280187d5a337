/**
 * ModelProvider: an upstream that serves models, and its settings. Fields named by the interface;
 * `baseURL`, `apiVersion`, `retries`, `timeouts` and the shape of a fallback are ours.
 */
import * as z from "zod";
import { BASE_URL_FORM, parseBaseURL } from "./base-url.ts";
import {
  field,
  guardNames,
  MESSAGE,
  NAME,
  NONE,
  READY,
  REASON,
  REQUESTS,
  some,
  strings,
  text,
  TOKENS,
} from "./columns.ts";
import { guardsSchema } from "./guard-list.ts";
import { defineKind } from "./kind.ts";
import type { ResourceBase } from "./metadata.ts";
import { API_VERSION, metadataSchema, nameSchema, subdomainSchema } from "./metadata.ts";
import { MAX_MODEL_NAME, MODEL_NAME, MODEL_PATTERN } from "./model-names.ts";
import { LAST_COLUMNS, READY_COLUMNS, statusSchema } from "./object-status.ts";
import { celList, celString, withRules } from "./rule.ts";

/** Upstream kinds. `src/policy/snapshot.ts` holds the same list; a test keeps them equal. */
const KINDS = [
  "openai",
  "anthropic",
  "gemini",
  "azure-openai",
  "openai-compatible",
  "mock",
] as const;

/** `src/policy/snapshot.ts` holds the same list; a test keeps them equal. */
const FEATURES = [
  "background",
  "serverTools",
  "serviceTiers",
  "remoteResources",
  "otherModels",
] as const;

/** Default addresses by kind; kinds that are not listed need `baseURL`. */
export const DEFAULT_BASE_URLS: Readonly<Partial<Record<(typeof KINDS)[number], string>>> = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com/v1",
  gemini: "https://generativelanguage.googleapis.com/v1beta",
};

const NEEDS_KEY: readonly string[] = ["openai", "anthropic", "gemini", "azure-openai"];
const MAY_SERVE_RESPONSES: readonly string[] = ["openai", "azure-openai", "openai-compatible"];
const NEEDS_BASE_URL: readonly string[] = ["azure-openai", "openai-compatible"];

const modelPattern = z
  .string()
  .max(MAX_MODEL_NAME)
  .regex(MODEL_PATTERN, "must be a model name, optionally with one '*' as its last character");

const modelName = z
  .string()
  .max(MAX_MODEL_NAME)
  .regex(MODEL_NAME, "must be a model name: visible ASCII without quotes, backslashes and '*'");

const milliseconds = (max: number) => z.int().min(1).max(max);

const retriesSchema = withRules(
  z.strictObject({
    attempts: z
      .int()
      .min(1)
      .max(10)
      .default(3)
      .describe("Attempts at this provider, the first included."),
    baseIntervalMs: milliseconds(60_000)
      .default(200)
      .describe(
        "Upper bound of the first wait between attempts, in milliseconds; it doubles with each.",
      ),
    maxIntervalMs: milliseconds(300_000)
      .default(5_000)
      .describe("Longest wait between attempts, in milliseconds. At least baseIntervalMs."),
    maxRetryAfterMs: z
      .int()
      .min(0)
      .max(300_000)
      .default(20_000)
      .describe(
        "Longest accepted `retry-after`, in milliseconds; above it the next provider is " +
          "tried at once.",
      ),
  }),
  [
    {
      test: ({ baseIntervalMs, maxIntervalMs }) => maxIntervalMs >= baseIntervalMs,
      // The default of this object, {}, is checked before the defaults of its members are set.
      cel:
        "!has(self.maxIntervalMs) || !has(self.baseIntervalMs) || " +
        "self.maxIntervalMs >= self.baseIntervalMs",
      field: "maxIntervalMs",
      message: "must not be less than baseIntervalMs",
    },
  ],
);

/** A message that names the kind of the provider. */
function kindMessage(before: string, after = "") {
  return {
    of: ({ provider }: { readonly provider: string }) => `${before}${provider}${after}`,
    cel: `'${before}' + self.provider + '${after}'`,
  };
}

const specSchema = withRules(
  z.strictObject({
    provider: z
      .enum(KINDS)
      .describe("Kind of the upstream: which dialect it speaks and how it authenticates."),
    apiKeySecretRef: z
      .strictObject({
        name: subdomainSchema.describe("Name of a Secret in the same namespace."),
        key: z
          .string()
          .regex(/^[-._a-zA-Z0-9]{1,253}$/, "must be a key of a Secret")
          .describe("Key in the Secret that holds the API key."),
      })
      .optional()
      .describe(
        "Secret that holds the API key. Required for openai, anthropic, gemini and azure-openai.",
      ),
    baseURL: z
      .string()
      .max(2048)
      .optional()
      .describe(
        "Address of the API up to, not including, the endpoint (`/chat/completions`, " +
          "`/messages`, `/models/...`): http or https, " +
          "no user name, query or fragment. Default for openai, anthropic and gemini: the " +
          "vendor's. Required for azure-openai " +
          "(https://RESOURCE.openai.azure.com/openai/v1) and openai-compatible.",
      ),
    apiVersion: z
      .string()
      .regex(/^[A-Za-z0-9.-]{1,64}$/, "must be an API version such as 2024-10-21")
      .optional()
      .describe(
        "azure-openai only: the dated `api-version` of the older API. Leave out for the v1 API.",
      ),
    servesResponses: z
      .boolean()
      .optional()
      .describe(
        "Whether the upstream has OpenAI's Responses API (`/responses`). If it has, calls of " +
          "this API pass unchanged; otherwise they are translated to chat completions. " +
          "openai, azure-openai and openai-compatible only. Default: true, but false for " +
          "openai-compatible.",
      ),
    allowedModels: z
      .array(modelPattern)
      .min(1, "must not be empty: leave it out to expose every model")
      .max(1000)
      .optional()
      .describe(
        "Models it exposes; `*` as last character is a wildcard. Case-sensitive. Default: " +
          "every model.",
      ),
    deniedModels: z
      .array(modelPattern)
      .max(1000)
      .default([])
      .describe("Models it never exposes, same form. The deny list wins."),
    onDisconnect: z
      .enum(["cancel", "readToEnd"])
      .default("cancel")
      .describe(
        "Handling of an answer whose client disconnects. `cancel`: the request to the " +
          "provider is cancelled, and the call " +
          "is settled at an upper bound. `readToEnd`: the rest is read and discarded, so " +
          "that the call is settled exactly; it costs " +
          "what the vendor charges for the rest, and each call passes the gateway service " +
          "once more.",
      ),
    allowedFeatures: z
      .array(z.enum(FEATURES))
      .max(FEATURES.length)
      .default([])
      .describe(
        "Features that requests may use although the gateway cannot check them. " +
          "`background`, `serverTools` (tools that the " +
          "vendor runs) and `serviceTiers` (other prices): their cost is unknown, so " +
          "callers with a budget of tokens or USD " +
          "may not use them otherwise. `remoteResources` (fields that name addresses or " +
          "keys) and `otherModels` (fields that " +
          "name further models): nobody may use them otherwise.",
      ),
    translation: z
      .enum(["lenient", "strict"])
      .default("lenient")
      .describe(
        "How requests of another vendor's dialect are translated. `lenient`: fields without an " +
          "equivalent that do not change the meaning of the conversation are dropped, and named " +
          "in the response header `x-svc-dropped`. `strict`: such requests are refused.",
      ),
    fallbacks: z
      .array(
        z.strictObject({
          provider: nameSchema.describe("Name of a ModelProvider in the same namespace."),
          model: modelName
            .optional()
            .describe("Model to request there. Default: the requested model."),
        }),
      )
      .max(8)
      .default([])
      .describe(
        "Providers tried in this order once the attempts here are used up. Their own " +
          "fallbacks are not used.",
      ),
    retries: retriesSchema
      .prefault({})
      .describe("Retries of 429, 5xx, connection errors and timeouts before the first byte."),
    timeouts: z
      .strictObject({
        firstByteMs: milliseconds(3_600_000)
          .default(300_000)
          .describe("Longest wait for the first byte of one attempt's answer, in milliseconds."),
      })
      .prefault({})
      .describe("Timeouts of one attempt."),
    externalAccess: z
      .strictObject({
        enabled: z
          .boolean()
          .default(false)
          .describe("Must be true for requests from outside the cluster."),
        maxTokensPerDay: z
          .int()
          .min(0)
          .optional()
          .describe("Daily token budget (UTC) across all external usage."),
        guards: guardsSchema
          .optional()
          .describe(
            "Prompt-injection guards of every LLM call from outside that may reach this " +
              "provider, also as a fallback. If one of the bindings does not exist, these calls " +
              "are denied.",
          ),
      })
      .prefault({})
      .describe("Use through the external gateway."),
  }),
  [
    {
      test: ({ baseURL }) => baseURL === undefined || parseBaseURL(baseURL).kind === "ok",
      // The parser also checks the host and the port.
      cel: `!has(self.baseURL) || self.baseURL.matches(${celString(BASE_URL_FORM)})`,
      field: "baseURL",
      message: {
        of: ({ baseURL = "" }) => {
          const parsed = parseBaseURL(baseURL);
          return parsed.kind === "error" ? parsed.message : "";
        },
        cel:
          "'must be an http or https URL with a host and a plain path, such as " +
          "https://api.openai.com/v1, without user name, query and fragment'",
      },
    },
    {
      test: ({ provider, baseURL }) => baseURL === undefined || provider !== "mock",
      cel: "!has(self.baseURL) || self.provider != 'mock'",
      field: "baseURL",
      message: "does not apply to the kind mock, which runs inside svc",
    },
    {
      test: ({ provider, baseURL }) => baseURL !== undefined || !NEEDS_BASE_URL.includes(provider),
      cel: `has(self.baseURL) || !(self.provider in ${celList(NEEDS_BASE_URL)})`,
      field: "baseURL",
      message: kindMessage("is required for the kind "),
    },
    {
      test: ({ provider, apiKeySecretRef }) =>
        apiKeySecretRef !== undefined || !NEEDS_KEY.includes(provider),
      cel: `has(self.apiKeySecretRef) || !(self.provider in ${celList(NEEDS_KEY)})`,
      field: "apiKeySecretRef",
      message: kindMessage("is required for the kind "),
    },
    {
      test: ({ provider, servesResponses }) =>
        servesResponses === undefined || MAY_SERVE_RESPONSES.includes(provider),
      cel: `!has(self.servesResponses) || self.provider in ${celList(MAY_SERVE_RESPONSES)}`,
      field: "servesResponses",
      message: kindMessage("does not apply to the kind "),
    },
    {
      test: ({ provider, apiVersion }) => apiVersion === undefined || provider === "azure-openai",
      cel: "!has(self.apiVersion) || self.provider == 'azure-openai'",
      field: "apiVersion",
      message: kindMessage("does not apply to the kind ", ", only to azure-openai"),
    },
  ],
);

export const modelProviderSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("ModelProvider"),
  metadata: metadataSchema,
  spec: specSchema,
  status: statusSchema({
    tokensToday: z
      .int()
      .optional()
      .describe("Tokens used today (UTC) through the external gateway."),
    requestsToday: z
      .int()
      .optional()
      .describe("Requests made today (UTC) through the external gateway."),
  }).optional(),
});

export type ModelProviderSpec = z.output<typeof specSchema>;

export interface ModelProvider extends ResourceBase {
  readonly kind: "ModelProvider";
  readonly spec: ModelProviderSpec;
}

export const modelProviderKind = defineKind({
  kind: "ModelProvider",
  apiVersion: API_VERSION,
  collection: "modelProviders",
  names: { singular: "model-provider", plural: "model-providers", short: "mp" },
  reference: "An upstream that serves models. `apiVersion: svc.io/v1`.",
  schema: modelProviderSchema,
  build: ({ spec }, base): ModelProvider => ({ kind: "ModelProvider", ...base, spec }),
  view: ({ spec }) => ({ spec }),
  usage: {
    counter: () => ({ kind: "model-provider" }),
    fields: ["tokensToday", "requestsToday"],
  },
  crd: {
    columns: [
      { name: "Provider", type: "string", jsonPath: ".spec.provider" },
      ...READY_COLUMNS,
      ...LAST_COLUMNS,
    ],
  },
  columns: [
    NAME,
    { title: "PROVIDER", cell: ({ spec }) => text(spec?.["provider"]) },
    READY,
    REASON,
    {
      title: "MODELS",
      cell: ({ spec }) => (spec === undefined ? NONE : some(strings(spec["allowedModels"]), "*")),
    },
    {
      title: "EXTERNAL",
      cell: ({ spec }) => (field(spec, "externalAccess", "enabled") === true ? "yes" : "no"),
    },
    TOKENS,
    { ...REQUESTS, wide: true },
    { title: "BASE-URL", wide: true, cell: ({ spec }) => text(spec?.["baseURL"]) },
    {
      title: "EXTERNAL-GUARDS",
      wide: true,
      cell: ({ spec }) => guardNames(field(spec, "externalAccess", "guards")),
    },
    MESSAGE,
  ],
});
