/** Helm without a cluster: rendering and linting of the chart. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

export const CHART = path.resolve(import.meta.dirname, "../../../charts/svc");

export interface HelmResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs Helm, whatever its exit code. */
export function helm(args: readonly string[], input = ""): HelmResult {
  const { status, stdout, stderr } = spawnSync(findHelm(), args, { encoding: "utf8", input });
  return { code: status, stdout, stderr };
}

/**
 * Renders the chart as release `svc` in the namespace `svc-system`.
 *
 * @param values YAML
 */
export function render(values: string, args: readonly string[] = []): HelmResult {
  return helm(["template", "svc", CHART, "-n", "svc-system", "-f", "-", ...args], values);
}

/** @throws Error that says how to get Helm */
export function findHelm(): string {
  const candidates = [
    process.env["SVC_HELM"],
    ...(process.env["PATH"] ?? "").split(path.delimiter).map((dir) => path.join(dir, "helm")),
    path.join(homedir(), ".cache/svc-k8s/bin/helm"),
  ];
  for (const file of candidates) {
    if (file !== undefined && existsSync(file)) return file;
  }
  throw new Error(
    "There is no helm: set SVC_HELM to its path, or run the tests by `make cluster`.",
  );
}
