/** Settings of an audit chain, passed between processes as JSON. */
import * as z from "zod";

const thresholdSchema = z.union([
  z.strictObject({ kind: z.literal("bytes"), bytes: z.int().min(0) }),
  z.strictObject({ kind: z.literal("fraction"), fraction: z.number().min(0).max(1) }),
]);

/** Settings shared by the chains of a folder. */
export const auditFolderSchema = z.strictObject({
  /** Folder of all chains. */
  dir: z.string(),
  keyFile: z.string(),
  onFailure: z.enum(["refuse", "continue"]),
  sync: z.enum(["group", "none"]),
  /** See {@link SpaceOptions}. */
  space: z
    .strictObject({
      low: thresholdSchema.optional(),
      full: thresholdSchema.optional(),
      maxBytes: z.int().min(1).optional(),
    })
    .default({}),
});

/** Settings of one chain. */
export const auditSchema = auditFolderSchema.extend({
  /** Name of this process's chain. */
  writer: z.string(),
});

export type AuditFolder = z.output<typeof auditFolderSchema>;
