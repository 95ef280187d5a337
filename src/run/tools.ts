/** Finds the required programs of the machine, and explains which are missing. */
import { accessSync, constants } from "node:fs";
import { StartError } from "../host/errors.ts";

const TOOLS = {
  setpriv: "util-linux",
  unshare: "util-linux",
  nsenter: "util-linux",
  mount: "mount",
  ip: "iproute2",
  env: "coreutils",
} as const;

export type ToolName = keyof typeof TOOLS;
export type Tools = Readonly<Record<ToolName, string>>;

/** Not the caller's PATH, because these programs run as root. */
const DIRS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

export const TOOLS_PATH = DIRS.join(":");

/** @throws StartError that names the missing parts */
export function findTools(
  platform: NodeJS.Platform = process.platform,
  uid: number | undefined = process.getuid?.(),
): Tools {
  if (platform !== "linux")
    throw new StartError(
      "svc run needs Linux: the command runs in namespaces of its own. On other systems, " +
        "use a virtual machine or a container that may create namespaces.",
    );
  if (uid !== 0) {
    throw new StartError(
      "svc run needs root, because it creates a network namespace for the command and " +
        "listens in it. The command itself runs as another user, without privileges. Try: " +
        "sudo svc run --state-dir <dir of your svc up> ...",
    );
  }
  const names = Object.keys(TOOLS) as ToolName[];
  const found = names.map(
    (name) => [name, DIRS.map((dir) => `${dir}/${name}`).find(executable)] as const,
  );
  const missing = found.filter(([, file]) => file === undefined).map(([name]) => name);
  if (missing.length > 0) {
    const packages = [...new Set(missing.map((name) => TOOLS[name]))].join(" ");
    throw new StartError(
      `svc run needs ${missing.join(", ")}. On Debian: apt-get install ${packages}`,
    );
  }
  return Object.fromEntries(found) as Tools;
}

function executable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
