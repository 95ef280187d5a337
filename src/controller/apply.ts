/**
 * Brings objects to their planned state, by server-side apply. An object that is as it was applied
 * is left alone, so that a reconciliation without a difference makes no request.
 */
import type { KubeClient } from "../kubernetes/client.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import { nameOf } from "../kubernetes/objects.ts";
import { APPLIED_ANNOTATION, shortHash } from "./names.ts";
import type { PlannedObject } from "./plan.ts";

export class Applier {
  readonly #client: KubeClient;
  /**
   * Version that an object had after it was applied, by kind and name: the API server may write a
   * field in another form (1000m as 1), which is no difference.
   */
  readonly #versions = new Map<string, string | undefined>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /**
   * @param found the object as it is; undefined if there is none
   * @returns whether a request was made
   * @throws ApiError
   */
  async apply({ kind, object }: PlannedObject, found: KubeObject | undefined): Promise<boolean> {
    const hash = shortHash(JSON.stringify(object));
    const key = `${kind.kind}/${nameOf(object)}`;
    if (found?.metadata.annotations?.[APPLIED_ANNOTATION] === hash) {
      if (contains(found, object)) return false;
      if (this.#versions.get(key) === found.metadata.resourceVersion) return false;
    }
    const annotations = { ...object.metadata.annotations, [APPLIED_ANNOTATION]: hash };
    const applied = await this.#client.apply(kind, {
      ...object,
      metadata: { ...object.metadata, annotations },
    });
    this.#versions.set(key, applied.metadata.resourceVersion);
    return true;
  }
}

/** Returns whether an object has everything that was planned; the server adds what it likes. */
export function contains(found: unknown, planned: unknown): boolean {
  if (Array.isArray(planned))
    return (
      Array.isArray(found) &&
      found.length === planned.length &&
      planned.every((item, i) => contains(found[i], item))
    );
  if (typeof planned !== "object" || planned === null)
    // The server leaves out an empty text.
    return found === planned || (planned === "" && found === undefined);
  const known = (found ?? {}) as Readonly<Record<string, unknown>>;
  return Object.entries(planned).every(([name, value]) =>
    isEmpty(value) ? isEmpty(known[name]) : contains(known[name], value),
  );
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
