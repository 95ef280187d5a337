/**
 * The `status` of our kinds in Kubernetes: written by this service, accepted and ignored when read.
 */
import * as z from "zod";
import type { PrinterColumn } from "./kind.ts";

/** Printer columns that every CRD has, in the order in which its own are placed between them. */
export const READY_COLUMNS: readonly PrinterColumn[] = [
  { name: "Ready", type: "boolean", jsonPath: ".status.ready" },
  { name: "Reason", type: "string", jsonPath: ".status.reason" },
];
export const LAST_COLUMNS: readonly PrinterColumn[] = [
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  { name: "Message", type: "string", jsonPath: ".status.message", priority: 1 },
];

/** Kubernetes' `metav1.Condition`. Its limits are not checked: a status is ignored when read. */
const conditionSchema = z.looseObject({
  type: z.string().describe("What the condition is about: Ready, Programmed."),
  status: z.enum(["True", "False", "Unknown"]).describe("Whether it holds."),
  reason: z.string().describe("Reason of the status as a constant."),
  message: z.string().describe("Reason for people."),
  lastTransitionTime: z.string().describe("When the status last changed (RFC 3339)."),
  observedGeneration: z.int().optional().describe("The metadata.generation it is about."),
});

/**
 * Fields common to every kind's status, and the given ones. Unlike a spec it may have further
 * fields, written by an older or newer version.
 */
export function statusSchema<Shape extends z.ZodRawShape>(fields: Shape) {
  return z
    .looseObject({
      ready: z.boolean().optional().describe("Whether it is in use."),
      reason: z
        .string()
        .optional()
        .describe("Reason as a constant: Ready, SecretDoesNotExist, ..."),
      message: z.string().optional().describe("Reason for people."),
      observedGeneration: z
        .int()
        .optional()
        .describe("The metadata.generation this status is about."),
      conditions: z
        .array(conditionSchema)
        .optional()
        .meta({
          description: "Its state as conditions, by type.",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["type"],
        }),
      ...fields,
    })
    .describe("Written by svc.");
}
