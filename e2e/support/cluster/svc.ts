/** The command line against the laboratory, as its users run it. */
import { spawn } from "node:child_process";
import path from "node:path";
import { ROOT } from "../build.ts";
import { findHelm } from "./helm.ts";

export interface SvcResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `svc`, whatever its exit code. */
export function svc(kubeconfig: string, args: readonly string[], input = ""): Promise<SvcResult> {
  const program = path.join(ROOT, "dist/svc.js");
  const env = { ...process.env, SVC_HELM: findHelm(), KUBECONFIG: "" };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args, "--kubeconfig", kubeconfig], { env });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    child.on("error", reject);
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}
