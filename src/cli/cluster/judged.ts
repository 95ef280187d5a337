/** Waits until the controller or the gateway has judged the newest version of an object. */
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeObject } from "../../kubernetes/objects.ts";
import { isResourceKind } from "../../resources/kinds.ts";
import type { ClusterSession } from "./session.ts";
import { addressOf, JUDGED_KINDS, stateOf } from "./views.ts";

/** Longest wait, in milliseconds: an installation may be down, or not watch the namespace. */
const WAIT_MS = 5_000;
const POLL_MS = 100;

/** Returns the object as it is then, judged or not. @throws ApiError */
export async function judged(
  { client }: Pick<ClusterSession, "client">,
  written: KubeObject,
): Promise<KubeObject> {
  const { kind, metadata } = written;
  const { namespace = "", name } = metadata;
  if (!isResourceKind(kind) || !JUDGED_KINDS.some((one) => one === kind)) return written;
  const deadline = performance.now() + WAIT_MS;
  let object = written;
  while (stateOf(kind, object).reason === "Pending" && performance.now() < deadline) {
    await sleep(POLL_MS);
    object = (await client.get(addressOf(kind), { namespace, name })) ?? object;
  }
  return object;
}
