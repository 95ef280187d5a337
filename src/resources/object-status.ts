/** The `status` of our kinds in Kubernetes: written by us, accepted and unused when read. */
import { z } from "zod";

/**
 * Fields every kind's status has, and those given. Unlike a spec it may hold more: an older or
 * newer version wrote it.
 */
export function statusSchema<Shape extends z.ZodRawShape>(fields: Shape) {
  return z
    .looseObject({
      ready: z.boolean().optional().describe("Whether it is in use."),
      reason: z.string().optional().describe("Why, as a constant: Ready, SecretDoesNotExist, ..."),
      message: z.string().optional().describe("Why, for a reader."),
      observedGeneration: z
        .int()
        .optional()
        .describe("The metadata.generation this status is about."),
      ...fields,
    })
    .describe("Written by svc.");
}
