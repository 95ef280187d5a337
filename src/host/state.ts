/** Locations of an instance's persistent state, and of the short-lived folder of its sockets. */
import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import {
  assertPrivateFolder,
  PrivateFileError,
  readPrivateFile,
} from "../platform/private-file.ts";
import { StartError } from "./errors.ts";

/** Maximum path of a Unix socket on Linux (sun_path is 108 bytes including its terminator). */
const MAX_SOCKET_PATH = 107;

/** The longest name of a run's sockets. */
const LONGEST_SOCKET = "envoy-admin.sock";

export interface StatePaths {
  readonly dir: string;
  readonly controlSocket: string;
  readonly workloadKeyFile: string;
  /** Folder of the audit chain, unless another one is configured. */
  readonly auditDir: string;
  /** Key that signs the audit chain; beside its folder, not in it. */
  readonly auditKeyFile: string;
  /** Tokens that sidecars keep beyond their process. */
  readonly tokensDir: string;
  /**
   * Sockets and files of one run; recreated by the next, so that a killed run leaves nothing
   * permanently.
   */
  readonly runDir: string;
}

/** `--state-dir`, then `SVC_STATE_DIR`, then the user's state folder (XDG Base Directory). */
export function statePaths(option: string | undefined, env: NodeJS.ProcessEnv): StatePaths {
  // The specification: an empty variable counts as unset, a relative one is ignored.
  const named = env["XDG_STATE_HOME"] ?? "";
  const home = path.isAbsolute(named) ? named : path.join(os.homedir(), ".local/state");
  const dir = path.resolve(option ?? (env["SVC_STATE_DIR"] || path.join(home, "svc")));
  const controlSocket = path.join(dir, "svc.sock");
  const runDir = path.join(dir, "run");
  if (Buffer.byteLength(path.join(runDir, LONGEST_SOCKET)) > MAX_SOCKET_PATH) {
    throw new StartError(
      `The state folder's path is too long for a socket: ${dir}. Choose a shorter one with ` +
        "--state-dir.",
    );
  }
  return {
    dir,
    controlSocket,
    workloadKeyFile: path.join(dir, "workload.key"),
    auditDir: path.join(dir, "audit"),
    auditKeyFile: path.join(dir, "audit.key"),
    tokensDir: path.join(dir, "tokens"),
    runDir,
  };
}

/**
 * Creates the folder and, the first time, the key for workload tokens. Both must be private to this
 * user, and so must an existing key of the audit chain.
 * @throws StartError that states the problem and the fix
 */
export function prepareState(paths: StatePaths): void {
  try {
    mkdirSync(paths.dir, { recursive: true, mode: 0o700 });
    mkdirSync(paths.tokensDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartError(
      `The state folder ${paths.dir} cannot be created: ${(error as Error).message}. ` +
        "Choose one with --state-dir.",
    );
  }
  try {
    writeFileSync(paths.workloadKeyFile, randomBytes(32), { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  try {
    assertPrivateFolder(paths.dir, "The state folder");
    readPrivateFile(paths.workloadKeyFile, "The workload key");
    readIfThere(paths.auditKeyFile, "The audit key");
  } catch (error) {
    if (error instanceof PrivateFileError) throw new StartError(error.message);
    throw error;
  }
}

function readIfThere(file: string, what: string): void {
  try {
    readPrivateFile(file, what);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** Called only when it is known that no other instance uses this state. */
export function makeRunDir({ runDir }: StatePaths): void {
  rmSync(runDir, { recursive: true, force: true });
  mkdirSync(runDir, { mode: 0o700 });
}
