/** The official conformance suite, as its users run it. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { ROOT } from "../build.ts";
import { freePort } from "../stack.ts";

const SUITE = path.join(ROOT, "node_modules/@modelcontextprotocol/conformance/dist/index.js");

/** Results of a run: the status of each check, by `<scenario> <check> <number of the check>`. */
export type ConformanceResult = ReadonlyMap<string, string>;

interface Check {
  readonly id: string;
  readonly status: string;
}

/** @param args of `conformance`, without `--output-dir` */
export async function runConformance(args: readonly string[]): Promise<ConformanceResult> {
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-conformance-"));
  try {
    const child = spawn(process.execPath, [SUITE, ...args, "--output-dir", dir], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (part: Buffer) => (output += part.toString()));
    await new Promise((resolve) => child.on("close", resolve));
    const results = new Map<string, string>();
    for (const file of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
      if (path.basename(file) !== "checks.json") continue;
      // The folder of a scenario ends with the time of its run.
      const scenario = path.dirname(file).replace(/-\d{4}-\d{2}-\d{2}T.*$/, "");
      const checks = JSON.parse(readFileSync(path.join(dir, file), "utf8")) as readonly Check[];
      const seen = new Map<string, number>();
      for (const { id, status } of checks) {
        const number = (seen.get(id) ?? 0) + 1;
        seen.set(id, number);
        results.set(`${scenario} ${id} ${number}`, status);
      }
    }
    if (results.size === 0) throw new Error(`the suite ran nothing:\n${output}`);
    return results;
  } finally {
    rmSync(dir, { recursive: true });
  }
}

export interface ConformanceServer {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Starts the server that the scenarios need. */
export async function startConformanceServer(): Promise<ConformanceServer> {
  const port = await freePort();
  const program = path.join(ROOT, "e2e/support/mcp/conformance-server.ts");
  const child = spawn(process.execPath, [program, String(port)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.once("data", () => resolve());
    child.once("exit", () => reject(new Error("the conformance server ended")));
  });
  return {
    url: `http://localhost:${port}/mcp`,
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
    },
  };
}
