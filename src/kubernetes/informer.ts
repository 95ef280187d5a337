/**
 * Informer keeps a copy of all objects of a kind: it lists them, and then watches for changes from
 * there on. A watch that ends is resumed; one whose start is too old (410), or that fails, begins
 * again with a list, after a delay that grows.
 * https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
 */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { KubeClient, Selector } from "./client.ts";
import { ApiError } from "./connection.ts";
import { collectionPath, type KubeKind, type KubeObject, nameOf } from "./objects.ts";

export interface InformerOptions {
  readonly client: KubeClient;
  readonly kind: KubeKind;
  /** undefined: all namespaces. */
  readonly namespace?: string | undefined;
  readonly selector?: Selector;
  /** Returns what is kept of an object. @defaultValue all but `metadata.managedFields` */
  readonly keep?: (object: KubeObject) => KubeObject;
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Pick<Logger, "warn">;
}

/** @param object undefined if it was deleted. @param before undefined if it is new */
export type InformerListener = (
  name: string,
  object: KubeObject | undefined,
  before: KubeObject | undefined,
) => void;

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;
/** The server ends a watch after this time; a different time for each one spreads their ends. */
const WATCH_SECONDS = 240;
/** The server sends a bookmark about every minute, so that a longer silence is a broken connection. */
const SILENCE_MS = 150_000;

export class Informer {
  readonly #options: InformerOptions;
  readonly #objects = new Map<string, KubeObject>();
  readonly #listeners = new Set<InformerListener>();
  readonly #abort = new AbortController();
  #resourceVersion: string | undefined;
  #synced: () => void = () => undefined;
  /** Resolves when the first list is in the copy. */
  readonly synced: Promise<void> = new Promise((resolve) => (this.#synced = resolve));
  #isSynced = false;
  #done: Promise<void> = Promise.resolve();

  constructor(options: InformerOptions) {
    this.#options = options;
  }

  /** By `<namespace>/<name>`. */
  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#objects;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Calls a listener for each object that is added, changed or deleted from now on. */
  onChange(listener: InformerListener): this {
    this.#listeners.add(listener);
    return this;
  }

  start(): this {
    this.#done = this.#run();
    return this;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { clock, kind, log, random = Math.random } = this.#options;
    const { signal } = this.#abort;
    let delayMs = FIRST_DELAY_MS;
    while (!signal.aborted) {
      try {
        if (this.#resourceVersion === undefined) await this.#list();
        delayMs = FIRST_DELAY_MS;
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        const { status, message, retryAfterMs } = error as ApiError;
        // Too old a version is no failure: the list that follows is its remedy.
        if (isExpired(error)) {
          this.#resourceVersion = undefined;
          continue;
        }
        log.warn({ kind: kind.kind, status, error: message }, "watching failed; trying again");
        if (status !== 0) this.#resourceVersion = undefined;
        await pause(clock, Math.max(retryAfterMs ?? 0, delayMs * (0.5 + random() / 2)), signal);
        delayMs = Math.min(MAX_DELAY_MS, delayMs * 2);
      }
    }
  }

  async #list(): Promise<void> {
    const { client, kind, namespace, selector } = this.#options;
    const { items, resourceVersion } = await client.list(kind, namespace, selector);
    const listed = new Set<string>();
    for (const item of items) {
      listed.add(nameOf(item));
      this.#set(item);
    }
    for (const name of this.#objects.keys()) if (!listed.has(name)) this.#remove(name);
    this.#resourceVersion = resourceVersion;
    this.#isSynced = true;
    this.#synced();
  }

  async #watch(): Promise<void> {
    const { client, kind, namespace, selector, random = Math.random } = this.#options;
    await client.connection.lines(
      collectionPath(kind, namespace),
      {
        query: {
          ...selector,
          watch: "true",
          allowWatchBookmarks: "true",
          resourceVersion: this.#resourceVersion,
          timeoutSeconds: String(Math.round(WATCH_SECONDS * (1 + random()))),
        },
        signal: this.#abort.signal,
      },
      SILENCE_MS,
      (line) => this.#event(JSON.parse(line) as WatchEvent),
    );
  }

  #event({ type, object }: WatchEvent): void {
    if (type === "ERROR") {
      const { code = 0, reason = "", message = "" } = object as unknown as WatchError;
      throw new ApiError(code, reason, message);
    }
    // Set after the listeners have run: a listener that throws sees the object again.
    if (type === "DELETED") this.#remove(nameOf(object));
    else if (type !== "BOOKMARK") this.#set(object);
    this.#resourceVersion = object.metadata.resourceVersion;
  }

  #set(found: KubeObject): void {
    const name = nameOf(found);
    const before = this.#objects.get(name);
    if (before?.metadata.resourceVersion === found.metadata.resourceVersion) return;
    const object = (this.#options.keep ?? withoutManagedFields)(found);
    this.#objects.set(name, object);
    for (const listener of this.#listeners) listener(name, object, before);
  }

  #remove(name: string): void {
    const before = this.#objects.get(name);
    if (before === undefined) return;
    this.#objects.delete(name);
    for (const listener of this.#listeners) listener(name, undefined, before);
  }
}

interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: KubeObject;
}

interface WatchError {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
}

function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === "Expired");
}

export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _fields, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Waits, or until the signal. */
export async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const cancel = clock.after(ms, () => {
      signal.removeEventListener("abort", aborted);
      resolve();
    });
    const aborted = (): void => {
      cancel();
      resolve();
    };
    signal.addEventListener("abort", aborted, { once: true });
  });
}
