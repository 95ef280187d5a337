#!/usr/bin/env node
/** The command line's process. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { run } from "../cli/run.ts";
import { socketBackend } from "../cli/socket-backend.ts";
import { clusterOf } from "../cli/target.ts";
import { askSecret, readAll, runProgram } from "../cli/terminal.ts";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
  version: string;
};
const { env, stdin, stdout, stderr } = process;

// A reader that stops early (`svc get ... | head`) is not an error.
stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

const said = (text: string): void => void stderr.write(text);
const code = await run(process.argv.slice(2), {
  root,
  version,
  env,
  stdout: (text) => void stdout.write(text),
  stderr: said,
  stdin: () => readAll(stdin),
  askSecret:
    stdin.isTTY && stderr.isTTY ? (question) => askSecret(question, stdin, said) : undefined,
  now: Date.now,
  sleep: (ms) => sleep(ms),
  random: randomBytes,
  fetch,
  runProgram,
  cluster: async (target) => {
    const { clusterAccess } = await import("../cli/cluster/access.ts");
    return clusterAccess(target);
  },
  backend: async (target) => {
    const cluster = clusterOf(target, env);
    if (cluster === undefined) return socketBackend(target, env);
    // Loaded when it is used: commands on one machine start without the Kubernetes client.
    const { clusterBackend } = await import("../cli/cluster/backend.ts");
    return clusterBackend(cluster);
  },
});
// Not for code 0, because svc up keeps running. A failed command may have left something open that
// would keep the process alive.
if (code !== 0) process.exit(code);
