/** Informers of one kind in several namespaces, read as one. */
import { Informer, type InformerListener, type InformerOptions } from "./informer.ts";
import type { KubeObject } from "./objects.ts";

export interface InformerGroupOptions extends Omit<InformerOptions, "namespace"> {
  /** Empty for all. */
  readonly namespaces: readonly string[];
}

export class InformerGroup {
  readonly #members: readonly Informer[];

  constructor({ namespaces, ...options }: InformerGroupOptions) {
    const scopes = namespaces.length === 0 ? [undefined] : namespaces;
    this.#members = scopes.map((namespace) => new Informer({ ...options, namespace }));
  }

  get members(): readonly Informer[] {
    return this.#members;
  }

  /** @param name `<namespace>/<name>` */
  get(name: string): KubeObject | undefined {
    for (const { objects } of this.#members) {
      const found = objects.get(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  *[Symbol.iterator](): Generator<KubeObject> {
    for (const { objects } of this.#members) yield* objects.values();
  }

  onChange(listener: InformerListener): this {
    for (const member of this.#members) member.onChange(listener);
    return this;
  }

  start(): this {
    for (const member of this.#members) member.start();
    return this;
  }

  async synced(): Promise<void> {
    await Promise.all(this.#members.map(({ synced }) => synced));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map(async (member) => member.stop()));
  }
}
