/**
 * The resolved guards of one agent: the content of the ConfigMap `svc-{workload}-guards`, for
 * people and tools; the gateway resolves guards itself. It contains no secret, only the name of the
 * Secret and its key.
 */
import * as z from "zod";
import {
  classifierSchema,
  guardAuditSchema,
  guardEnforcementSchema,
  thresholdsSchema,
} from "./guard-binding.ts";
import { guardScanSchema } from "./guard-list.ts";
import { nameSchema } from "./metadata.ts";

const guardSpecSchema = z.strictObject({
  /** Name of the GuardBinding. */
  binding: nameSchema,
  classifier: classifierSchema,
  thresholds: thresholdsSchema,
  /** The stricter of the binding's and the agent's. */
  enforcement: guardEnforcementSchema,
  timeoutMs: z.int(),
  audit: guardAuditSchema,
  scan: guardScanSchema,
});

export const guardSpecsSchema = z.strictObject({
  version: z.literal(1),
  /** `<namespace>/<name>`. */
  workload: z.string(),
  guards: z.array(guardSpecSchema),
});

export type GuardSpec = z.output<typeof guardSpecSchema>;
export type GuardSpecs = z.output<typeof guardSpecsSchema>;
