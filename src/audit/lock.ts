/**
 * One living writer a chain. The lock is a file that names a process so that it cannot be mistaken:
 * boot, pid namespace, pid and the time it started (pids are used again). It is made whole or not
 * at all, by link(2). One whose process is gone (kill -9) is taken over. Processes that cannot see
 * each other, in two containers on one volume, are not kept apart: give each writer a name of its
 * own.
 */
import { linkSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { AuditError, reasonOf } from "./errors.ts";
import { LOCK } from "./layout.ts";

/** A process by everything that tells it from another. */
function identify(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name, in parentheses, may hold anything; the start time is the 20th of what follows
    // (proc_pid_stat(5): field 22).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie has ended; its start time is still there.
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    return [boot, readlinkSync("/proc/self/ns/pid"), pid, fields[19]].join(" ");
  } catch {
    return undefined;
  }
}

/** Pid of the living process that the lock names. */
export function livingWriter(chainDir: string): number | undefined {
  return owner(readLock(path.join(chainDir, LOCK)));
}

function readLock(file: string): string | undefined {
  try {
    return readFileSync(file, "latin1").trim();
  } catch {
    return undefined;
  }
}

function owner(text: string | undefined): number | undefined {
  const pid = Number(text?.split(" ")[2]);
  return Number.isInteger(pid) && pid > 0 && identify(pid) === text ? pid : undefined;
}

/**
 * @returns what gives the lock back
 * @throws AuditError when another living process has it
 */
export function takeLock(chainDir: string): () => void {
  const file = path.join(chainDir, LOCK);
  const mine = `${file}.${process.pid}`;
  const me = identify(process.pid) ?? `? ? ${process.pid} ?`;
  try {
    writeFileSync(mine, `${me}\n`, { mode: 0o600 });
    for (let tries = 0; tries < 10; tries++) {
      try {
        linkSync(mine, file);
        return () => {
          if (readLock(file) === me) rmSync(file, { force: true });
        };
      } catch (error) {
        if (reasonOf(error) !== "EEXIST") throw error;
      }
      const pid = owner(readLock(file));
      if (pid !== undefined) {
        throw new AuditError(
          `The audit chain ${chainDir} is being written by process ${pid}: two writers need two names.`,
        );
      }
      clear(file, `${mine}.stale`);
    }
    throw new AuditError(
      `The audit chain's lock ${file} cannot be taken: others take it at the same time.`,
    );
  } catch (error) {
    if (error instanceof AuditError) throw error;
    throw new AuditError(
      `The audit chain ${chainDir} cannot be locked (${reasonOf(error)}): the folder must be writable.`,
    );
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Takes a dead process's lock away; one that a faster process has just put there is put back. */
function clear(file: string, aside: string): void {
  try {
    renameSync(file, aside);
    if (owner(readLock(aside)) !== undefined) linkSync(aside, file);
  } catch (error) {
    if (reasonOf(error) !== "ENOENT" && reasonOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(aside, { force: true });
  }
}
