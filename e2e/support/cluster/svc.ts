/** The command line against the laboratory, as its users run it. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import path from "node:path";
import { parse, stringify } from "yaml";
import { ROOT } from "../build.ts";
import { findHelm } from "./helm.ts";

export interface SvcResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Starts `svc`. */
export function spawnSvc(
  kubeconfig: string,
  args: readonly string[],
): ChildProcessWithoutNullStreams {
  const program = path.join(ROOT, "dist/svc.js");
  const env = { ...process.env, SVC_HELM: findHelm(), KUBECONFIG: "" };
  return spawn(process.execPath, [program, ...args, "--kubeconfig", kubeconfig], { env });
}

/** Runs `svc`, whatever its exit code. */
export function svc(kubeconfig: string, args: readonly string[], input = ""): Promise<SvcResult> {
  return new Promise((resolve, reject) => {
    const child = spawnSvc(kubeconfig, args);
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}

/** Returns a kubeconfig with another user, who has a token. */
export function withToken(kubeconfig: string, token: string): string {
  const config = parse(kubeconfig) as { users: { user: object }[] };
  for (const entry of config.users) entry.user = { token };
  return stringify(config);
}
