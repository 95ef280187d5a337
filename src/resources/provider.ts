/**
 * Provider: an external service that agents call through their sidecar, and the permitted actions
 * and resources.
 */
import * as z from "zod";
import {
  field,
  MESSAGE,
  NAME,
  NONE,
  READY,
  REASON,
  REQUESTS,
  some,
  strings,
  text,
} from "./columns.ts";
import { defineKind } from "./kind.ts";
import { mcpPolicySchema, mcpServerSchema } from "./mcp-server.ts";
import type { ResourceBase } from "./metadata.ts";
import { API_VERSION, metadataSchema, subdomainSchema } from "./metadata.ts";
import { LAST_COLUMNS, READY_COLUMNS, statusSchema } from "./object-status.ts";
import { withRules } from "./rule.ts";
import { SERVICE_TYPES } from "./service-types.ts";

/** `pulls:read`, `s3:*`, `*`: each `*` matches any text. */
const actionPattern = z
  .string()
  .max(256)
  .regex(/^[^\s\p{C}]+$/u, "must be an action such as pulls:read, or a pattern such as pulls:*");

const glob = z
  .string()
  .min(1)
  .max(1024)
  .regex(/^[^\p{C}]+$/u, "must hold no control character");

/** A host name without a port; a leading `*.` matches any labels. */
const hostPattern = z
  .string()
  .max(253)
  .regex(
    /^(?:\*\.)?(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
    "must be a host name in lower case, such as api.example.com or *.example.com",
  );

const pathGlob = z
  .string()
  .max(1024)
  .regex(/^[/*][^\s\p{C}?#]*$/u, "must be a path such as /repos/*/issues/**");

export const policySchema = z.strictObject({
  allow: z
    .array(actionPattern)
    .max(1000)
    .optional()
    .describe(
      "Actions that are allowed; if the list is set, other actions are denied. `*` matches " +
        "any text.",
    ),
  deny: z
    .array(actionPattern)
    .max(1000)
    .default([])
    .describe("Actions that are denied. Checked before allow."),
  httpRules: z
    .array(
      z.strictObject({
        methods: z
          .array(z.string().regex(/^(?:[A-Z]+|\*)$/, "must be a method in capitals, or *"))
          .min(1)
          .default(["*"])
          .describe("Methods; `*` is every one."),
        paths: z
          .array(pathGlob)
          .min(1)
          .describe("Paths as globs: `*` within a segment, `**` across them."),
        action: z.enum(["allow", "deny"]).describe("Action of the rule if it is the first match."),
      }),
    )
    .max(1000)
    .default([])
    .describe(
      "Rules on method and path: the first match applies; if there are rules, a request " +
        "that matches none is denied.",
    ),
  mcp: mcpPolicySchema
    .optional()
    .describe("What may be used of an MCP server; for `type: mcp` only."),
});

export const scopeSchema = z.strictObject({
  repositories: z
    .array(glob)
    .max(1000)
    .optional()
    .describe("GitHub repositories, `owner/name`, as globs; without regard to case."),
  arns: z.array(glob).max(1000).optional().describe("AWS resources, ARNs as globs."),
  projects: z.array(glob).max(1000).optional().describe("Google Cloud projects."),
  subscriptions: z.array(glob).max(1000).optional().describe("Azure subscriptions."),
  resourceGroups: z
    .array(glob)
    .max(1000)
    .optional()
    .describe("Azure resource groups, `<subscription>/<group>`."),
  containers: z
    .array(glob)
    .max(1000)
    .optional()
    .describe("Azure blob containers, `<account>/<container>`."),
  channels: z.array(glob).max(1000).optional().describe("Chat channels."),
});

export const auditSchema = z.strictObject({
  enforcement: z
    .enum(["enforce", "audit"])
    .default("enforce")
    .describe("`enforce` answers violations with 403; `audit` forwards and records them."),
  logRequests: z
    .boolean()
    .default(false)
    .describe("One log line for each request, also at the default log level of `svc run`."),
  toolArguments: z
    .boolean()
    .optional()
    .describe(
      "Records the arguments of calls of MCP tools, without secrets and personal data, at most " +
        "4,096 characters of them. Default: false. For `type: mcp` only.",
    ),
});

const providerFields = z.strictObject({
  type: z.enum(SERVICE_TYPES).describe("Kind of the service."),
  mcp: mcpServerSchema.optional().describe("The MCP server; required for `type: mcp`."),
  hosts: z
    .array(hostPattern)
    .min(1)
    .max(100)
    .optional()
    .describe("Hosts that are intercepted. Default: the service's own."),
  auth: z
    .strictObject({
      type: z.string().min(1).max(64).describe("How it authenticates: see the service's page."),
      secretRef: subdomainSchema.describe(
        "Name of a Secret in the same namespace; its keys are the service's.",
      ),
    })
    .optional()
    .describe(
      "The real credential, which agents never see. Required, unless an MCP server needs none.",
    ),
  config: z
    .record(z.string(), z.string().max(4096))
    .default({})
    .describe("The service's own settings: see its page."),
  policy: policySchema.prefault({}).describe("Actions that agents may perform."),
  scope: scopeSchema.prefault({}).describe("Resources on which they may act."),
  audit: auditSchema.prefault({}).describe("Handling of violations."),
  externalAccess: z
    .strictObject({
      enabled: z
        .boolean()
        .default(false)
        .describe("Must be true for requests from outside the cluster."),
      maxRequestsPerDay: z.int().min(0).optional().describe("Requests per day across all keys."),
    })
    .optional()
    .describe("Use through the MCP gateway; for `type: mcp` only."),
});

const specSchema = withRules(providerFields, [
  {
    test: ({ type, mcp }) => (type === "mcp") === (mcp !== undefined),
    cel: "(self.type == 'mcp') == has(self.mcp)",
    field: "mcp",
    message: "must be given if type is mcp, and only then",
  },
  {
    test: ({ type, auth }) => type === "mcp" || auth !== undefined,
    cel: "self.type == 'mcp' || has(self.auth)",
    field: "auth",
    message: "must be given",
  },
  {
    test: ({ type, policy }) => type === "mcp" || policy.mcp === undefined,
    cel: "self.type == 'mcp' || !has(self.policy) || !has(self.policy.mcp)",
    field: "policy",
    message: "has mcp, which is for type mcp only",
  },
  {
    test: ({ type, mcp, externalAccess }) =>
      externalAccess?.enabled !== true || (type === "mcp" && mcp?.transport !== "stdio"),
    cel:
      "!has(self.externalAccess) || !self.externalAccess.enabled || " +
      "(self.type == 'mcp' && has(self.mcp) && self.mcp.transport != 'stdio')",
    field: "externalAccess",
    message: "is for MCP servers with a URL: type mcp, transport http or sse",
  },
]);

export const providerSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("Provider"),
  metadata: metadataSchema,
  spec: specSchema,
  status: statusSchema({
    requestsToday: z
      .int()
      .optional()
      .describe("External requests made today (UTC), across all access keys."),
  }).optional(),
});

export type ProviderSpec = z.output<typeof specSchema>;

export interface Provider extends ResourceBase {
  readonly kind: "Provider";
  readonly spec: ProviderSpec;
}

export const providerKind = defineKind({
  kind: "Provider",
  apiVersion: API_VERSION,
  collection: "providers",
  names: { singular: "provider", plural: "providers", short: "prov" },
  reference: "An external service that agents call through their sidecar. `apiVersion: svc.io/v1`.",
  schema: providerSchema,
  build: ({ spec }, base): Provider => ({ kind: "Provider", ...base, spec }),
  view: ({ spec }) => ({ spec }),
  usage: { counter: () => ({ kind: "provider" }), fields: ["requestsToday"] },
  crd: {
    columns: [
      { name: "Type", type: "string", jsonPath: ".spec.type" },
      { name: "Enforcement", type: "string", jsonPath: ".spec.audit.enforcement" },
      ...READY_COLUMNS,
      ...LAST_COLUMNS,
    ],
  },
  columns: [
    NAME,
    { title: "TYPE", cell: ({ spec }) => text(spec?.["type"]) },
    { title: "ENFORCEMENT", cell: ({ spec }) => text(field(spec, "audit", "enforcement")) },
    READY,
    REASON,
    { ...REQUESTS, wide: true },
    { title: "TRANSPORT", wide: true, cell: ({ spec }) => text(field(spec, "mcp", "transport")) },
    { title: "URL", wide: true, cell: ({ spec }) => text(field(spec, "mcp", "url")) },
    {
      title: "EXTERNAL",
      wide: true,
      cell: ({ spec }) => (field(spec, "externalAccess", "enabled") === true ? "yes" : "no"),
    },
    {
      title: "ALLOW",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "policy", "allow")), "*"),
    },
    {
      title: "DENY",
      wide: true,
      cell: ({ spec }) => some(strings(field(spec, "policy", "deny")), NONE),
    },
    MESSAGE,
  ],
});
