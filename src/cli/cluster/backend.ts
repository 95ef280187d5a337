/** The backend for an installation in a cluster, over the Kubernetes API. */
import { namesOf } from "../../controller/names.ts";
import { isConflict } from "../../kubernetes/connection.ts";
import { CORE } from "../../kubernetes/objects.ts";
import type { Backend } from "../backend.ts";
import { CliError } from "../errors.ts";
import type { ClusterTarget } from "../target.ts";
import { applyManifests, changeOf } from "./apply.ts";
import { withGuardCounts } from "./guard-counts.ts";
import { judged } from "./judged.ts";
import { mergeMetrics } from "./metrics.ts";
import { askPod, GATEWAY_PORTS, gatewayPods } from "./pods.ts";
import { readProxies } from "./proxies.ts";
import { type ClusterSession, explained, openSession } from "./session.ts";
import { readStatus } from "./status.ts";
import { readTools } from "./tools.ts";
import { addressOf, viewOf } from "./views.ts";

/** @throws CliError if the kubeconfig cannot be used */
export function clusterBackend(target: ClusterTarget): Backend {
  const session = openSession(target);
  const { client } = session;
  const run = <Result>(work: () => Promise<Result>): Promise<Result> => explained(session, work);
  return {
    apply: (manifests, { create = false } = {}) =>
      run(async () => applyManifests(session, manifests, create)),
    list: (kind, namespace) =>
      run(async () => {
        const { items } = await client.list(addressOf(kind), namespace);
        const views = items.map((object) => viewOf(kind, object));
        return kind === "GuardBinding" ? withGuardCounts(session, views) : views;
      }),
    get: (kind, namespace, name) =>
      run(async () => {
        const object = await client.get(addressOf(kind), { namespace, name });
        if (object === undefined) return undefined;
        const view = viewOf(kind, object);
        return kind === "GuardBinding" ? (await withGuardCounts(session, [view]))[0] : view;
      }),
    patch: (kind, namespace, name, patch) =>
      run(async () => {
        const address = addressOf(kind);
        const before = await client.get(address, { namespace, name });
        if (before === undefined) throw new CliError(`there is no ${kind} ${namespace}/${name}`);
        try {
          const written = await client.merge(address, { namespace, name }, patch);
          const object = viewOf(kind, await judged(session, written));
          return { kind, namespace, name, change: changeOf(before, written), object };
        } catch (error) {
          if (!isConflict(error)) throw error;
          throw new CliError(
            `${kind} ${namespace}/${name} has changed in the meantime: check it again, and retry`,
          );
        }
      }),
    delete: (kind, namespace, name) =>
      run(async () => {
        const address = addressOf(kind);
        const object = await client.get(address, { namespace, name });
        if (object === undefined) return false;
        await client.delete(address, { namespace, name });
        return true;
      }),
    tools: (namespace, provider) => run(async () => readTools(session, { namespace, provider })),
    metrics: () => run(async () => metricsOf(session)),
    token: (namespace, agent) => run(async () => tokenOf(session, namespace, agent)),
    status: () => run(async () => readStatus(session)),
    proxies: () => run(async () => readProxies(session)),
  };
}

/** @throws ApiError, CliError */
async function metricsOf(session: ClusterSession): Promise<string> {
  const pods = (await gatewayPods(session)).filter(({ running }) => running);
  if (pods.length === 0)
    throw new CliError(
      `No pod of the gateway runs in the namespace ${session.systemNamespace}. Look with svc ` +
        "check, or name the namespace with --system-namespace.",
    );
  const texts = await Promise.all(
    pods.map(async (pod) => {
      const text = await askPod(session, pod, GATEWAY_PORTS.http, "/metrics");
      return [pod.name, String(text)] as const;
    }),
  );
  return mergeMetrics(new Map(texts));
}

/** The controller keeps each agent's token in a Secret beside it. @throws ApiError, CliError */
async function tokenOf(
  { client }: ClusterSession,
  namespace: string,
  agent: string,
): Promise<string> {
  const name = { namespace, name: agent };
  if ((await client.get(addressOf("Agent"), name)) === undefined)
    throw new CliError(`no Agent ${agent} in namespace ${namespace}`);
  const secret = await client.get(CORE.secret, { namespace, name: namesOf(agent).token });
  const data = (secret?.["data"] ?? {}) as Readonly<Record<string, string>>;
  if (data["token"] === undefined)
    throw new CliError(
      `Agent ${agent} in namespace ${namespace} has no token yet. The controller makes it: look ` +
        "with svc check.",
    );
  return Buffer.from(data["token"], "base64").toString("utf8");
}
