/**
 * The folder of one run: accessible only to root, in /run, so that its sockets' paths are short and
 * a boot clears it.
 */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { hostsFile } from "../interception/hosts.ts";

export interface RunFolder {
  readonly dir: string;
  /** Folder of the sidecar: sockets, configuration. */
  readonly sidecarDir: string;
  readonly specFile: string;
  /** The only folder that the agent sees, read-only. */
  readonly trustDir: string;
  readonly etcDir: string;
  readonly scratchDir: string;
}

const PREFIX = "svc-run-";
const OWNER = "owner";

/** Also removes the folders of runs that were killed. */
export function makeRunFolder(base: string, hosts: readonly string[]): RunFolder {
  sweep(base);
  const names = hostsFile(hosts);
  const dir = mkdtempSync(path.join(base, PREFIX));
  // Written first, because a folder without an owner may be removed by other runs.
  writeFileSync(path.join(dir, OWNER), processStamp("self") ?? "");
  const folder = (name: string, mode: number): string => {
    const made = path.join(dir, name);
    mkdirSync(made);
    chmodSync(made, mode);
    return made;
  };
  const etcDir = folder("etc", 0o755);
  const files = {
    hosts: names,
    // The sidecar answers there, by way of the redirect. No search domain: names are complete.
    "resolv.conf": "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n",
    "nsswitch.conf":
      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: " +
      "files\nprotocols: files\nservices: files\n",
  };
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(path.join(etcDir, name), text);
    chmodSync(path.join(etcDir, name), 0o644);
  }
  return {
    dir,
    sidecarDir: folder("sidecar", 0o700),
    specFile: path.join(dir, "providers.json"),
    trustDir: folder("trust", 0o755),
    etcDir,
    scratchDir: folder("scratch", 0o700),
  };
}

export function removeRunFolder({ dir }: Pick<RunFolder, "dir">): void {
  rmSync(dir, { recursive: true, force: true });
}

function sweep(base: string): void {
  for (const name of readdirSync(base)) {
    if (!name.startsWith(PREFIX)) continue;
    const dir = path.join(base, name);
    const owner = readOwner(dir);
    // A folder that is just being created has no owner yet.
    if (owner !== undefined && owner !== processStamp(owner.split(" ")[0] as string))
      rmSync(dir, { recursive: true, force: true });
  }
}

function readOwner(dir: string): string | undefined {
  try {
    return readFileSync(path.join(dir, OWNER), "utf8") || undefined;
  } catch {
    return undefined;
  }
}

/** Id and start time, because ids are reused. proc_pid_stat(5), fields 1 and 22. */
function processStamp(pid: string): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name, in parentheses, may contain anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return `${text.split(" ")[0]} ${fields[19]}`;
  } catch {
    return undefined;
  }
}
