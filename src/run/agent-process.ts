/** The command itself: in its namespaces, as its user, without privileges that it could gain. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import os from "node:os";
import { CARRIED } from "./agent-environment.ts";
import type { AgentUser } from "./agent-user.ts";
import { childrenOf, type Namespace } from "./namespace.ts";
import { type Tools, TOOLS_PATH } from "./tools.ts";

export interface AgentProcessOptions {
  readonly tools: Tools;
  readonly namespace: Namespace;
  readonly user: AgentUser;
  readonly workDir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly command: readonly string[];
  /** Whether it shares this process's terminal; see {@link sharesTerminal}. */
  readonly terminal: boolean;
}

export interface AgentProcess {
  /** As in shells: 128 plus the signal's number if a signal ended it. */
  readonly exitCode: Promise<number>;
  readonly signal: (name: NodeJS.Signals) => void;
}

/** Ignored by the processes that wait for the command: only the command handles signals. */
const IGNORED = "INT,QUIT,TERM,HUP,USR1,USR2";

/**
 * Runs as the agent and sets its variables. Until then they have prefixed names: a privileged
 * program must not find LD_PRELOAD and similar variables in its environment, and every user of the
 * machine could read them on a command line. `command` prevents a shell with a read-only variable
 * of that name (UID in bash) from exiting; such a variable belongs to the shell.
 */
function unpack(count: number): string {
  const names = Array.from({ length: count }, (_, index) => `${CARRIED}${index}`);
  return [
    "unset PATH",
    ...names.map((name) => `command export "$${name}" || :`),
    `unset ${names.join(" ")}`,
  ].join("\n");
}

/**
 * Runs as the agent, in its folder. It waits, so that a death by signal becomes an exit code; the
 * shell's own message about it ("Terminated") is kept from the command's standard error.
 */
const WAIT = `cd -- "$1" || exit 125
shift
exec 3>&2 2>/dev/null
(exec 2>&3 3>&- && exec "$@")
exit $?`;

export function startAgent(options: AgentProcessOptions): AgentProcess {
  const { tools, namespace, user, workDir, env, command, terminal } = options;
  const enter = [
    tools.nsenter,
    "--target",
    String(namespace.pid),
    "--net",
    "--mount",
    "--pid",
    "--ipc",
    "--",
  ];
  const drop = [
    [
      tools.setpriv,
      "--reuid",
      String(user.uid),
      "--regid",
      String(user.gid),
      "--clear-groups",
      "--no-new-privs",
    ],
    ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--"],
  ].flat();
  const variables = Object.entries(env);
  const wait = [
    "/bin/sh",
    "-c",
    `${unpack(variables.length)}\n${WAIT}`,
    "svc-run",
    workDir,
    tools.env,
    `--default-signal=${IGNORED}`,
    "--",
    ...command,
  ];
  const child = spawn(
    tools.setpriv,
    [
      "--pdeathsig",
      "KILL",
      "--",
      tools.env,
      `--ignore-signal=${IGNORED}`,
      ...enter,
      ...drop,
      ...wait,
    ],
    {
      stdio: "inherit",
      env: {
        PATH: TOOLS_PATH,
        ...Object.fromEntries(
          variables.map(([name, value], index) => [`${CARRIED}${index}`, `${name}=${value}`]),
        ),
      },
      cwd: "/",
      detached: !terminal,
    },
  );
  return {
    exitCode: ended(child),
    signal: (name) => {
      const pid = commandOf(child.pid);
      if (pid === undefined) return;
      try {
        process.kill(pid, name);
      } catch {
        // The process has just ended.
      }
    },
  };
}

function ended(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      resolve(code ?? 128 + (os.constants.signals[signal as NodeJS.Signals] ?? 0)),
    );
  });
}

/** nsenter -> sh -> the command. */
function commandOf(pid: number | undefined): number | undefined {
  const shell = pid === undefined ? undefined : childrenOf(pid)[0];
  return shell === undefined ? undefined : childrenOf(shell)[0];
}

/**
 * A process that shares a terminal can type into it if the kernel still supports TIOCSTI, and the
 * shell outside reads that input (CVE-2017-5226). In this case the command gets the terminal's
 * input and output, but not its control: signals are passed on, and shells in it have no job
 * control. Linux 6.2 and later may have `dev.tty.legacy_tiocsti = 0`.
 */
export function sharesTerminal(
  isTerminal: boolean,
  readSetting: () => string = () => readFileSync("/proc/sys/dev/tty/legacy_tiocsti", "utf8"),
): boolean {
  if (!isTerminal) return false;
  try {
    return readSetting().trim() === "0";
  } catch {
    return false;
  }
}
