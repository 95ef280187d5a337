/**
 * Resources from the Kubernetes API. Informers report what changes; a burst of changes becomes one
 * load. Only changed objects are parsed, and the last good version of each stays in use while its
 * newest one is refused.
 */
import type { Informer } from "../../kubernetes/informer.ts";
import type { Secrets } from "../../kubernetes/named-secrets.ts";
import type { KubeObject } from "../../kubernetes/objects.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Resource } from "../../resources/kinds.ts";
import { type ObjectResult, parseObject } from "../../resources/parse.ts";
import { formatPath, type Problem } from "../../resources/problem.ts";
import { buildResourceSet, type ResourceSet } from "../../resources/resource-set.ts";
import type { LoadResult } from "../load-result.ts";
import type { Source } from "../source.ts";

export interface KubernetesSourceOptions {
  /** One for each kind of resource. They are started, and stopped, by the caller. */
  readonly informers: readonly Informer[];
  readonly secrets: Secrets;
  /** Returns the Secrets, `<namespace>/<name>`, that the reader of this source needs. */
  readonly secretsOf: (resources: ResourceSet) => ReadonlySet<string>;
  /** @defaultValue {@link parseObject} */
  readonly parse?: (value: unknown) => ObjectResult;
  readonly clock: Clock;
  /** Quiet time that ends a burst of changes, in milliseconds. @defaultValue 50 */
  readonly debounceMs?: number;
}

/** Maximum delay in milliseconds of a load during a continuous burst of changes. */
const MAX_WAIT_MS = 500;

interface Entry {
  /** `metadata.resourceVersion` of the parsed object. */
  readonly version: string | undefined;
  readonly id: string | undefined;
  readonly problems: readonly Problem[];
  /** The newest good version. */
  readonly resource: Resource | undefined;
  readonly generation: number | undefined;
}

/** Opens it when all informers have their first list. */
export async function openKubernetes(options: KubernetesSourceOptions): Promise<KubernetesSource> {
  await Promise.all(options.informers.map(({ synced }) => synced));
  return new KubernetesSource(options);
}

export class KubernetesSource implements Source {
  readonly #options: KubernetesSourceOptions;
  readonly #listeners = new Set<(load: LoadResult) => void>();
  /** By informer or Secrets, and then by `<namespace>/<name>`. */
  #entries: ReadonlyMap<object, ReadonlyMap<string, Entry>> = new Map();
  #load: LoadResult;
  #cancel: (() => void) | undefined;
  #waitingSince = 0;
  #closed = false;

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
    for (const informer of options.informers) informer.onChange(() => this.#soon());
    options.secrets.onChange(() => this.#soon());
    this.#load = this.#readAll();
  }

  current(): LoadResult {
    return this.#load;
  }

  /** The informers follow the server on their own: what they know by now is loaded. */
  refresh(): Promise<LoadResult> {
    this.#publish();
    return Promise.resolve(this.#load);
  }

  onChange(listener: (load: LoadResult) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  placeOf(id: string): string | undefined {
    if (!this.#load.generations.has(id)) return undefined;
    const [kind, namespace, name] = id.split("/");
    return `${kind} ${name} in namespace ${namespace}`;
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#cancel?.();
    return Promise.resolve();
  }

  #soon(): void {
    const { clock, debounceMs = 50 } = this.#options;
    if (this.#closed) return;
    if (this.#cancel === undefined) this.#waitingSince = clock.monotonic();
    else if (clock.monotonic() - this.#waitingSince > MAX_WAIT_MS) return;
    this.#cancel?.();
    this.#cancel = clock.after(debounceMs, () => this.#publish());
  }

  #publish(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#closed) return;
    this.#load = this.#readAll();
    for (const listener of this.#listeners) listener(this.#load);
  }

  /** The resources tell which Secrets are needed, some of which may be known already. */
  #readAll(): LoadResult {
    const { secrets, secretsOf } = this.#options;
    secrets.track(secretsOf(this.#read().resources));
    return this.#read();
  }

  #read(): LoadResult {
    const { informers, secrets } = this.#options;
    const entries = new Map<object, ReadonlyMap<string, Entry>>();
    for (const source of [...informers, secrets]) {
      const before = this.#entries.get(source);
      const found = new Map<string, Entry>();
      for (const [name, object] of source.objects)
        found.set(name, this.#entryOf(object, before?.get(name)));
      entries.set(source, found);
    }
    this.#entries = entries;
    const all = [...entries.values()].flatMap((found) => [...found.values()]);
    return {
      resources: buildResourceSet(all.flatMap(({ resource }) => resource ?? [])),
      problems: all.flatMap(({ problems }) => problems),
      generations: new Map(
        all.flatMap(({ id, generation }) =>
          id === undefined || generation === undefined ? [] : [[id, generation]],
        ),
      ),
    };
  }

  #entryOf(object: KubeObject, before: Entry | undefined): Entry {
    const { resourceVersion: version, generation } = object.metadata;
    if (before !== undefined && before.version === version) return before;
    const parsed = (this.#options.parse ?? parseObject)(object);
    if (parsed.kind === "ok") {
      const { resource } = parsed;
      const id = `${resource.kind}/${resource.namespace}/${resource.name}`;
      // A write of a status alone changes nothing: the same value tells the compiler so.
      const same = before?.resource?.version === resource.version ? before.resource : resource;
      return { version, id, problems: [], resource: same, generation };
    }
    const problems = parsed.findings.map(({ reason, path, message, fix }): Problem => ({
      reason,
      file: `namespace ${object.metadata.namespace ?? ""}`,
      line: undefined,
      ...parsed.identity,
      path: formatPath(path),
      message,
      fix,
    }));
    return { version, id: parsed.id, problems, resource: before?.resource, generation };
  }
}
