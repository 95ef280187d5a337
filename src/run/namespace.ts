/** Network, mount, PID and IPC namespaces for one command, held by a process of their own. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import type { CommandResult } from "../interception/redirect.ts";
import { runCommand } from "../interception/run-command.ts";
import { StartError } from "../host/errors.ts";
import { NAMESPACE_READY, NAMESPACE_SCRIPT } from "./namespace-script.ts";
import { type Tools, TOOLS_PATH } from "./tools.ts";

export interface NamespaceOptions {
  readonly tools: Tools;
  /** An empty folder, for mounting. */
  readonly scratchDir: string;
  readonly trustDir: string;
  /** Contains `hosts`, `resolv.conf` and `nsswitch.conf`. */
  readonly etcDir: string;
  readonly workDir: string;
  /** Absolute paths without links; they need not exist. */
  readonly hidden: readonly string[];
}

export interface Namespace {
  /** Pid of the first process in it, as seen from outside. */
  readonly pid: number;
  /** Path of the network namespace, valid as long as it is held. */
  readonly netns: string;
  /** Runs a program in the network namespace only. */
  readonly run: (command: string, args: readonly string[], input: string) => CommandResult;
  /** Ends every process in it. */
  readonly end: () => Promise<void>;
}

const COMMAND_NOT_FOUND = 127;

/** @throws StartError if the machine does not permit it */
export async function createNamespace(options: NamespaceOptions): Promise<Namespace> {
  const { tools, scratchDir, trustDir, etcDir, workDir, hidden } = options;
  const unshare = [
    tools.unshare,
    "--net",
    "--mount",
    "--pid",
    "--ipc",
    "--fork",
    "--kill-child=KILL",
    "--mount-proc",
    "--propagation",
    "private",
  ];
  const script = [
    "/bin/sh",
    "-c",
    NAMESPACE_SCRIPT,
    "svc-namespace",
    scratchDir,
    trustDir,
    etcDir,
    workDir,
    ...hidden,
  ];
  const holder = spawn(tools.setpriv, ["--pdeathsig", "KILL", "--", ...unshare, "--", ...script], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: TOOLS_PATH, LC_ALL: "C" },
    // Outside of the terminal's process group: Ctrl-C is for the command.
    detached: true,
  });
  const gone = new Promise<void>((resolve) => holder.once("close", () => resolve()));
  try {
    await ready(holder);
    const pid = onlyChild(holder.pid as number);
    const netns = `/proc/${pid}/ns/net`;
    return {
      pid,
      netns,
      run: (command, args, input) => {
        const result = runCommand(tools.nsenter, [`--net=${netns}`, "--", command, ...args], input);
        return result.code === COMMAND_NOT_FOUND ? { code: undefined, stderr: "" } : result;
      },
      end: async () => {
        holder.kill("SIGKILL");
        await gone;
      },
    };
  } catch (error) {
    holder.kill("SIGKILL");
    throw error;
  }
}

async function ready(holder: ChildProcess): Promise<void> {
  let said = "";
  holder.stderr?.on(
    "data",
    (data: Buffer) => (said = `${said}${data.toString("utf8")}`.slice(0, 2_000)),
  );
  await new Promise<void>((resolve, reject) => {
    if (holder.stdout !== null)
      createInterface({ input: holder.stdout }).once("line", (line) =>
        line === NAMESPACE_READY ? resolve() : undefined,
      );
    holder.once("error", reject);
    holder.once("close", () => reject(refused(said)));
  });
}

function refused(said: string): StartError {
  const why = said.trim().split("\n").at(-1) ?? "";
  const hint = /not permitted|denied/i.test(why)
    ? "The capability SYS_ADMIN is required, which containers do not have by default (docker " +
      "run --privileged), and the security profile must allow mounts."
    : "The named operation must work for root on this machine.";
  return new StartError(
    "Namespaces for the command could not be created: " +
      `${why === "" ? "no reason was given" : why}. ${hint}`,
  );
}

/** unshare's child, which is the namespace's first process. */
function onlyChild(pid: number): number {
  const child = childrenOf(pid)[0];
  if (child === undefined)
    throw new StartError(
      `The process of the namespace is not found. /proc/${pid}/task/${pid}/children must ` +
        "be readable (CONFIG_PROC_CHILDREN).",
    );
  return child;
}

/** Returns children in the order of their creation. */
export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      .split(" ")
      .filter((text) => text.trim() !== "")
      .map(Number);
  } catch {
    return [];
  }
}
