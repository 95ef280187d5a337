/** Resources of the MCP gateway. */
import { createHash } from "node:crypto";
import { rawKey } from "../resources.ts";

export interface McpProviderOptions {
  readonly url: string;
  readonly transport?: "http" | "sse";
  /** YAML of further fields of the spec, in flow style by line. */
  readonly spec?: readonly string[];
}

export function mcpProviderYaml(name: string, options: McpProviderOptions): string {
  const { url, transport = "http", spec = [] } = options;
  return [
    "apiVersion: svc.io/v1",
    "kind: Provider",
    `metadata: {name: ${name}}`,
    "spec:",
    "  type: mcp",
    `  mcp: {transport: ${transport}, url: "${url}"}`,
    ...(spec.some((line) => line.startsWith("externalAccess"))
      ? []
      : ["  externalAccess: {enabled: true}"]),
    ...spec.map((line) => `  ${line}`),
    "",
  ].join("\n");
}

/** The key's raw form is `rawKey(name)`. */
export function mcpKeyYaml(name: string, provider: string, spec: readonly string[] = []): string {
  return [
    "apiVersion: svc.io/v1",
    "kind: AccessKey",
    `metadata: {name: ${name}}`,
    "spec:",
    `  provider: ${provider}`,
    `  keySHA256: ${createHash("sha256").update(rawKey(name)).digest("hex")}`,
    ...spec.map((line) => `  ${line}`),
    "",
  ].join("\n");
}
