/**
 * AccessKey: lets a developer outside the cluster call one ModelProvider or one MCP server through
 * the gateway. It holds the SHA-256 of the key, never the key. Restrictions only narrow what the
 * provider allows.
 */
import * as z from "zod";
import { cidrSchema } from "./cidr.ts";
import {
  expiry,
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
import { API_VERSION, metadataSchema, nameSchema } from "./metadata.ts";
import { MODEL_PATTERN } from "./model-names.ts";
import { LAST_COLUMNS, READY_COLUMNS, statusSchema } from "./object-status.ts";
import { withRules } from "./rule.ts";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in lower-case hex");

/** RFC 3339 time with an offset. */
const time = z.iso.datetime({
  offset: true,
  error: "must be a time such as 2027-01-31T12:00:00Z (RFC 3339)",
});

const modelPattern = z
  .string()
  .max(256)
  .regex(MODEL_PATTERN, "must be a model name, optionally with one '*' as its last character");

const toolName = z.string().min(1).max(256);

const specSchema = withRules(
  z.strictObject({
    modelProvider: nameSchema
      .optional()
      .describe(
        "Name of the ModelProvider that it gives access to, in the same namespace. Either " +
          "this or provider.",
      ),
    provider: nameSchema
      .optional()
      .describe(
        "Name of the Provider that it gives access to, in the same namespace. Either this " +
          "or modelProvider.",
      ),
    keySHA256: sha256.describe(
      "SHA-256 of the raw key, in hex. `svc access-key create` generates it; the key " +
        "itself is not stored.",
    ),
    previous: z
      .strictObject({
        keySHA256: sha256.describe("SHA-256 of the previous key."),
        expiresAt: time.describe("Time until which it is accepted (RFC 3339)."),
      })
      .optional()
      .describe("The key before the last rotation, during its grace period."),
    expiresAt: time
      .optional()
      .describe("Time until which the key is accepted (RFC 3339). Default: no expiry."),
    revoked: z.boolean().default(false).describe("Refuses the key, and keeps its record."),
    restrictions: z
      .strictObject({
        allowedModels: z
          .array(modelPattern)
          .min(1, "must not be empty: leave it out to allow what the provider allows")
          .max(1000)
          .optional()
          .describe(
            "Models that it may use, among those that the ModelProvider exposes; `*` as " +
              "last character is a wildcard.",
          ),
        allowedCIDRs: z
          .array(cidrSchema)
          .min(1, "must not be empty: leave it out to allow every address")
          .max(1000)
          .optional()
          .describe("Client addresses that may use it."),
        allowedMcpTools: z
          .array(toolName)
          .max(1000)
          .optional()
          .describe("Tools that it may call, among those that the Provider allows."),
        deniedMcpTools: z.array(toolName).max(1000).optional().describe("Tools it may not call."),
      })
      .prefault({})
      .describe("Restrictions that narrow the provider's policy; they cannot widen it."),
    limits: z
      .strictObject({
        maxTokensPerDay: z
          .int()
          .min(0)
          .optional()
          .describe("Input and output tokens per day (UTC)."),
        maxRequestsPerDay: z.int().min(0).optional().describe("Requests per day (UTC)."),
        requestsPerMinute: z
          .int()
          .min(0)
          .optional()
          .describe("Requests in any 60 seconds. A batch of MCP messages counts once."),
      })
      .prefault({})
      .describe("Limits of this key."),
    guards: guardsSchema
      .optional()
      .describe(
        "Prompt-injection guards of its LLM calls, besides those of its ModelProvider's " +
          "externalAccess, which they can only tighten. If one of the bindings does not exist, " +
          "every call is denied.",
      ),
  }),
  [
    {
      test: ({ modelProvider, provider }) =>
        (modelProvider === undefined) !== (provider === undefined),
      cel: "has(self.modelProvider) != has(self.provider)",
      field: "modelProvider",
      message: "must be given, or provider; exactly one of them",
    },
    {
      test: ({ provider, restrictions }) =>
        provider !== undefined ||
        (restrictions.allowedMcpTools === undefined && restrictions.deniedMcpTools === undefined),
      cel:
        "has(self.provider) || !has(self.restrictions) || " +
        "(!has(self.restrictions.allowedMcpTools) && !has(self.restrictions.deniedMcpTools))",
      field: "restrictions",
      message: "allowedMcpTools and deniedMcpTools are for keys of a provider",
    },
    {
      test: ({ provider, restrictions, limits }) =>
        provider === undefined ||
        (restrictions.allowedModels === undefined && limits.maxTokensPerDay === undefined),
      cel:
        "!has(self.provider) || ((!has(self.restrictions) || " +
        "!has(self.restrictions.allowedModels)) && (!has(self.limits) || " +
        "!has(self.limits.maxTokensPerDay)))",
      field: "provider",
      message: "excludes restrictions.allowedModels and limits.maxTokensPerDay",
    },
    {
      test: ({ provider, guards }) => provider === undefined || guards === undefined,
      cel: "!has(self.provider) || !has(self.guards)",
      field: "guards",
      message: "are for keys of a modelProvider: only LLM calls are scanned",
    },
  ],
);

export const accessKeySchema = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("AccessKey"),
  metadata: metadataSchema,
  spec: specSchema,
  status: statusSchema({
    tokensToday: z.int().optional().describe("Tokens used today (UTC)."),
    requestsToday: z.int().optional().describe("Requests made today (UTC)."),
  }).optional(),
});

export type AccessKeySpec = z.output<typeof specSchema>;

export interface AccessKey extends ResourceBase {
  readonly kind: "AccessKey";
  readonly spec: AccessKeySpec;
}

export const accessKeyKind = defineKind({
  kind: "AccessKey",
  apiVersion: API_VERSION,
  collection: "accessKeys",
  names: { singular: "access-key", plural: "access-keys", short: "ak" },
  reference:
    "Lets a developer outside the cluster call one ModelProvider, or one MCP server. " +
    "`apiVersion: svc.io/v1`.",
  schema: accessKeySchema,
  build: ({ spec }, base): AccessKey => ({ kind: "AccessKey", ...base, spec }),
  view: ({ spec }) => ({ spec }),
  usage: {
    counter: (resource) => {
      const { modelProvider, provider } = resource?.spec ?? {};
      if (modelProvider !== undefined) return { kind: "access-key", modelProvider };
      return provider === undefined ? undefined : { kind: "access-key", provider };
    },
    fields: ["tokensToday", "requestsToday", "costTodayUSD", "unpricedToday", "inFlight"],
  },
  crd: {
    columns: [
      { name: "ModelProvider", type: "string", jsonPath: ".spec.modelProvider" },
      { name: "Provider", type: "string", jsonPath: ".spec.provider" },
      ...READY_COLUMNS,
      { name: "Expires", type: "string", jsonPath: ".spec.expiresAt" },
      { name: "Tokens", type: "integer", jsonPath: ".status.tokensToday" },
      { name: "Requests", type: "integer", jsonPath: ".status.requestsToday" },
      ...LAST_COLUMNS,
    ],
  },
  columns: [
    NAME,
    {
      title: "PROVIDER",
      cell: ({ spec }) => text(spec?.["modelProvider"] ?? spec?.["provider"]),
    },
    READY,
    REASON,
    TOKENS,
    REQUESTS,
    { title: "EXPIRES", cell: ({ spec }, now) => expiry(spec?.["expiresAt"], now) },
    {
      title: "MODELS",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "restrictions", "allowedModels")), "*"),
    },
    {
      title: "CIDRS",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "restrictions", "allowedCIDRs")), "any"),
    },
    {
      title: "ROTATED-KEY-UNTIL",
      wide: true,
      cell: ({ spec }, now) => expiry(field(spec, "previous", "expiresAt"), now, NONE),
    },
    {
      title: "TOOLS",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "restrictions", "allowedMcpTools")), "*"),
    },
    {
      title: "DENIED-TOOLS",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "restrictions", "deniedMcpTools")), NONE),
    },
    { title: "GUARDS", wide: true, cell: ({ spec }) => guardNames(spec?.["guards"]) },
    MESSAGE,
  ],
});
