/** A volume of a few MiB: a tmpfs that root mounts for a test. */
import { execFileSync } from "node:child_process";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";

export const MIB = 1024 * 1024;

export class SmallVolume {
  readonly dir = mkdtempSync(path.join(os.tmpdir(), "svc-volume-"));

  constructor(bytes: number) {
    if (process.getuid?.() !== 0) throw new Error("these tests mount a volume: run them as root");
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${bytes},mode=0700`, "tmpfs", this.dir]);
  }

  get free(): number {
    const { bsize, bavail } = statfsSync(this.dir);
    return bsize * bavail;
  }

  /** Fills the volume until only this much is left; frees space first if less is left. */
  leave(bytes: number): void {
    rmSync(this.#filler, { force: true });
    const file = openSync(this.#filler, "w");
    try {
      for (let rest = this.free - bytes; rest > 0; rest = this.free - bytes)
        writeSync(file, Buffer.alloc(Math.min(rest, MIB)));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
    } finally {
      closeSync(file);
    }
  }

  empty(): void {
    rmSync(this.#filler, { force: true });
  }

  /** Records of a chain in its folder of chains. */
  records(
    chain: string,
  ): { readonly type: string; readonly fields: Readonly<Record<string, unknown>> }[] {
    const folder = path.join(this.dir, "audit", chain);
    return readdirSync(folder)
      .filter((name) => /^\d+\.jsonl$/.test(name))
      .sort()
      .flatMap((name) => readFileSync(path.join(folder, name), "utf8").split("\n"))
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as { type: string; fields: Record<string, unknown> });
  }

  unmount(): void {
    execFileSync("umount", ["--lazy", this.dir]);
    rmSync(this.dir, { recursive: true, force: true });
  }

  get #filler(): string {
    return path.join(this.dir, "filler");
  }
}
