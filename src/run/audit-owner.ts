/**
 * `svc up`, which any user may run, names the audit folder and its key, and `svc run` writes there
 * as root. Therefore both must belong to the owner of the state folder of that `svc up`: nobody can
 * make root write where they could not write themselves.
 */
import { statSync } from "node:fs";
import type { AuditFolder } from "../audit/options.ts";
import { StartError } from "../host/errors.ts";

/** @throws StartError */
export function assertAuditOwner(
  { dir, keyFile }: Pick<AuditFolder, "dir" | "keyFile">,
  stateDir: string,
): void {
  const owner = statSync(stateDir).uid;
  for (const [what, file] of [
    ["folder", dir],
    ["key", keyFile],
  ] as const) {
    const uid = statSync(file, { throwIfNoEntry: false })?.uid;
    if (uid === undefined)
      throw new StartError(`svc up names the audit ${what} ${file}, which does not exist.`);
    if (uid !== owner)
      throw new StartError(
        `svc up names the audit ${what} ${file}, which belongs to the user ${uid}, and the ` +
          `state folder ${stateDir} to the user ${owner}: svc run writes there as root for ` +
          "its owner alone. Correct it with chown, or start svc up with another --audit-dir.",
      );
  }
}
