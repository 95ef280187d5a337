/** Fills in `envoy/bootstrap.yaml`. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

export function writeBootstrap(template: string, runDir: string, nodeId: string): string {
  const values: Record<string, string> = { RUN_DIR: runDir, NODE_ID: nodeId };
  const text = readFileSync(template, "utf8").replaceAll(
    /\$\{(\w+)\}/g,
    (whole, name: string) => values[name] ?? whole,
  );
  const file = path.join(runDir, "bootstrap.yaml");
  writeFileSync(file, text);
  return file;
}
