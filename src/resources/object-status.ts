/**
 * The `status` of our kinds in Kubernetes: written by this service, accepted and ignored when read.
 */
import { z } from "zod";

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
      ...fields,
    })
    .describe("Written by svc.");
}
