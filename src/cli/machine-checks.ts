/** Checks of this machine, for `svc check` without a cluster. */
import { accessSync, constants, existsSync } from "node:fs";
import { StartError } from "../host/errors.ts";
import { envoyOfUp, findEnvoy } from "../host/find-envoy.ts";
import { statePaths } from "../host/state.ts";
import {
  assertPrivateFolder,
  PrivateFileError,
  readPrivateFile,
} from "../platform/private-file.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { findTools } from "../run/tools.ts";
import { assertPortFree } from "../up/ports.ts";
import { type CheckResult, fail, ok, warn } from "./checks.ts";

export interface Machine {
  /** The package's root. */
  readonly root: string;
  readonly env: NodeJS.ProcessEnv;
  readonly stateDir: string | undefined;
}

/** Ports of svc up, unless flags set others. */
const PORTS = [
  [8000, "--port"],
  [8080, "--external-port"],
] as const;
const DIRS = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

export async function checkMachine(machine: Machine): Promise<readonly CheckResult[]> {
  const state = statePaths(machine.stateDir, machine.env);
  const isUp = await unixRequest(state.controlSocket, "/status").then(
    () => true,
    () => false,
  );
  return [
    checkEnvoy(machine),
    ...(isUp
      ? [ok("svc up", `runs with the state folder ${state.dir}`)]
      : await Promise.all(PORTS.map(async ([port, flag]) => checkPort(port, flag)))),
    checkState(state),
    checkSetpriv(),
    checkRun(),
  ];
}

function checkEnvoy({ root, env }: Machine): CheckResult {
  try {
    return ok("envoy", findEnvoy(envoyOfUp(undefined, env, root)));
  } catch (error) {
    if (error instanceof StartError) return fail("envoy", error.message);
    throw error;
  }
}

/** Checks that a port of svc up is free. @param flag that sets the port */
export async function checkPort(port: number, flag: string): Promise<CheckResult> {
  try {
    await assertPortFree("127.0.0.1", port, flag);
    return ok("ports", `${port} is free`);
  } catch (error) {
    if (error instanceof StartError) return fail("ports", error.message);
    throw error;
  }
}

function checkState({ dir, workloadKeyFile }: ReturnType<typeof statePaths>): CheckResult {
  if (!existsSync(dir)) return ok("state folder", `${dir} does not exist yet: svc up creates it`);
  try {
    assertPrivateFolder(dir, "The state folder");
    if (existsSync(workloadKeyFile)) readPrivateFile(workloadKeyFile, "The workload key");
    return ok("state folder", `${dir} is private to this user`);
  } catch (error) {
    if (error instanceof PrivateFileError) return fail("state folder", error.message);
    return fail(
      "state folder",
      `${dir} cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown error"}). ` +
        "Correct its permissions, or name another one with --state-dir.",
    );
  }
}

function checkSetpriv(): CheckResult {
  return has("setpriv")
    ? ok("setpriv", "ends the processes of svc up with it")
    : warn(
        "setpriv",
        "not found: processes of a killed svc up would go on. On Debian: apt-get install " +
          "util-linux",
      );
}

/** Requirements of `svc run`, which not everybody uses. */
function checkRun(): CheckResult {
  if (!has("nft") && !has("iptables-restore"))
    return warn("svc run", "needs nft or iptables. On Debian: apt-get install nftables");
  try {
    findTools(process.platform, 0);
    return ok("svc run", "finds its programs; it needs root");
  } catch (error) {
    if (error instanceof StartError) return warn("svc run", error.message);
    throw error;
  }
}

function has(program: string): boolean {
  return DIRS.some((dir) => {
    try {
      accessSync(`${dir}/${program}`, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
