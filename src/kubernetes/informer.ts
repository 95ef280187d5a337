/**
 * Informer keeps a copy of all objects of a kind: it lists them, and then watches for changes from
 * there on. A watch that ends, or whose connection breaks, is resumed; one whose start is too old
 * (410), or that is refused, begins again with a list. Each failure in a row doubles the delay.
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
  readonly log: Pick<Logger, "warn" | "error">;
}

/**
 * An error that it throws is logged; the other listeners are called all the same.
 * @param object undefined if it was deleted
 * @param before undefined if it is new
 */
export type InformerListener = (
  name: string,
  object: KubeObject | undefined,
  before: KubeObject | undefined,
) => void;

const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;
/** The server ends a watch after this time; a different time for each one spreads their ends. */
const WATCH_SECONDS = 240;
/** The server sends a bookmark about every minute: a longer silence is a broken connection. */
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
  /** Attempts since a watch last delivered something. */
  #failures = 0;
  /** Whether one of them was refused because its version is too old. */
  #hasExpired = false;
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
    while (!signal.aborted) {
      const error = await this.#follow();
      if (signal.aborted) return;
      if (error !== undefined && error.status !== 0) this.#resourceVersion = undefined;
      this.#failures += 1;
      // The server ends every watch at some time.
      if (error === undefined && this.#failures === 1) continue;
      const isRemedied = error !== undefined && isExpired(error) && !this.#hasExpired;
      this.#hasExpired ||= isRemedied;
      // The list that follows is the remedy.
      if (isRemedied) continue;
      const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (this.#failures - 1));
      const pauseMs = Math.max(error?.retryAfterMs ?? 0, delayMs * (0.5 + random() / 2));
      if (error !== undefined)
        log.warn(
          { kind: kind.kind, status: error.status, error: error.message, fix: fixOf(error, kind) },
          "watching failed; trying again",
        );
      await pause(clock, pauseMs, signal);
    }
  }

  /** Resolves when the watch has ended, with an error if it has failed. */
  async #follow(): Promise<ApiError | undefined> {
    try {
      if (this.#resourceVersion === undefined) await this.#list();
      await this.#watch();
      return undefined;
    } catch (error) {
      return error instanceof ApiError
        ? error
        : new ApiError(200, "", `the answer cannot be read: ${(error as Error).message}`);
    }
  }

  async #list(): Promise<void> {
    const { client, kind, namespace, selector } = this.#options;
    const listed = new Set<string>();
    let version = "";
    for await (const page of client.list(kind, namespace, selector, this.#abort.signal)) {
      for (const item of page.items) {
        listed.add(nameOf(item));
        this.#set(item);
      }
      version = page.resourceVersion;
    }
    for (const name of this.#objects.keys()) if (!listed.has(name)) this.#remove(name);
    this.#resourceVersion = version;
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
    if (type === "DELETED") this.#remove(nameOf(object));
    else if (type !== "BOOKMARK") this.#set(object);
    this.#resourceVersion = object.metadata.resourceVersion;
    this.#failures = 0;
    this.#hasExpired = false;
  }

  #set(found: KubeObject): void {
    const name = nameOf(found);
    const before = this.#objects.get(name);
    if (before?.metadata.resourceVersion === found.metadata.resourceVersion) return;
    const object = (this.#options.keep ?? withoutManagedFields)(found);
    this.#objects.set(name, object);
    this.#tell(name, object, before);
  }

  #remove(name: string): void {
    const before = this.#objects.get(name);
    if (before === undefined) return;
    this.#objects.delete(name);
    this.#tell(name, undefined, before);
  }

  #tell(name: string, object: KubeObject | undefined, before: KubeObject | undefined): void {
    for (const listener of this.#listeners) {
      try {
        listener(name, object, before);
      } catch (error) {
        const { kind, log } = this.#options;
        log.error({ kind: kind.kind, name, error }, "a listener failed");
      }
    }
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

/** Returns what an operator has to do; undefined if the error may pass by itself. */
function fixOf({ status }: ApiError, { kind, plural }: KubeKind): string | undefined {
  if (status === 401) return "renew the credentials of this process";
  if (status === 403) return `grant get, list and watch of ${plural} to this process's account`;
  if (status === 404)
    return `install the CustomResourceDefinition of ${kind}: its kind is not known to the server`;
  return undefined;
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
