/** Quantities of Kubernetes, such as `500m` and `2Gi`. */
import * as z from "zod";
import { boundedRecord } from "./bounded-record.ts";

/** A quantity that is not negative. */
const QUANTITY = /^(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$/;

/** Name of a resource such as `cpu` or `nvidia.com/gpu`. */
const RESOURCE_NAME = /^(?:[A-Za-z0-9][A-Za-z0-9.-]{0,252}\/)?[A-Za-z0-9][-A-Za-z0-9_.]{0,62}$/;

/** A quantity as text. An integer may be written without quotes, as in Kubernetes. */
export const quantitySchema = z
  .union(
    [z.string().max(64).regex(QUANTITY), z.int().min(0)],
    "must be a quantity such as 500m, 2 or 1Gi",
  )
  .transform(String)
  .meta({ "x-kubernetes-int-or-string": true, pattern: QUANTITY.source, maxLength: 64 });

const quantitiesSchema = boundedRecord(quantitySchema, {
  max: 32,
  key: RESOURCE_NAME,
  message: "must be named as resources of Kubernetes are: cpu, memory, nvidia.com/gpu",
});

export const resourcesSchema = z.strictObject({
  requests: quantitiesSchema.optional().describe("What is set aside for it: cpu, memory, ..."),
  limits: quantitiesSchema.optional().describe("The most that it may use: cpu, memory, ..."),
});
