/**
 * Agent: a program driven by an LLM, and the resources that it may use. Fields named by the
 * interface.
 */
import * as z from "zod";
import { absolutePathSchema } from "./absolute-path.ts";
import { POD_RULES, podFields } from "./agent-pod.ts";
import { cidrSchema } from "./cidr.ts";
import {
  COST,
  guardNames,
  IN_FLIGHT,
  MESSAGE,
  NAME,
  NONE,
  READY,
  REASON,
  REQUESTS,
  some,
  strings,
  TOKENS,
} from "./columns.ts";
import { guardsSchema } from "./guard-list.ts";
import { defineKind } from "./kind.ts";
import type { ResourceBase } from "./metadata.ts";
import { API_VERSION, DNS_LABEL, metadataSchema, nameSchema } from "./metadata.ts";
import { MODEL_PATTERN } from "./model-names.ts";
import { LAST_COLUMNS, READY_COLUMNS, statusSchema } from "./object-status.ts";
import { withRules } from "./rule.ts";

/** Default UID of agents. */
export const DEFAULT_RUN_AS_USER = 65_532;

/** `<provider>/<model>` or `<provider>/<prefix>*`. */
const MODEL_REF = new RegExp(
  `^${DNS_LABEL.source.slice(1, -1)}/${MODEL_PATTERN.source.slice(1, -1)}$`,
);

export const modelRefSchema = z
  .string()
  .max(320)
  .regex(
    MODEL_REF,
    "must be <provider>/<model>, where <provider> is the name of a ModelProvider; '*' as last " +
      "character is a wildcard",
  );

const webhookSchema = z.strictObject({
  allowCIDRs: z
    .array(cidrSchema)
    .max(256)
    .optional()
    .describe("Source addresses allowed to call it."),
  trackerSignatureSecret: z
    .string()
    .max(1024)
    .optional()
    .describe("Signing secret of the issue tracker, inline."),
});

const rateLimitsSchema = z.strictObject({
  requestsPerMinute: z.int().min(1).optional().describe("Requests in any 60 seconds."),
  maxConcurrentRequests: z.int().min(1).optional().describe("Requests in flight at once."),
  maxTokensPerDay: z.int().min(1).optional().describe("Input and output tokens per day (UTC)."),
  maxTokensPerRequest: z
    .int()
    .min(1)
    .optional()
    .describe(
      "Tokens of one request: its estimated prompt and its maximum answer. Also caps the " +
        "maximum that is requested from the provider.",
    ),
  maxCostPerDayUSD: z
    .number()
    .min(0)
    .optional()
    .describe(
      "US dollars per day (UTC); 429 once reached. Models without a price are not counted.",
    ),
});

const specSchema = withRules(
  z.strictObject({
    models: z
      .array(modelRefSchema)
      .max(1000)
      .default([])
      .describe(
        "Models it may use, each `<provider>/<model>`; the model may hold slashes, and `*` " +
          "as its last character is a wildcard.",
      ),
    system: z
      .string()
      .optional()
      .describe("System prompt of its sessions. Has no effect yet, because there are no sessions."),
    tools: z
      .array(
        z.strictObject({ type: z.string().min(1).describe("custom, web_fetch, web_search, ...") }),
      )
      .optional()
      .describe("Tools of its sessions."),
    triggers: z
      .array(
        z.strictObject({
          webhook: webhookSchema
            .optional()
            .describe("Starts a session by a POST to a secret URL. May be empty."),
        }),
      )
      .optional()
      .describe("Triggers that start it."),
    guards: guardsSchema
      .optional()
      .describe(
        "Prompt-injection guards of its LLM calls. If one of the bindings does not exist, every " +
          "call is denied.",
      ),
    rateLimits: rateLimitsSchema.optional().describe("Limits of its LLM calls."),
    runAsUser: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .default(DEFAULT_RUN_AS_USER)
      .describe("UID it runs as. With 0, `status.phase` is Failed and the agent is not run."),
    filesystem: z
      .strictObject({
        readOnlyPaths: z
          .array(absolutePathSchema)
          .max(256)
          .optional()
          .describe("Paths it may not write."),
        writablePaths: z
          .array(absolutePathSchema)
          .optional()
          .describe("Paths it may write besides its volumes and /tmp."),
      })
      .optional()
      .describe("Confinement of what it may write."),
    packages: z
      .array(z.string().min(1))
      .optional()
      .describe("Packages installed for its sessions."),
    providers: z
      .array(nameSchema)
      .optional()
      .describe("Providers (external services) bound to it. Changing it needs a restart."),
    ...podFields,
  }),
  POD_RULES,
);

export const agentSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("Agent"),
  metadata: metadataSchema,
  spec: specSchema,
  inbound: z
    .strictObject({
      port: z.int().min(1).max(65_535).describe("Port it serves; enables an inbound host name."),
    })
    .optional()
    .describe("Traffic to the agent from outside."),
  status: statusSchema({
    phase: z.string().optional().describe("State, for example Failed."),
    url: z.string().optional().describe("https://<hostname> where inbound is configured."),
    completedRun: z.string().optional().describe("Hash of the run of a task that has ended."),
    webhookUrl: z.string().optional().describe("Address of its webhook."),
    tokensToday: z.int().optional().describe("Tokens used today (UTC)."),
    requestsToday: z.int().optional().describe("Requests made today (UTC)."),
    costTodayUSD: z
      .number()
      .optional()
      .describe("US dollars spent today (UTC), for models with a price."),
  }).optional(),
});

export type AgentSpec = z.output<typeof specSchema>;

export interface Agent extends ResourceBase {
  readonly kind: "Agent";
  readonly spec: AgentSpec;
}

/** Returns whether an Agent is refused because it would run as root. */
export function runsAsRoot({ spec }: Agent): boolean {
  return spec.runAsUser === 0;
}

export const agentKind = defineKind({
  kind: "Agent",
  apiVersion: API_VERSION,
  collection: "agents",
  names: { singular: "agent", plural: "agents", short: "ag" },
  reference:
    "A program driven by an LLM, and the resources that it may use. `apiVersion: svc.io/v1`.",
  schema: agentSchema,
  // These fields have no effect where they are read, and a limit that is not applied must not
  // appear to be.
  unsupported: [
    { path: ["spec", "filesystem"], readers: ["machine", "controller"] },
    { path: ["spec", "triggers"], readers: ["machine"] },
    { path: ["spec", "tools"], readers: ["machine", "controller"] },
    { path: ["spec", "packages"], readers: ["machine", "controller"] },
    { path: ["spec", "volumes"], readers: ["machine"] },
    {
      path: ["spec", "runAsUser"],
      readers: ["machine"],
      matters: (value) => value !== DEFAULT_RUN_AS_USER && value !== 0,
    },
    { path: ["inbound"], readers: ["machine", "controller"] },
  ],
  build: ({ spec }, base): Agent => ({ kind: "Agent", ...base, spec }),
  view: ({ spec }) => ({ spec }),
  usage: {
    counter: () => ({ kind: "agent" }),
    fields: ["tokensToday", "requestsToday", "costTodayUSD", "unpricedToday", "inFlight"],
  },
  crd: {
    columns: [
      ...READY_COLUMNS,
      { name: "Phase", type: "string", jsonPath: ".status.phase" },
      { name: "Cost", type: "number", jsonPath: ".status.costTodayUSD" },
      { name: "Variant", type: "string", jsonPath: ".spec.variant", priority: 1 },
      { name: "Image", type: "string", jsonPath: ".spec.image", priority: 1 },
      { name: "Tokens", type: "integer", jsonPath: ".status.tokensToday", priority: 1 },
      { name: "Requests", type: "integer", jsonPath: ".status.requestsToday", priority: 1 },
      { name: "URL", type: "string", jsonPath: ".status.url", priority: 1 },
      ...LAST_COLUMNS,
    ],
  },
  columns: [
    NAME,
    READY,
    REASON,
    TOKENS,
    REQUESTS,
    COST,
    IN_FLIGHT,
    { title: "MODELS", wide: true, cell: ({ spec }) => some(strings(spec?.["models"]), NONE) },
    { title: "GUARDS", wide: true, cell: ({ spec }) => guardNames(spec?.["guards"]) },
    MESSAGE,
  ],
});
