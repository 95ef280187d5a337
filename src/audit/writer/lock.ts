/**
 * Ensures at most one living writer per chain. The lock is a file that identifies a process by
 * boot, pid namespace, pid and start time, because pids are reused. link(2) creates it atomically.
 * A lock whose process has died (kill -9) is taken over. The lock does not exclude processes that
 * cannot see each other, such as two containers on one volume: give each writer a name of its own.
 */
import { linkSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { AuditError, reasonOf } from "../errors.ts";
import { LOCK } from "../chain/layout.ts";

/** Returns a unique identification of a process. */
function identify(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name, in parentheses, may contain anything; the start time is the 20th field after it
    // (proc_pid_stat(5): field 22).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // A zombie has ended, but still has a start time.
    if (fields[0] === "Z" || fields[0] === "X") return undefined;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    return [boot, readlinkSync("/proc/self/ns/pid"), pid, fields[19]].join(" ");
  } catch {
    return undefined;
  }
}

/** Returns the pid of the living process that the lock names. */
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
 * @returns a function that releases the lock
 * @throws AuditError if another living process holds it
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
          `The audit chain ${chainDir} is being written by process ${pid}: give each ` +
            "writer its own name.",
        );
      }
      clear(file, `${mine}.stale`);
    }
    throw new AuditError(
      `The audit chain's lock ${file} cannot be acquired: other processes acquire it at ` +
        "the same time.",
    );
  } catch (error) {
    if (error instanceof AuditError) throw error;
    throw new AuditError(
      `The audit chain ${chainDir} cannot be locked (${reasonOf(error)}): the folder must ` +
        "be writable.",
    );
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Removes a dead process's lock; a lock that a faster process has just created is restored. */
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
