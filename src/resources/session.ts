/** Session: one run of an Agent. Its fields are ours; the phases are those of the interface. */
import * as z from "zod";
import { MESSAGE, NAME, READY, REASON, text } from "./columns.ts";
import { envListSchema } from "./env-list.ts";
import { defineKind } from "./kind.ts";
import type { ResourceBase } from "./metadata.ts";
import { API_VERSION, metadataSchema, nameSchema } from "./metadata.ts";
import { LAST_COLUMNS, READY_COLUMNS, statusSchema } from "./object-status.ts";
import { withRules } from "./rule.ts";

/** States of a Session. */
export const SESSION_PHASES = ["Running", "Complete", "Error"] as const;

const specSchema = withRules(
  z.strictObject({
    agent: nameSchema.describe("Name of the Agent that runs, in the same namespace."),
    title: z.string().max(65_536).optional().describe("Its initial prompt."),
    env: envListSchema.optional().describe("Further environment variables; no credentials."),
  }),
  [
    {
      // The parser sees one version of an object only.
      test: () => true,
      cel: "self == oldSelf",
      message: "cannot be changed: create another Session",
    },
  ],
);

export const sessionSchema = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal("Session"),
  metadata: metadataSchema,
  spec: specSchema,
  status: statusSchema({
    phase: z.enum(SESSION_PHASES).optional().describe("State."),
    response: z.string().optional().describe("The agent's final reply."),
    startTime: z.string().optional().describe("When it started (RFC 3339)."),
    completionTime: z.string().optional().describe("When it ended (RFC 3339)."),
  }).optional(),
});

export type SessionSpec = z.output<typeof specSchema>;

export interface Session extends ResourceBase {
  readonly kind: "Session";
  readonly spec: SessionSpec;
}

export const sessionKind = defineKind({
  kind: "Session",
  apiVersion: API_VERSION,
  collection: "sessions",
  names: { singular: "session", plural: "sessions", short: "sess" },
  reference:
    "One run of an Agent. `apiVersion: svc.io/v1`. Read by the controller of a cluster only.",
  schema: sessionSchema,
  readers: ["controller"],
  build: ({ spec }, base): Session => ({ kind: "Session", ...base, spec }),
  view: ({ spec }) => ({ spec }),
  crd: {
    columns: [
      { name: "Agent", type: "string", jsonPath: ".spec.agent" },
      { name: "Phase", type: "string", jsonPath: ".status.phase" },
      { name: "Started", type: "string", jsonPath: ".status.startTime", priority: 1 },
      { name: "Completed", type: "string", jsonPath: ".status.completionTime", priority: 1 },
      ...READY_COLUMNS,
      ...LAST_COLUMNS,
    ],
  },
  columns: [
    NAME,
    { title: "AGENT", cell: ({ spec }) => text(spec?.["agent"]) },
    READY,
    REASON,
    MESSAGE,
  ],
});
