/** Fills in `envoy/bootstrap.yaml`. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";

export interface BootstrapValues {
  readonly runDir: string;
  readonly nodeId: string;
  /** Heap size at which Envoy accepts no more requests, in bytes. */
  readonly maxHeapBytes: number;
}

/** @returns the written file, in the run folder */
export function writeBootstrap(
  template: string,
  { runDir, nodeId, maxHeapBytes }: BootstrapValues,
): string {
  const values: Record<string, string> = {
    RUN_DIR: runDir,
    NODE_ID: nodeId,
    MAX_HEAP_BYTES: String(maxHeapBytes),
  };
  const text = readFileSync(template, "utf8").replaceAll(
    /\$\{(\w+)\}/g,
    (whole, name: string) => values[name] ?? whole,
  );
  const file = path.join(runDir, "bootstrap.yaml");
  writeFileSync(file, text);
  return file;
}
