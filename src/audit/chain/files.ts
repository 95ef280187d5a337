/**
 * The writer's file operations, as a parameter so that tests can make them fail. They use the
 * callback API of fs, which is the cheapest.
 */
import fs from "node:fs";
import path from "node:path";

const { O_APPEND, O_CREAT, O_DSYNC, O_EXCL, O_WRONLY } = fs.constants;

export interface AuditFile {
  /** Performs one write(2) at the end of the file; returns the number of bytes written. */
  append(bytes: Buffer, offset: number): Promise<number>;
  /** fdatasync(2). */
  sync(): Promise<void>;
  truncate(size: number): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

export interface AuditFiles {
  /**
   * Opens a file for appending.
   * @param make the file must not exist yet
   * @param durable a write ends when its bytes are on the disk (O_DSYNC): write(2) and fdatasync(2)
   * in one operation,
   *   at half the cost of two
   */
  open(file: string, make: boolean, durable: boolean): Promise<AuditFile>;
  /** Makes the names in a folder durable. */
  syncDir(dir: string): Promise<void>;
  /** Size of the folder's volume in bytes: free for unprivileged users, and in total. */
  volume(dir: string): Promise<{ readonly free: number; readonly total: number }>;
  /** Total bytes of the files in the subfolders of a folder. */
  used(dir: string): Promise<number>;
}

/** Runs an fs operation that returns no result. */
const run = (operation: (done: (error: Error | null) => void) => void): Promise<void> =>
  new Promise((resolve, reject) =>
    operation((error) => (error === null ? resolve() : reject(error))),
  );

const openFile = (file: string, flags: number): Promise<number> =>
  new Promise((resolve, reject) =>
    fs.open(file, flags, 0o600, (error, fd) => (error === null ? resolve(fd) : reject(error))),
  );

export const systemFiles: AuditFiles = {
  open: async (file, make, durable) => {
    const fd = await openFile(
      file,
      O_APPEND | O_WRONLY | O_CREAT | (make ? O_EXCL : 0) | (durable ? O_DSYNC : 0),
    );
    return {
      append: (bytes, offset) =>
        new Promise((resolve, reject) => {
          fs.write(fd, bytes, offset, bytes.length - offset, null, (error, written) =>
            error === null ? resolve(written) : reject(error),
          );
        }),
      sync: () => run((done) => fs.fdatasync(fd, done)),
      truncate: (size) => run((done) => fs.ftruncate(fd, size, done)),
      size: () =>
        new Promise((resolve, reject) =>
          fs.fstat(fd, (error, stats) => (error === null ? resolve(stats.size) : reject(error))),
        ),
      close: () => run((done) => fs.close(fd, done)),
    };
  },
  syncDir: async (dir) => {
    const fd = await openFile(dir, fs.constants.O_RDONLY);
    try {
      await run((done) => fs.fsync(fd, done));
    } finally {
      await run((done) => fs.close(fd, done));
    }
  },
  volume: async (dir) => {
    const { bsize, bavail, blocks } = await fs.promises.statfs(dir);
    return { free: bsize * bavail, total: bsize * blocks };
  },
  used: async (dir) => {
    let bytes = 0;
    for (const entry of await fs.promises.readdir(dir, { withFileTypes: true }))
      if (entry.isDirectory()) bytes += await sizeOfFiles(path.join(dir, entry.name));
    return bytes;
  },
};

/** Files that disappear meanwhile are ignored. */
async function sizeOfFiles(dir: string): Promise<number> {
  let bytes = 0;
  for (const name of await fs.promises.readdir(dir).catch(() => [])) {
    const stats = await fs.promises.lstat(path.join(dir, name)).catch(() => undefined);
    if (stats?.isFile() === true) bytes += stats.size;
  }
  return bytes;
}
