/**
 * The resolved providers of one agent: the content of the ConfigMap `svc-{workload}-providers`,
 * which its sidecar reads. It contains no secret, only the names of the environment variables that
 * hold them.
 */
import * as z from "zod";
import { commandSchema } from "./mcp-server.ts";
import { nameSchema } from "./metadata.ts";
import { auditSchema, policySchema, scopeSchema } from "./provider.ts";
import { SERVICE_TYPES } from "./service-types.ts";

const bindingSchema = z.strictObject({
  /** Name of the Provider. */
  name: nameSchema,
  type: z.enum(SERVICE_TYPES),
  /** undefined for the plugin's own. */
  hosts: z.array(z.string()).optional(),
  auth: z.strictObject({
    type: z.string(),
    /** Environment variable of each of the Secret's keys. */
    env: z.record(z.string(), z.string()),
  }),
  config: z.record(z.string(), z.string()),
  policy: policySchema,
  scope: scopeSchema,
  audit: auditSchema,
  /** Only of a Provider of type `mcp`. */
  mcp: z
    .strictObject({
      transport: z.enum(["http", "sse", "stdio"]),
      /** Host under which agents call it. */
      host: z.string(),
      /** Path of its endpoint, with its query. */
      path: z.string(),
      /** Program and arguments; only with the transport `stdio`. */
      command: commandSchema.optional(),
    })
    .optional(),
});

export const bindingSpecsSchema = z.strictObject({
  version: z.literal(1),
  /** `<namespace>/<name>`. */
  workload: z.string(),
  bindings: z.array(bindingSchema),
});

export type BindingSpec = z.output<typeof bindingSchema>;
/** The MCP server of a binding. */
export type BoundMcpServer = NonNullable<BindingSpec["mcp"]>;
export type BindingSpecs = z.output<typeof bindingSpecsSchema>;
