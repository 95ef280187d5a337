/**
 * GuardBinding: a classifier that finds prompt injection, and what is done about it. Fields named
 * by the interface. Agents, AccessKeys and the external access of ModelProviders name it in their
 * lists of guards.
 */
import * as z from "zod";
import { parseBaseURL } from "./base-url.ts";
import { count, field, MESSAGE, NAME, READY, REASON, text } from "./columns.ts";
import { defineKind } from "./kind.ts";
import type { ResourceBase } from "./metadata.ts";
import { API_VERSION, dataKeySchema, metadataSchema, subdomainSchema } from "./metadata.ts";
import { LAST_COLUMNS, READY_COLUMNS, statusSchema } from "./object-status.ts";
import { celList, withRules } from "./rule.ts";

export const guardEnforcementSchema = z.enum(["enforce", "audit"]);

/** `src/policy/snapshot.ts` holds the same list. */
export const CLASSIFIER_TYPES = ["promptGuard", "stub", "llamaGuard", "custom"] as const;

const score = z.number().min(0).max(1);

/** Headers that carry the request to the classifier itself: another value would break it. */
const RESERVED_HEADERS: readonly string[] = [
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

const authSchema = withRules(
  z.strictObject({
    secretRef: subdomainSchema.describe("Name of a Secret in the same namespace."),
    secretKey: dataKeySchema.default("token").describe("Key in the Secret that holds the value."),
    header: z
      .string()
      .max(256)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be the name of a header")
      .default("Authorization")
      .describe("Header of the request to the classifier."),
    prefix: z
      .string()
      .max(256)
      .regex(/^[\x20-\x7e]*$/, "must be visible ASCII and spaces")
      .default("Bearer ")
      .describe("Text before the value, its space included. Write an empty one for none."),
  }),
  [
    {
      test: ({ header }) => !RESERVED_HEADERS.includes(header.toLowerCase()),
      cel: `!has(self.header) || !(self.header.lowerAscii() in ${celList(RESERVED_HEADERS)})`,
      field: "header",
      message: "must not be a header of the request itself, such as Host or Content-Length",
    },
  ],
);

/** Base URL of a classifier, or of the guard service. */
export const guardEndpointSchema = z
  .string()
  .max(2048)
  .regex(/^https?:\/\/[^\s/?#@\\]+(?:\/[^\s?#\\]*)?$/, "must be an http or https URL without query")
  .superRefine((url, context) => {
    const parsed = parseBaseURL(url);
    if (parsed.kind === "error") context.addIssue({ code: "custom", message: parsed.message });
  });

export const classifierSchema = withRules(
  z.strictObject({
    type: z.enum(CLASSIFIER_TYPES).describe("Kind of the classifier, and its protocol."),
    endpoint: guardEndpointSchema
      .optional()
      .describe("Address of the classifier. Default: the guard service of the installation."),
    model: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe("Model; must be the one of the classifier's image. Default: its only one."),
    auth: authSchema.optional().describe("Header with a secret, for hosted classifiers."),
  }),
  [
    {
      test: ({ type, endpoint }) => type !== "custom" || endpoint !== undefined,
      cel: "self.type != 'custom' || has(self.endpoint)",
      field: "endpoint",
      message: "is required for the type custom",
    },
    {
      test: ({ auth, endpoint }) => auth === undefined || endpoint !== undefined,
      cel: "!has(self.auth) || has(self.endpoint)",
      field: "endpoint",
      message: "is required where auth is given: the secret must not go to a default address",
    },
  ],
);

export const thresholdsSchema = z.strictObject({
  injection: score.default(0.5).describe("Score from which a text is an injection."),
  jailbreak: score.default(0.5).describe("Score from which a text is a jailbreak."),
});

export const guardAuditSchema = z.strictObject({
  savePayload: z
    .boolean()
    .default(true)
    .describe("Store the flagged text, without secrets and personal data, in audit events."),
  maxPayloadChars: z
    .int()
    .min(0)
    .max(100_000)
    .default(2000)
    .describe("Longest text that is stored."),
});

/** Less than Envoy waits for our answer, which is 15 s (`messageTimeoutMs` of `llm/surface.ts`). */
const MAX_TIMEOUT_MS = 10_000;

const specSchema = z.strictObject({
  classifier: classifierSchema.describe("The classifier."),
  thresholds: thresholdsSchema.prefault({}).describe("Scores from which a text is flagged."),
  enforcement: guardEnforcementSchema
    .default("enforce")
    .describe(
      "`enforce` refuses a flagged call with 403; `audit` forwards and records it. Whoever names " +
        "the binding may tighten it.",
    ),
  timeoutMs: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_MS)
    .default(2000)
    .describe("Longest wait for the classifier, in milliseconds; then the call is forwarded."),
  audit: guardAuditSchema.prefault({}).describe("What audit events hold."),
});

export const guardBindingSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("GuardBinding"),
  metadata: metadataSchema,
  spec: specSchema,
  status: statusSchema({}).optional(),
});

export type GuardBindingSpec = z.output<typeof specSchema>;

export interface GuardBinding extends ResourceBase {
  readonly kind: "GuardBinding";
  readonly spec: GuardBindingSpec;
}

export const guardBindingKind = defineKind({
  kind: "GuardBinding",
  apiVersion: API_VERSION,
  collection: "guardBindings",
  names: {
    singular: "guard-binding",
    plural: "guard-bindings",
    short: "gb",
    others: ["guard", "guards"],
  },
  reference:
    "A classifier that finds prompt injection in LLM calls, and what is done about it. " +
    "`apiVersion: svc.io/v1`. A call from which the classifier gives no answer is forwarded, and " +
    "recorded as `GUARD.UNAVAILABLE`.",
  schema: guardBindingSchema,
  build: ({ spec }, base): GuardBinding => ({ kind: "GuardBinding", ...base, spec }),
  view: ({ spec }) => ({ spec }),
  crd: {
    columns: [
      { name: "Classifier", type: "string", jsonPath: ".spec.classifier.type" },
      { name: "Enforcement", type: "string", jsonPath: ".spec.enforcement" },
      ...READY_COLUMNS,
      ...LAST_COLUMNS,
    ],
  },
  columns: [
    NAME,
    { title: "CLASSIFIER", cell: ({ spec }) => text(field(spec, "classifier", "type")) },
    { title: "ENFORCEMENT", cell: ({ spec }) => text(spec?.["enforcement"]) },
    READY,
    REASON,
    { title: "CHECKS", cell: ({ status }) => count(status.checks) },
    { title: "FLAGGED", cell: ({ status }) => count(status.flagged) },
    { title: "UNAVAILABLE", cell: ({ status }) => count(status.unavailable) },
    MESSAGE,
  ],
});
