/**
 * Resources from a watched folder of YAML. Events only trigger a scan, which determines the
 * changes, so that renames, swapped links and lost events are handled correctly. Only changed files
 * are read, and only changed text is parsed.
 */
import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { watch } from "chokidar";
import type { ParsedDocument } from "../../resources/parse.ts";
import { parseDocuments } from "../../resources/parse.ts";
import type { Problem } from "../../resources/problem.ts";
import { EMPTY_RESOURCE_SET } from "../../resources/resource-set.ts";
import { type LoadResult, NO_GENERATIONS } from "../load-result.ts";
import type { Source } from "../source.ts";
import type { FileState, Serving } from "./merge.ts";
import { mergeFiles } from "./merge.ts";
import type { FoundFile } from "./scan.ts";
import {
  inParallel,
  isHidden,
  isResourceFile,
  MAX_FILE_BYTES,
  readResourceFile,
  scanFolder,
} from "./scan.ts";

/** The logging interface; pino's loggers implement it. */
export interface FolderLog {
  warn(fields: Record<string, unknown>, message: string): void;
}

export interface FolderOptions {
  readonly dir: string;
  readonly log: FolderLog;
  /** Quiet time that ends a burst of events, in milliseconds. @defaultValue 50 */
  readonly debounceMs?: number;
  /** Interval between scans without an event, in milliseconds. @defaultValue 10000 */
  readonly rescanMs?: number;
}

interface CachedFile {
  /** undefined forces a scan. */
  readonly stamp: string | undefined;
  readonly hash: string;
  readonly state: FileState;
}

/** Maximum delay in milliseconds of a scan during a continuous burst of events. */
const MAX_WAIT_MS = 500;

/**
 * Time for which an emptied file keeps its objects, in milliseconds, because many writers truncate
 * first.
 */
const EMPTIED_GRACE_MS = 1_000;

/** Loads a folder and starts to watch it. @throws if `dir` is not a readable directory. */
export async function openFolder(options: FolderOptions): Promise<Source> {
  const { dir, log, debounceMs = 50, rescanMs = 10_000 } = options;
  if (!(await stat(dir)).isDirectory()) throw new Error(`${dir} is not a directory`);

  let cache: ReadonlyMap<string, CachedFile> = new Map();
  let serving: Serving = new Map();
  let places: ReadonlyMap<string, string> = new Map();
  let load: LoadResult = {
    resources: EMPTY_RESOURCE_SET,
    problems: [],
    generations: NO_GENERATIONS,
  };
  const listeners = new Set<(changed: LoadResult) => void>();
  let closed = false;

  // The watcher starts before the first scan, so that no change is missed.
  const watcher = watch(dir, {
    ignoreInitial: true,
    ignorePermissionErrors: true,
    // Hidden names are not listed, but raw events of their directory (a ConfigMap's swap of
    // `..data`) are received.
    ignored: (path, stats) =>
      path !== dir &&
      (isHidden(basename(path)) || (stats?.isFile() === true && !isResourceFile(basename(path)))),
  });
  const ready = new Promise<void>((resolve) => watcher.once("ready", resolve));
  watcher.on("error", (error) =>
    log.warn(
      { error: String(error), dir },
      "watching the resource folder failed; it is still scanned periodically",
    ),
  );

  /** Returns whether anything changed. */
  const look = async (): Promise<boolean> => {
    const found = await scanFolder(dir);
    const next = new Map<string, CachedFile>();
    let changed = found.length !== cache.size;
    const entries = await inParallel(found, async (file) => {
      const old = cache.get(file.file);
      if (old !== undefined && old.stamp !== undefined && old.stamp === file.stamp) return old;
      return loadFile(dir, file, old);
    });
    for (const entry of entries) {
      if (entry === undefined) {
        changed = true;
        continue;
      }
      if (cache.get(entry.state.file)?.state !== entry.state) changed = true;
      next.set(entry.state.file, entry);
    }
    cache = next;
    if (entries.some((entry) => entry?.stamp === undefined))
      setTimeout(soon, EMPTIED_GRACE_MS / 2).unref();
    if (!changed) return false;
    const merged = mergeFiles(
      [...next.values()].map((entry) => entry.state),
      serving,
    );
    serving = merged.serving;
    places = merged.places;
    load = merged.load;
    return true;
  };

  // Scans never overlap: each waits for the previous one.
  let last: Promise<unknown> = Promise.resolve();
  const lookNow = (): Promise<LoadResult> => {
    const run = last.then(async () => {
      if (!closed && (await look()) && !closed) for (const listener of listeners) listener(load);
      return load;
    });
    last = run.catch((error: unknown) =>
      log.warn(
        { error: String(error), dir },
        "the resource folder cannot be read; the last good state stays in force",
      ),
    );
    return run;
  };

  let timer: NodeJS.Timeout | undefined;
  let waitingSince = 0;
  const soon = () => {
    if (closed) return;
    if (timer === undefined) waitingSince = performance.now();
    else if (performance.now() - waitingSince > MAX_WAIT_MS) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      void lookNow().catch(() => undefined);
    }, debounceMs);
  };

  try {
    await look();
    await ready;
  } catch (error) {
    await watcher.close();
    throw error;
  }
  watcher.on("all", soon);
  watcher.on("raw", soon);
  soon();
  const rescan = setInterval(soon, rescanMs);
  rescan.unref();

  return {
    current: () => load,
    placeOf: (id) => places.get(id),
    refresh: lookNow,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      clearInterval(rescan);
      await watcher.close();
      await last;
    },
  };
}

/** Reads and parses one file; parses only changed text. Returns undefined if the file is gone. */
async function loadFile(
  dir: string,
  { file, stamp, size, modified }: FoundFile,
  old: CachedFile | undefined,
): Promise<CachedFile | undefined> {
  const refuse = (message: string, fix: string): CachedFile => {
    const unreadable: Problem = {
      reason: "FileUnreadable",
      file,
      line: undefined,
      kind: undefined,
      namespace: undefined,
      name: undefined,
      path: "",
      message,
      fix,
    };
    if (old?.state.unreadable?.message === message) return { ...old, stamp };
    return { stamp, hash: "", state: { file, documents: [], unreadable } };
  };
  if (size > MAX_FILE_BYTES) return refuse(`is larger than ${MAX_FILE_BYTES} bytes`, "split it");
  let text: string | undefined;
  try {
    text = await readResourceFile(dir, file);
  } catch (error) {
    return refuse(
      `cannot be read: ${(error as NodeJS.ErrnoException).code ?? "unknown error"}`,
      "check its permissions",
    );
  }
  if (text === undefined) return undefined;
  const age = Date.now() - modified;
  if (
    old !== undefined &&
    old.state.documents.length > 0 &&
    text.trim() === "" &&
    age >= 0 &&
    age < EMPTIED_GRACE_MS
  ) {
    return { ...old, stamp: undefined };
  }
  const hash = createHash("sha256").update(text).digest("base64");
  if (old !== undefined && old.hash === hash) return { ...old, stamp };
  const documents: readonly ParsedDocument[] = parseDocuments(text, file).documents;
  return { stamp, hash, state: { file, documents, unreadable: undefined } };
}
