/** Copies the audit chains of pods, through a shell in their containers. */
import { closeSync, mkdirSync, openSync, readSync, statSync, truncateSync } from "node:fs";
import path from "node:path";
import { CHECKPOINTS, findChains, listChain, segmentName } from "../../audit/chain/layout.ts";
import { AuditError } from "../../audit/errors.ts";
import { ApiError } from "../../kubernetes/connection.ts";
import { execInPod } from "../../kubernetes/exec.ts";
import { AUDIT_DIR } from "../../pod/sidecar-options.ts";
import type { CopiedPod } from "../cluster-access.ts";
import { ARCHIVE_SCRIPT, ArchiveError, ArchiveReader } from "./chain-archive.ts";
import { agentPods, GATEWAY_CONTAINER, gatewayPods, type Pod, portOf, SIDECAR } from "./pods.ts";
import type { ClusterSession } from "./session.ts";

/** Folder of the chains in the containers of gateways and of sidecars. */
const CHAINS = path.posix.join(AUDIT_DIR, "audit");

/** @param workload `<namespace>/<name>` or `ext:<key>`; undefined for all @throws ApiError */
export async function copyChains(
  session: ClusterSession,
  dir: string,
  workload: string | undefined,
): Promise<readonly CopiedPod[]> {
  const copied: CopiedPod[] = [];
  // One after the other: chains are large, and the connections share the API server.
  for (const [pod, container] of await sourcesOf(session, workload)) {
    const name = `${pod.namespace}/${pod.name}`;
    const target = path.join(dir, String(copied.length));
    mkdirSync(target, { mode: 0o700 });
    copied.push({
      pod: name,
      dir: target,
      problem: await copyOne(session, pod, container, target),
    });
  }
  return copied;
}

/** The pods to read, with the container that has the chains. */
async function sourcesOf(
  session: ClusterSession,
  workload: string | undefined,
): Promise<readonly (readonly [Pod, string])[]> {
  const [namespace, agent] = workload === undefined ? [] : workload.split("/");
  const gateways = onePerVolume((await gatewayPods(session)).filter(({ running }) => running));
  const agents = workload?.startsWith("ext:")
    ? []
    : (await agentPods(session, namespace)).filter(
        (pod) =>
          pod.running &&
          portOf(pod, SIDECAR.container, SIDECAR.port) !== undefined &&
          (agent === undefined || pod.labels["svc.io/agent"] === agent),
      );
  return [
    ...gateways.map((pod) => [pod, GATEWAY_CONTAINER] as const),
    ...agents.map((pod) => [pod, SIDECAR.container] as const),
  ];
}

/** Gateways that share a volume all see the chains of all. */
function onePerVolume(pods: readonly Pod[]): readonly Pod[] {
  const seen = new Set<string>();
  return pods.filter(({ name, spec }) => {
    const volume = spec.volumes?.find((one) => one.name === "audit");
    const claim = volume?.persistentVolumeClaim?.claimName;
    const key = claim === undefined ? `pod ${name}` : `claim ${claim}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** @returns why the chains were not copied; undefined if they were */
async function copyOne(
  { connection }: ClusterSession,
  { namespace, name }: Pod,
  container: string,
  dir: string,
): Promise<string | undefined> {
  const reader = new ArchiveReader(dir);
  try {
    await execInPod(connection, {
      namespace,
      pod: name,
      container,
      command: ["/bin/sh", "-c", ARCHIVE_SCRIPT, "sh", CHAINS],
      onOutput: (part) => reader.write(part),
    });
    reader.end();
    for (const chain of findChains(dir)) cutPartialLines(chain.dir);
    return undefined;
  } catch (error) {
    if (error instanceof ApiError || error instanceof ArchiveError || error instanceof AuditError)
      return error.message;
    throw error;
  } finally {
    reader.close();
  }
}

/** The last lines of a living chain may have been written in part when they were copied. */
function cutPartialLines(dir: string): void {
  const last = listChain(dir).segments.at(-1);
  for (const name of [CHECKPOINTS, ...(last === undefined ? [] : [segmentName(last)])]) {
    const file = path.join(dir, name);
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    const whole = endOfLastLine(file, size);
    if (whole !== size) truncateSync(file, whole);
  }
}

const BLOCK = 64 * 1024;

function endOfLastLine(file: string, size: number): number {
  if (size === 0) return 0;
  const descriptor = openSync(file, "r");
  try {
    const block = Buffer.alloc(BLOCK);
    for (let end = size; end > 0; end -= BLOCK) {
      const start = Math.max(0, end - BLOCK);
      const read = readSync(descriptor, block, 0, end - start, start);
      const at = block.subarray(0, read).lastIndexOf("\n");
      if (at >= 0) return start + at + 1;
    }
    return 0;
  } finally {
    closeSync(descriptor);
  }
}
