/**
 * AccessKey: lets a developer outside the cluster call one ModelProvider through the gateway. It
 * holds the SHA-256 of the key, never the key. Restrictions only narrow what the provider allows.
 */
import { z } from "zod";
import { cidrSchema } from "./cidr.ts";
import type { ResourceBase, UnsupportedField } from "./metadata.ts";
import { API_VERSION, metadataSchema, nameSchema } from "./metadata.ts";
import { MODEL_PATTERN } from "./model-names.ts";
import { statusSchema } from "./object-status.ts";

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

const specSchema = z
  .strictObject({
    modelProvider: nameSchema
      .optional()
      .describe(
        "Name of the ModelProvider that it gives access to, in the same namespace. Either this or provider.",
      ),
    provider: nameSchema
      .optional()
      .describe(
        "Name of the Provider that it gives access to, in the same namespace. Either this or modelProvider.",
      ),
    keySHA256: sha256.describe(
      "SHA-256 of the raw key, in hex. `svc access-key create` generates it; the key itself is not stored.",
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
            "Models that it may use, among those that the ModelProvider exposes; `*` as last character is a wildcard.",
          ),
        allowedCIDRs: z
          .array(cidrSchema)
          .min(1, "must not be empty: leave it out to allow every address")
          .max(1000)
          .optional()
          .describe("Client addresses that may use it."),
        allowedMcpTools: z
          .array(toolName)
          .optional()
          .describe("Tools that it may call, among those that the Provider allows."),
        deniedMcpTools: z.array(toolName).optional().describe("Tools it may not call."),
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
      })
      .prefault({})
      .describe("Limits of this key."),
  })
  .superRefine((spec, context) => {
    if ((spec.modelProvider === undefined) === (spec.provider === undefined)) {
      context.addIssue({
        code: "custom",
        path: ["modelProvider"],
        message: "must be given, or provider; exactly one of them",
      });
    }
  });

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

export const ACCESS_KEY_UNSUPPORTED: readonly UnsupportedField[] = [
  { path: ["spec", "provider"] },
  { path: ["spec", "restrictions", "allowedMcpTools"] },
  { path: ["spec", "restrictions", "deniedMcpTools"] },
];
