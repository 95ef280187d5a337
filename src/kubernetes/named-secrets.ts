/**
 * Watches exactly the Secrets that are named to it, each by its own watch: this needs no more than
 * a Role with these names (`resourceNames`), and a process that is broken into knows no others.
 */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { KubeClient } from "./client.ts";
import { Informer } from "./informer.ts";
import { CORE, type KubeObject } from "./objects.ts";

/** The Secrets that resources name. */
export interface Secrets {
  /** By `<namespace>/<name>`: those of the tracked that exist. */
  readonly objects: ReadonlyMap<string, KubeObject>;
  /** Sets the names, `<namespace>/<name>`, that are of interest from now on. */
  track(names: ReadonlySet<string>): void;
  /** Calls a listener when one of them is added, changed or deleted. */
  onChange(listener: () => void): void;
  stop(): Promise<void>;
}

export interface NamedSecretsOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn" | "error">;
}

/**
 * Maximum number of Secrets of one namespace that are watched: each watch is a connection, and who
 * writes in one namespace must not use up those of all.
 */
const MAX_PER_NAMESPACE = 256;

export class NamedSecrets implements Secrets {
  readonly #options: NamedSecretsOptions;
  readonly #watches = new Map<string, Informer>();
  readonly #objects = new Map<string, KubeObject>();
  readonly #listeners = new Set<() => void>();
  /** Namespaces with too many, which were logged. */
  #crowded: ReadonlySet<string> = new Set();

  constructor(options: NamedSecretsOptions) {
    this.#options = options;
  }

  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#objects;
  }

  /** Resolves when each tracked Secret was looked up once. */
  async synced(): Promise<void> {
    await Promise.all([...this.#watches.values()].map(({ synced }) => synced));
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Secrets of a namespace beyond the first 256, by name, count as if they did not exist. */
  track(all: ReadonlySet<string>): void {
    const names = this.#within(all);
    for (const [name, watch] of this.#watches) {
      if (names.has(name)) continue;
      this.#watches.delete(name);
      this.#objects.delete(name);
      void watch.stop();
    }
    for (const name of names) if (!this.#watches.has(name)) this.#watch(name);
  }

  async stop(): Promise<void> {
    const watches = [...this.#watches.values()];
    this.#watches.clear();
    await Promise.all(watches.map(async (watch) => watch.stop()));
  }

  #within(names: ReadonlySet<string>): ReadonlySet<string> {
    const counts = new Map<string, number>();
    const kept = new Set<string>();
    for (const name of [...names].toSorted()) {
      const [namespace = ""] = name.split("/");
      const count = (counts.get(namespace) ?? 0) + 1;
      counts.set(namespace, count);
      if (count <= MAX_PER_NAMESPACE) kept.add(name);
    }
    for (const [namespace, count] of counts)
      if (count > MAX_PER_NAMESPACE && !this.#crowded.has(namespace))
        this.#options.log.error(
          { namespace, secrets: count, watched: MAX_PER_NAMESPACE },
          "the namespace names too many Secrets; those beyond count as if they did not exist",
        );
    this.#crowded = new Set(
      [...counts].flatMap(([namespace, count]) => (count > MAX_PER_NAMESPACE ? [namespace] : [])),
    );
    return kept;
  }

  #watch(key: string): void {
    const [namespace = "", name = ""] = key.split("/");
    const watch = new Informer({
      ...this.#options,
      kind: CORE.secret,
      namespace,
      selector: { fieldSelector: `metadata.name=${name}` },
    });
    watch.onChange((found, object) => {
      // A watch that was given up may still deliver.
      if (found !== key || this.#watches.get(key) !== watch) return;
      if (object === undefined) this.#objects.delete(key);
      else this.#objects.set(key, object);
      for (const listener of this.#listeners) listener();
    });
    this.#watches.set(key, watch.start());
  }
}
