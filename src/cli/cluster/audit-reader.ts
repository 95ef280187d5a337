/**
 * A pod that reads the audit chains on a claim which no running pod mounts: it waits for commands,
 * and is deleted when they have ended. When nobody deletes it, it ends by itself.
 */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiError } from "../../kubernetes/connection.ts";
import { CORE, type KubeObject } from "../../kubernetes/objects.ts";
import { AUDIT_DIR } from "../../pod/sidecar-options.ts";
import type { AtEnd } from "../temporary-folder.ts";
import { hasEnded, type Pod, podOf, whyNotRunning } from "./pods.ts";
import type { ClusterSession } from "./session.ts";

/** A claim with chains, and how its pod runs. */
export interface ClaimReader {
  readonly namespace: string;
  readonly claim: string;
  readonly image: string;
  readonly pullPolicy: string;
  /** Names of Secrets. */
  readonly pullSecrets: readonly string[];
  /** User that wrote the chains, who alone may read them; undefined for the image's. */
  readonly user: number | undefined;
  /** Groups that may enter the volume's root. */
  readonly groups: readonly number[];
}

export const READER_CONTAINER = "reader";

/** What finds the pods of all readers. */
const LABELS = {
  "app.kubernetes.io/name": "svc",
  "app.kubernetes.io/part-of": "svc",
  "app.kubernetes.io/component": "audit-reader",
  "app.kubernetes.io/managed-by": "svc-cli",
} as const;

/** Maximum time of a reader, in seconds: what it reads may be many GiB. */
const LIFETIME_S = 3_600;
const START_TIMEOUT_MS = 120_000;
const POLL_MS = 250;

/** Why a claim could not be read through a pod of its own. */
export class ReaderError extends Error {
  override readonly name = "ReaderError";
}

/**
 * Runs an action while the pod runs.
 * @throws ReaderError if the pod does not start, or cannot be deleted; what the action throws
 */
export async function withReader<Result>(
  session: ClusterSession,
  reader: ClaimReader,
  atEnd: AtEnd,
  action: (pod: string) => Promise<Result>,
  startTimeoutMs = START_TIMEOUT_MS,
): Promise<Result> {
  const { client } = session;
  const { namespace } = reader;
  const name = `svc-audit-reader-${randomBytes(4).toString("hex")}`;
  await removeEnded(session, namespace);
  const created = client.create(CORE.pod, readerPod(name, reader));
  const remove = atEnd(async () => {
    // A pod that is still being created is deleted, too.
    if (await mayExist(created)) await client.delete(CORE.pod, { namespace, name });
  });
  try {
    await created.catch((error: unknown) => {
      throw explained(error, `a pod that reads it could not be created: `, namespace);
    });
    await started(session, { namespace, name }, startTimeoutMs);
    return await action(name);
  } finally {
    await remove().catch((error: unknown) => {
      throw explained(error, `pod ${namespace}/${name} could not be deleted: `, namespace);
    });
  }
}

/** Returns whether there may be an object, whose creation may have got no answer. */
function mayExist(created: Promise<unknown>): Promise<boolean> {
  return created.then(
    () => true,
    (error: unknown) => !(error instanceof ApiError) || error.status === 0,
  );
}

function explained(error: unknown, what: string, namespace: string): unknown {
  if (!(error instanceof ApiError)) return error;
  const remedy =
    error.status === 403
      ? `. Where no running pod mounts the claim, svc audit needs the rights create, get and ` +
        `delete of pods and create of pods/exec in the namespace ${namespace}`
      : "";
  return new ReaderError(what + error.message + remedy);
}

/** Deletes the readers of commands that could not delete them. */
async function removeEnded({ client }: ClusterSession, namespace: string): Promise<void> {
  const labelSelector = `app.kubernetes.io/component=${LABELS["app.kubernetes.io/component"]}`;
  try {
    const { items } = await client.list(CORE.pod, namespace, { labelSelector });
    for (const { metadata } of items.filter(hasEnded))
      await client.delete(CORE.pod, { namespace, name: metadata.name }, metadata.uid);
  } catch (error) {
    // Only tidiness needs it.
    if (!(error instanceof ApiError)) throw error;
  }
}

async function started(
  { client }: ClusterSession,
  name: { readonly namespace: string; readonly name: string },
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const object = await client.get(CORE.pod, name);
    if (object === undefined || hasEnded(object))
      throw new ReaderError(`the pod that reads it, ${name.name}, has ended before it was used`);
    const pod = podOf(object);
    if (pod.running) return;
    if (performance.now() >= deadline)
      throw new ReaderError(
        `the pod that reads it does not start: ${whyWaiting(pod, object) ?? "it is pending"}`,
      );
    await sleep(POLL_MS);
  }
}

function whyWaiting(pod: Pod, object: KubeObject): string | undefined {
  const { conditions = [] } = (object["status"] ?? {}) as {
    readonly conditions?: readonly { readonly status: string; readonly message?: string }[];
  };
  return (
    whyNotRunning(pod, READER_CONTAINER) ??
    conditions.find(({ status, message }) => status === "False" && message !== undefined)?.message
  );
}

/** Meets Pod Security "restricted". */
function readerPod(name: string, reader: ClaimReader): KubeObject {
  const { namespace, claim, image, pullPolicy, pullSecrets, user, groups } = reader;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      // It uses no network, and a mesh's container would outlive its own.
      labels: { ...LABELS, "sidecar.istio.io/inject": "false" },
      annotations: { "linkerd.io/inject": "disabled" },
    },
    spec: {
      restartPolicy: "Never",
      activeDeadlineSeconds: LIFETIME_S,
      terminationGracePeriodSeconds: 1,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...(pullSecrets.length === 0
        ? {}
        : { imagePullSecrets: pullSecrets.map((secret) => ({ name: secret })) }),
      // No fsGroup: the kubelet would change the owner of the files.
      securityContext: {
        runAsNonRoot: true,
        ...(user === undefined ? {} : { runAsUser: user, runAsGroup: user }),
        ...(groups.length === 0 ? {} : { supplementalGroups: groups }),
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          name: READER_CONTAINER,
          image,
          imagePullPolicy: pullPolicy,
          command: ["/bin/sleep", String(LIFETIME_S)],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
          resources: {
            requests: { cpu: "10m", memory: "16Mi" },
            limits: { memory: "64Mi" },
          },
          volumeMounts: [{ name: "audit", mountPath: AUDIT_DIR, readOnly: true }],
        },
      ],
      // The mount is read-only, not the volume, which other pods may write to on this node.
      volumes: [{ name: "audit", persistentVolumeClaim: { claimName: claim } }],
    },
  };
}
