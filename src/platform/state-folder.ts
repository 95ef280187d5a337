/**
 * A folder of small secret files that several processes share. All access goes through the opened
 * folder, and no file is reached through a link: `svc run`, which is root, writes into a folder
 * that belongs to the user of `svc up`, who must not be able to redirect a write.
 */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { Clock } from "./clock.ts";

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = fs.constants;
const FOR_OTHERS = 0o077;
const MAX_BYTES = 64 * 1024;
const LOCK_POLL_MS = 50;
/** Age at which a lock is taken over: its process has died. Nobody holds one for that long. */
const STALE_LOCK_MS = 60_000;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,200}$/;

export class StateFolder {
  readonly #fd: number;
  readonly #uid: number;
  readonly #clock: Clock;

  private constructor(fd: number, uid: number, clock: Clock) {
    this.#fd = fd;
    this.#uid = uid;
    this.#clock = clock;
  }

  /**
   * Opens a folder that exists, and that only its owner may read: this user, or, for root, the
   * owner of the folder in which it is.
   * @throws Error that states the problem and the fix
   */
  static open(dir: string, clock: Clock): StateFolder {
    const fd = fs.openSync(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    const { uid, mode } = fs.fstatSync(fd);
    const me = process.geteuid?.() ?? 0;
    const wrong =
      uid !== me && !(me === 0 && uid === fs.statSync(path.dirname(dir)).uid)
        ? `belongs to the user ${uid}: chown ${me} ${dir}`
        : (mode & FOR_OTHERS) !== 0
          ? `is open to others (mode ${(mode & 0o7777).toString(8)}): chmod 700 ${dir}`
          : undefined;
    if (wrong === undefined) return new StateFolder(fd, uid, clock);
    fs.closeSync(fd);
    throw new Error(`The state folder ${dir} ${wrong}`);
  }

  /** Returns the content of a file; undefined if there is none. @throws Error */
  read(name: string): string | undefined {
    let fd: number;
    try {
      fd = fs.openSync(this.#path(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    try {
      const stats = fs.fstatSync(fd);
      if (!stats.isFile() || stats.uid !== this.#uid || stats.size > MAX_BYTES)
        throw new Error(`${name} in the state folder is not a file of this service; remove it`);
      return fs.readFileSync(fd, "utf8");
    } finally {
      fs.closeSync(fd);
    }
  }

  /** Replaces a file as a whole, on the disk when this returns. @throws Error */
  write(name: string, text: string): void {
    const temporary = this.#path(`${name}.${randomBytes(8).toString("hex")}.tmp`);
    const fd = fs.openSync(temporary, "wx", 0o600);
    try {
      fs.writeFileSync(fd, text);
      fs.fchownSync(fd, this.#uid, -1);
      fs.fsyncSync(fd);
      fs.renameSync(temporary, this.#path(name));
      fs.fsyncSync(this.#fd);
    } catch (error) {
      fs.rmSync(temporary, { force: true });
      throw error;
    } finally {
      fs.closeSync(fd);
    }
  }

  /**
   * Runs `action` while no other process, and no other call, is inside for this name.
   * @throws Error if the signal aborts the wait, or the lock cannot be made
   */
  async locked<T>(name: string, signal: AbortSignal, action: () => Promise<T>): Promise<T> {
    const lock = this.#path(`${name}.lock`);
    while (!this.#lock(lock)) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => void this.#clock.after(LOCK_POLL_MS, resolve));
    }
    try {
      return await action();
    } finally {
      fs.rmSync(lock, { force: true });
    }
  }

  close(): void {
    fs.closeSync(this.#fd);
  }

  #lock(lock: string): boolean {
    try {
      fs.closeSync(fs.openSync(lock, "wx", 0o600));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const made = fs.lstatSync(lock, { throwIfNoEntry: false })?.mtimeMs;
    if (made !== undefined && Math.abs(this.#clock.now() - made) > STALE_LOCK_MS)
      fs.rmSync(lock, { force: true });
    return false;
  }

  /** The name below the opened folder, wherever that is by now. */
  #path(name: string): string {
    if (!NAME.test(name)) throw new Error(`not a name of a state file: ${name}`);
    return `/proc/self/fd/${this.#fd}/${name}`;
  }
}
