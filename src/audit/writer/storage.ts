/**
 * The files that a writer appends to, and their known good sizes: the remains of a failed write are
 * truncated.
 */
import path from "node:path";
import { AuditError } from "../errors.ts";
import type { AuditFile, AuditFiles } from "../chain/files.ts";
import { CHECKPOINTS, segmentName } from "../chain/layout.ts";

export interface StorageState {
  readonly segment: number;
  readonly size: number;
  readonly checkpointsSize: number;
}

export class Storage {
  segment: number;
  /** Committed bytes of the segment. */
  size: number;
  #checkpointsSize: number;
  #records: AuditFile | undefined;
  #checkpoints: AuditFile | undefined;
  /** The newest segment whose file this writer created or found. */
  #made: number;
  readonly #dir: string;
  readonly #files: AuditFiles;
  readonly #sync: boolean;

  constructor(dir: string, files: AuditFiles, sync: boolean, state: StorageState) {
    this.#dir = dir;
    this.#files = files;
    this.#sync = sync;
    this.segment = state.segment;
    this.#made = state.segment;
    this.size = state.size;
    this.#checkpointsSize = state.checkpointsSize;
  }

  /** Opens the files and truncates them to their known good sizes. Also used after a failure. */
  async repair(): Promise<void> {
    await this.close();
    if (this.segment > 0)
      this.#records = await this.#reopen(segmentName(this.segment), this.size, this.#sync);
    this.#checkpoints = await this.#reopen(CHECKPOINTS, this.#checkpointsSize, true);
    await this.#files.syncDir(this.#dir);
  }

  async #reopen(name: string, size: number, durable: boolean): Promise<AuditFile> {
    const file = await this.#files.open(path.join(this.#dir, name), false, durable);
    try {
      const found = await file.size();
      if (found < size)
        throw new AuditError(
          `${path.join(this.#dir, name)} was cut to ${found} bytes by someone else; ` +
            `${size} were written.`,
        );
      if (found > size) await file.truncate(size);
      // After a failed sync it is unknown which pages reached the disk.
      await file.sync();
      return file;
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
  }

  /** Continues in the next segment. */
  async rotate(): Promise<void> {
    const next = this.segment + 1;
    const file = path.join(this.#dir, segmentName(next));
    const opened =
      this.#made >= next
        ? await this.#reopen(segmentName(next), 0, this.#sync)
        : await this.#files.open(file, true, this.#sync);
    this.#made = next;
    const old = this.#records;
    this.#records = opened;
    this.segment = next;
    this.size = 0;
    await old?.close();
    await this.#files.syncDir(this.#dir);
  }

  /** The bytes are written when this resolves. */
  async append(bytes: Buffer): Promise<void> {
    await write(this.#records, bytes);
    this.size += bytes.length;
  }

  /** The records are written first, because a checkpoint states that they are on the disk. */
  async appendCheckpoint(line: string): Promise<void> {
    if (!this.#sync) await this.#records?.sync();
    const bytes = Buffer.from(`${line}\n`);
    await write(this.#checkpoints, bytes);
    this.#checkpointsSize += bytes.length;
  }

  async close(): Promise<void> {
    const open = [this.#records, this.#checkpoints];
    this.#records = undefined;
    this.#checkpoints = undefined;
    for (const file of open) await file?.close().catch(() => undefined);
  }
}

async function write(file: AuditFile | undefined, bytes: Buffer): Promise<void> {
  if (file === undefined) throw new AuditError("the file is not open");
  for (let offset = 0; offset < bytes.length;) {
    const taken = await file.append(bytes, offset);
    if (taken === 0) throw new AuditError("no more bytes can be written to the file");
    offset += taken;
  }
}
