/**
 * Lists of guards: which GuardBindings apply to calls, and what they scan. An Agent, an AccessKey
 * and the external access of a ModelProvider have one each, of the same form.
 */
import * as z from "zod";
import { keyedList } from "./keyed-list.ts";
import { nameSchema } from "./metadata.ts";

export const guardScanSchema = z.strictObject({
  prompts: z.boolean().default(true).describe("Scan prompts."),
  responses: z.boolean().default(false).describe("Scan responses."),
  toolResults: z
    .strictObject({
      tools: z
        .array(z.string().min(1).max(256))
        .max(256)
        .describe('Tools whose results are scanned; ["*"] is every tool.'),
    })
    .optional()
    .describe("Scan tool results. Default: none."),
});

const guardSchema = z.strictObject({
  binding: nameSchema.describe("Name of a GuardBinding in the same namespace."),
  enforcement: z
    .enum(["audit", "enforce"])
    .optional()
    .describe("Enforcement; can only tighten the binding's."),
  scan: guardScanSchema.prefault({}).describe("Parts that are scanned."),
});

export type GuardItem = z.output<typeof guardSchema>;
export type GuardScan = z.output<typeof guardScanSchema>;

/** At most 16 guards, each of another binding. */
export const guardsSchema = keyedList(guardSchema, "binding", 16);
