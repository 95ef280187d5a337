/** The user of the command, who has no privileges. */
import { readFileSync } from "node:fs";
import { StartError } from "../host/errors.ts";

export interface AgentUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
  readonly home: string;
}

/** The same as in a cluster: the default of `spec.runAsUser`. */
export const DEFAULT_UID = 65_532;
const MAX_ID = 4_294_967_294;

/**
 * @param text `NAME`, `UID` or `UID:GID`; undefined for the default
 * @throws StartError for a user that does not exist, and for root
 */
export function resolveUser(
  text: string | undefined,
  passwd: string = readFileSync("/etc/passwd", "utf8"),
): AgentUser {
  const user = find(text ?? String(DEFAULT_UID), passwd);
  if (user.uid === 0 || user.gid === 0)
    throw new StartError(
      "The command must not run as root, which could bypass the sidecar. Choose another " +
        "user with --user.",
    );
  return user;
}

function find(text: string, passwd: string): AgentUser {
  const entries = passwd
    .split("\n")
    .map((line) => line.split(":"))
    .filter(
      ([name, , uid = "", gid = ""]) => name !== "" && /^\d+$/.test(uid) && /^\d+$/.test(gid),
    );
  const ids = /^(\d{1,10})(?::(\d{1,10}))?$/.exec(text);
  const [name, , uid, gid, , home] =
    entries.find((fields) => (ids === null ? fields[0] === text : fields[2] === ids[1])) ?? [];
  if (ids === null) {
    if (name === undefined)
      throw new StartError(
        `There is no user ${JSON.stringify(text)} on this machine. Name one with --user ` +
          "NAME, or give --user UID[:GID].",
      );
    return { uid: Number(uid), gid: Number(gid), name, home: home || "/tmp" };
  }
  const [ownUid, ownGid] = [Number(ids[1]), Number(ids[2] ?? gid ?? ids[1])];
  if (ownUid > MAX_ID || ownGid > MAX_ID) throw new StartError(`--user ${text} is out of range.`);
  return { uid: ownUid, gid: ownGid, name: name ?? "agent", home: home || "/tmp" };
}
