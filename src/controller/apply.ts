/**
 * Brings objects to their planned state, by server-side apply. An object that is as it was applied
 * is left alone, so that a reconciliation without a difference makes no request. What others have
 * added to it is removed.
 */
import type { KubeClient } from "../kubernetes/client.ts";
import type { KubeKind, KubeObject } from "../kubernetes/objects.ts";
import { isEdited, RESTARTED_AT } from "./edited.ts";
import { APPLIED_ANNOTATION, shortHash } from "./names.ts";
import type { PlannedObject } from "./plan.ts";

/** An object that is not the controller's has the name of a planned one. */
export class NameTakenError extends Error {
  constructor({ kind, object }: PlannedObject) {
    super(
      `${kind.kind} ${object.metadata.name} exists and is not the controller's. ` +
        "Delete or rename it, or rename the agent.",
    );
    this.name = "NameTakenError";
  }
}

export class Applier {
  readonly #client: KubeClient;
  /**
   * Hash of the plan that an object meets, though the API server writes a field in another form
   * (1000m as 1).
   */
  readonly #met = new WeakMap<KubeObject, string>();

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /**
   * @param found the object as it is; undefined if there is none that is the controller's
   * @returns whether a request was made
   * @throws ApiError, NameTakenError
   */
  async apply(planned: PlannedObject, found: KubeObject | undefined): Promise<boolean> {
    const { kind, object } = planned;
    const hash = shortHash(JSON.stringify(object));
    const isApplied =
      found?.metadata.annotations?.[APPLIED_ANNOTATION] === hash && !isEdited(found);
    if (isApplied && (contains(found, object) || this.#met.get(found) === hash)) return false;
    if (found === undefined) await this.#checkName(planned);
    const annotations = { ...object.metadata.annotations, [APPLIED_ANNOTATION]: hash };
    const annotated = { ...object, metadata: { ...object.metadata, annotations } };
    const applied = await this.#client.apply(kind, annotated);
    if (found !== undefined && isEdited(found)) await this.#replace(kind, annotated, applied);
    else if (found?.metadata.resourceVersion === applied.metadata.resourceVersion)
      this.#met.set(found as KubeObject, hash);
    return true;
  }

  /** Nobody else's object is overwritten. */
  async #checkName(planned: PlannedObject): Promise<void> {
    const { namespace = "", name, labels = {}, ownerReferences = [] } = planned.object.metadata;
    const there = await this.#client.get(planned.kind, { namespace, name });
    if (there === undefined) return;
    const { metadata } = there;
    const isOwned = ownerReferences.some(({ uid }) =>
      metadata.ownerReferences?.some((owner) => owner.uid === uid),
    );
    const isLabelled = Object.entries(labels).every(
      ([key, value]) => metadata.labels?.[key] === value,
    );
    if (!isOwned && !isLabelled) throw new NameTakenError(planned);
  }

  /**
   * Server-side apply leaves what others have added, such as a container: the planned fields
   * replace all of them.
   */
  async #replace(kind: KubeKind, planned: KubeObject, applied: KubeObject): Promise<void> {
    const { managedFields: _fields, ...metadata } = applied.metadata;
    await this.#client.replace(kind, { ...withRestart(planned, applied), metadata });
  }
}

/** Keeps the annotation by which `kubectl rollout restart` has rolled the pods. */
function withRestart(planned: KubeObject, applied: KubeObject): KubeObject {
  const template = templateOf(planned);
  const restartedAt = templateOf(applied)?.metadata?.annotations?.[RESTARTED_AT];
  if (template === undefined || restartedAt === undefined) return planned;
  const annotations = { ...template.metadata?.annotations, [RESTARTED_AT]: restartedAt };
  const kept = { ...template, metadata: { ...template.metadata, annotations } };
  return { ...planned, spec: { ...(planned["spec"] as object), template: kept } };
}

interface Template {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
}

function templateOf(object: KubeObject): Template | undefined {
  return (object["spec"] as { readonly template?: Template } | undefined)?.template;
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
