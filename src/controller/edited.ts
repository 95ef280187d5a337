/**
 * Tells whether somebody else has written fields of an object that are the controller's alone. The
 * API server keeps account of who has written which field:
 * https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
 */
import { withoutManagedFields } from "../kubernetes/informer.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import { FIELD_MANAGER } from "./names.ts";

/** Annotation that `kubectl rollout restart` writes to a template. */
export const RESTARTED_AT = "kubectl.kubernetes.io/restartedAt";

interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  readonly fieldsV1?: FieldSet;
}

interface FieldSet {
  readonly [field: string]: FieldSet;
}

/** Fields that others may write: their labels and annotations, and the status. */
const SHARED: ReadonlySet<string> = new Set(["f:metadata", "f:status", "."]);

const EDITED = Symbol("edited by others");

/** Returns what is kept of an object: all but its account of fields, which is large. */
export function withEdits(object: KubeObject): KubeObject {
  const fields = (object.metadata.managedFields ?? []) as readonly ManagedFields[];
  const kept = withoutManagedFields(object);
  return fields.some(isForeign) ? Object.assign(kept, { [EDITED]: true }) : kept;
}

/** Returns whether others have written fields of an object that {@link withEdits} has returned. */
export function isEdited(object: KubeObject): boolean {
  return EDITED in object;
}

function isForeign({ manager, subresource, fieldsV1 = {} }: ManagedFields): boolean {
  if (manager === FIELD_MANAGER || subresource !== undefined) return false;
  return Object.entries(fieldsV1).some(
    ([field, inner]) => !SHARED.has(field) && !isRestart(field, inner),
  );
}

/** `kubectl rollout restart` adds an annotation to a Deployment's template. */
function isRestart(field: string, inner: FieldSet): boolean {
  const path = ["f:template", "f:metadata", "f:annotations"];
  let at: FieldSet | undefined = field === "f:spec" ? inner : undefined;
  for (const name of path) {
    const names = Object.keys(at ?? {}).filter((key) => key !== ".");
    if (names.length !== 1 || names[0] !== name) return false;
    at = at?.[name];
  }
  return Object.keys(at ?? {}).every((key) => key === "." || key === `f:${RESTARTED_AT}`);
}
