/**
 * Resources from the Kubernetes API. Informers report what changes; a burst of changes becomes one
 * load. Only changed objects are parsed, and the last good version of each stays in use while its
 * newest one is refused. A write that changes no resource, such as that of a status, is no load.
 */
import type { Informer } from "../../kubernetes/informer.ts";
import type { Secrets } from "../../kubernetes/named-secrets.ts";
import type { KubeObject } from "../../kubernetes/objects.ts";
import type { Clock } from "../../platform/clock.ts";
import { type Resource, resourceId } from "../../resources/kinds.ts";
import { type ObjectResult, parseObject } from "../../resources/parse.ts";
import { formatPath, type Problem } from "../../resources/problem.ts";
import {
  buildResourceSet,
  EMPTY_RESOURCE_SET,
  type ResourceSet,
} from "../../resources/resource-set.ts";
import { type LoadResult, NO_GENERATIONS } from "../load-result.ts";
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

const NOTHING: LoadResult = {
  resources: EMPTY_RESOURCE_SET,
  problems: [],
  generations: NO_GENERATIONS,
};

interface Entry {
  readonly uid: string | undefined;
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
    this.#load = this.#readAll() ?? NOTHING;
  }

  current(): LoadResult {
    return this.#load;
  }

  /** The informers follow the server on their own: what they know by now is loaded. */
  refresh(): Promise<LoadResult> {
    this.#publish(true);
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

  /** @param always also if nothing has changed */
  #publish(always = false): void {
    this.#cancel?.();
    this.#cancel = undefined;
    if (this.#closed) return;
    const load = this.#readAll();
    if (load === undefined && !always) return;
    this.#load = load ?? this.#load;
    for (const listener of this.#listeners) listener(this.#load);
  }

  /**
   * The resources tell which Secrets are needed, some of which may be known already.
   * @returns undefined if nothing has changed
   */
  #readAll(): LoadResult | undefined {
    const { secrets, secretsOf } = this.#options;
    const load = this.#read();
    if (load === undefined) return undefined;
    secrets.track(secretsOf(load.resources));
    return this.#read() ?? load;
  }

  /** @returns undefined if nothing has changed */
  #read(): LoadResult | undefined {
    const { informers, secrets } = this.#options;
    const entries = new Map<object, ReadonlyMap<string, Entry>>();
    let isChanged = false;
    for (const source of [...informers, secrets]) {
      const before = this.#entries.get(source) ?? new Map<string, Entry>();
      const found = new Map<string, Entry>();
      for (const [name, object] of source.objects) {
        const last = before.get(name);
        const entry = this.#entryOf(object, last);
        found.set(name, entry);
        isChanged ||= last === undefined || !isSame(entry, last);
      }
      isChanged ||= before.size !== found.size;
      entries.set(source, found);
    }
    this.#entries = entries;
    if (!isChanged) return undefined;
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

  #entryOf(object: KubeObject, last: Entry | undefined): Entry {
    const { resourceVersion: version, generation, uid } = object.metadata;
    // An object that was made anew has no earlier versions.
    const before = last?.uid === uid ? last : undefined;
    if (before !== undefined && before.version === version) return before;
    const parsed = (this.#options.parse ?? parseObject)(object);
    if (parsed.kind === "ok") {
      const { resource } = parsed;
      const id = resourceId(resource);
      // A write of a status alone changes nothing: the same value tells the compiler so.
      const same = before?.resource?.version === resource.version ? before.resource : resource;
      return { uid, version, id, problems: [], resource: same, generation };
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
    return { uid, version, id: parsed.id, problems, resource: before?.resource, generation };
  }
}

/** Whether two entries of one object lead to the same load. */
function isSame(a: Entry, b: Entry): boolean {
  return (
    a === b ||
    (a.resource === b.resource &&
      a.generation === b.generation &&
      a.problems.length === 0 &&
      b.problems.length === 0)
  );
}
