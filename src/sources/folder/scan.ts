/** Finds and reads the resource files of a folder, and detects changes of files. */
import type { Dirent } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";

/** Maximum size of a file in bytes; larger files are not read. */
export const MAX_FILE_BYTES = 32 * 1024 * 1024;

/** Number of files read at once: enough to hide latency, few enough not to exhaust descriptors. */
const PARALLEL = 32;

/**
 * Returns whether a file's name indicates resources: YAML or JSON, not a dotfile, not an editor's
 * temporary file.
 */
export function isResourceFile(name: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(name) && !isHidden(name);
}

/**
 * Returns whether a name is hidden: dotfiles (also the `..data` of a mounted ConfigMap, and vim's
 * swap files), `#emacs#` and `backup~`.
 */
export function isHidden(name: string): boolean {
  return name.startsWith(".") || name.startsWith("#") || name.endsWith("~");
}

export interface FoundFile {
  /** Relative to the folder, with `/`. */
  readonly file: string;
  /**
   * Changes with the file: inode, size, modification and change time. undefined if it cannot be
   * read.
   */
  readonly stamp: string | undefined;
  readonly size: number;
  /** Time of the last change of its content, in milliseconds since the epoch. */
  readonly modified: number;
}

/**
 * Returns all resource files under `dir`, by name. Follows symbolic links; a link to a parent ends
 * at a depth of 16.
 */
export async function scanFolder(dir: string): Promise<FoundFile[]> {
  const files: string[] = [];
  await walk(dir, "", 0, files);
  files.sort();
  const found = await inParallel(files, async (file): Promise<FoundFile | undefined> => {
    try {
      const stats = await stat(join(dir, file), { bigint: true });
      if (!stats.isFile()) return undefined;
      return {
        file,
        stamp: `${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}:${stats.ctimeNs}`,
        size: Number(stats.size),
        modified: Number(stats.mtimeMs),
      };
    } catch (error) {
      // Deleted since it was listed, or a dangling link: ignored. Other errors are reported when it
      // is read.
      return isMissing(error) ? undefined : { file, stamp: undefined, size: 0, modified: 0 };
    }
  });
  return found.filter((entry) => entry !== undefined);
}

/** Returns the text of a file; undefined if it is gone. @throws if it cannot be read. */
export async function readResourceFile(dir: string, file: string): Promise<string | undefined> {
  try {
    return await readFile(join(dir, file), "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Runs `work` on all items, several at a time, and keeps their order. */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (let start = 0; start < items.length; start += PARALLEL) {
    results.push(...(await Promise.all(items.slice(start, start + PARALLEL).map(work))));
  }
  return results;
}

function isMissing(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOENT" || code === "ENOTDIR";
}

async function walk(dir: string, prefix: string, depth: number, files: string[]): Promise<void> {
  const entries = await readdir(join(dir, prefix), { withFileTypes: true }).catch(
    (error: unknown) => {
      // A directory that was deleted while it was being listed counts as empty; the folder itself
      // must exist.
      if (prefix !== "" && isMissing(error)) return [];
      throw error;
    },
  );
  for (const entry of entries) {
    if (isHidden(entry.name)) continue;
    const path = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
    if (await isDirectory(entry, join(dir, path))) {
      if (depth < 16) await walk(dir, path, depth + 1, files);
    } else if (isResourceFile(entry.name)) {
      files.push(path);
    }
  }
}

async function isDirectory(entry: Dirent, path: string): Promise<boolean> {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}
