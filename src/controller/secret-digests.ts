/**
 * The Secrets of the watched namespaces, without their values: of each value only a keyed digest is
 * kept, by which a change is detected and whether it is usable in a header. A process that is
 * broken into holds no credential.
 */
import { createHmac } from "node:crypto";
import { InformerGroup, type InformerGroupOptions } from "../kubernetes/informer-group.ts";
import { withoutManagedFields } from "../kubernetes/informer.ts";
import type { Secrets } from "../kubernetes/named-secrets.ts";
import { CORE, type KubeObject, nameOf } from "../kubernetes/objects.ts";

/** Releases of Helm, which may be many and large, are nobody's credential. */
const NOT_RELEASES = { fieldSelector: "type!=helm.sh/release.v1" };

export class SecretDigests implements Secrets {
  readonly #group: InformerGroup;
  readonly #objects = new Map<string, KubeObject>();
  readonly #all = new Map<string, KubeObject>();
  readonly #listeners = new Set<() => void>();
  #tracked: ReadonlySet<string> = new Set();

  /** @param key of the digests; the same for every process, so that a restart changes nothing */
  constructor(
    options: Pick<InformerGroupOptions, "client" | "namespaces" | "clock" | "log">,
    key: Uint8Array,
  ) {
    this.#group = new InformerGroup({
      ...options,
      kind: CORE.secret,
      selector: NOT_RELEASES,
      keep: (object) => digested(object, key),
    });
    this.#group.onChange((name, object) => {
      if (object === undefined) this.#all.delete(name);
      else this.#all.set(name, object);
      if (!this.#tracked.has(name)) return;
      this.#publish(name);
      for (const listener of this.#listeners) listener();
    });
  }

  get objects(): ReadonlyMap<string, KubeObject> {
    return this.#objects;
  }

  /** Returns the digest of a value; empty if there is none. */
  digestOf(
    namespace: string,
    { name, key }: { readonly name: string; readonly key: string },
  ): string {
    const data = this.#all.get(`${namespace}/${name}`)?.["data"] as
      | Readonly<Record<string, string>>
      | undefined;
    return data !== undefined && Object.hasOwn(data, key) ? (data[key] ?? "") : "";
  }

  track(names: ReadonlySet<string>): void {
    this.#tracked = names;
    for (const name of this.#objects.keys()) if (!names.has(name)) this.#objects.delete(name);
    for (const name of names) this.#publish(name);
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  start(): this {
    this.#group.start();
    return this;
  }

  async synced(): Promise<void> {
    await this.#group.synced();
  }

  async stop(): Promise<void> {
    await this.#group.stop();
  }

  #publish(name: string): void {
    const object = this.#all.get(name);
    if (object === undefined) this.#objects.delete(name);
    else this.#objects.set(name, object);
  }
}

/** Characters that can be sent in a header, as in `resolveSecret`. */
const SENDABLE = /^[\x21-\x7e]+(?: +[\x21-\x7e]+)*[\r\n]*$/;

function digested(secret: KubeObject, key: Uint8Array): KubeObject {
  const data = (secret["data"] ?? {}) as Readonly<Record<string, string>>;
  const { name, namespace, resourceVersion, uid, generation } =
    withoutManagedFields(secret).metadata;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(uid === undefined ? {} : { uid }),
      ...(generation === undefined ? {} : { generation }),
    },
    data: Object.fromEntries(
      Object.entries(data).map(([name, value]) => {
        const bytes = Buffer.from(value, "base64");
        const digest = createHmac("sha256", key)
          .update(`${nameOf(secret)}\n${name}\n`)
          .update(bytes)
          .digest("hex");
        // A value that cannot be sent stays recognisable as one.
        const shown = SENDABLE.test(bytes.toString("utf8")) ? digest : `\n${digest}\n-`;
        return [name, Buffer.from(bytes.length === 0 ? "" : shown).toString("base64")];
      }),
    ),
  };
}
