/** Names and labels of the objects that the controller makes. */
import { createHash } from "node:crypto";

/** Name of this program in `metadata.managedFields`. */
export const FIELD_MANAGER = "svc-controller";

/** Label of every object of an agent, and of its pods: the agent's name. */
export const AGENT_LABEL = "svc.io/agent";

/** Annotation: hash of the object as it was applied. */
export const APPLIED_ANNOTATION = "svc.io/applied";

/**
 * Annotation of a pod: hash of its Providers' file. A kubelet looks at a pod's ConfigMaps once in a
 * minute or so, and at once when the pod changes.
 */
export const PROVIDERS_ANNOTATION = "svc.io/providers";

/** Annotation of a Job: hash of the run that it is. */
export const RUN_ANNOTATION = "svc.io/run";

/** A name of an object that becomes the label of its pods may have so many characters. */
const MAX_LABEL = 63;
const HASH_LENGTH = 8;

/** Cuts a name to a length; what is cut is replaced by a hash of the whole. */
export function boundedName(name: string, max = MAX_LABEL): string {
  if (name.length <= max) return name;
  return `${name.slice(0, max - HASH_LENGTH - 1).replace(/(?<![-.])[-.]+$/, "")}-${shortHash(name)}`;
}

/** A hash for names and annotations, as hexadecimal digits. */
export function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, HASH_LENGTH);
}

/** The names of the objects of one agent, which are all in its namespace. */
export function namesOf(agent: string) {
  return {
    /** Deployment or Job, and NetworkPolicy. */
    workload: boundedName(`svc-${agent}`),
    providers: `svc-${agent}-providers`,
    guards: `svc-${agent}-guards`,
    // Never the name of another agent's webhook Secret, as "svc-webhook-x-token" could be.
    token: `svc-token-${agent}`,
    webhook: `svc-webhook-${agent}`,
  } as const;
}

/** Maximum length of what the API server puts a random suffix behind. */
const MAX_GENERATED = 58;

/** Beginning of the names of an agent's pods; those of other agents may begin with it, too. */
export function podPrefixOf(agent: string): string {
  return `${namesOf(agent).workload}-`.slice(0, MAX_GENERATED);
}

/** Labels of every object of an agent. */
export function labelsOf(agent: string): Readonly<Record<string, string>> {
  return {
    "app.kubernetes.io/name": "svc",
    "app.kubernetes.io/component": "agent",
    "app.kubernetes.io/managed-by": FIELD_MANAGER,
    [AGENT_LABEL]: agent,
  };
}

/** Labels by which an agent's pods are found; they never change. */
export function selectorOf(agent: string): Readonly<Record<string, string>> {
  return { "app.kubernetes.io/component": "agent", [AGENT_LABEL]: agent };
}
