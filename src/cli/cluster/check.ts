/** Checks of an installation in a cluster and of its surroundings, for `svc check`. */
import { parse } from "yaml";
import { ApiError } from "../../kubernetes/connection.ts";
import { CORE, type KubeKind, type KubeObject, objectPath } from "../../kubernetes/objects.ts";
import { type CheckResult, fail, ok, warn } from "../checks.ts";
import { checkKinds } from "./check-kinds.ts";
import { checkNetworkPolicies, checkNodes, checkVersion } from "./check-surroundings.ts";
import { checkRights } from "./check-rights.ts";
import { checkPodSecurity } from "./check-pod-security.ts";
import { componentFaults, readComponents } from "./installation.ts";
import { GATEWAY_PORTS } from "./pods.ts";
import type { ClusterSession } from "./session.ts";
import { askGateways } from "./status.ts";
import { addressOf, JUDGED_KINDS, stateOf } from "./views.ts";
import { workloadKeysOf } from "../../sources/kubernetes/workload-keys.ts";

const SERVICE: KubeKind = { apiVersion: "v1", kind: "Service", plural: "services" };
const SELECTOR = "app.kubernetes.io/part-of=svc,app.kubernetes.io/component=";

/** Settings of the programs that the checks need; an undefined one cannot be read. */
interface Config {
  readonly workloadKeySecret: string;
  readonly interception: "init" | "sysctl";
}

/**
 * Runs all checks. A check that the caller has no right for is a warning, and ends no other.
 * @param root of the package
 * @throws ApiError if the cluster cannot be reached
 */
export async function checkCluster(
  session: ClusterSession,
  root: string,
): Promise<readonly CheckResult[]> {
  const version = await checkVersion(session);
  const config = await readConfig(session);
  const others = await Promise.all([
    checkRights(session),
    tried("kinds", async () => checkKinds(session, root)),
    tried("deployments", async () => checkDeployments(session)),
    tried("gateway", async () => checkGateway(session)),
    tried("workload key", async () => checkWorkloadKey(session, config)),
    tried("redis", async () => checkRedis(session)),
    tried("nodes", async () => checkNodes(session)),
    tried("network policies", async () => checkNetworkPolicies(session)),
    tried("pod security", async () => checkPodSecurity(session, config.interception)),
    tried("objects", async () => checkObjects(session)),
  ]);
  return [version, ...others.flat()];
}

async function tried(
  name: string,
  check: () => Promise<readonly CheckResult[]>,
): Promise<readonly CheckResult[]> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [
      warn(
        name,
        error.status === 403
          ? `not checked, because you lack a right: ${error.message}`
          : `not checked: ${error.message}`,
      ),
    ];
  }
}

async function readConfig({ client, systemNamespace }: ClusterSession): Promise<Config> {
  const defaults: Config = { workloadKeySecret: "svc-workload-key", interception: "init" };
  const maps = await client
    .list(CORE.configMap, systemNamespace, { labelSelector: `${SELECTOR}controller` })
    .catch((error: unknown) => {
      if (error instanceof ApiError) return { items: [] };
      throw error;
    });
  for (const map of maps.items) {
    const text = (map["data"] as Readonly<Record<string, string>> | undefined)?.["controller.yaml"];
    if (text !== undefined) return { ...defaults, ...(parse(text) as Partial<Config> | null) };
  }
  return defaults;
}

async function checkDeployments(session: ClusterSession): Promise<readonly CheckResult[]> {
  const components = await readComponents(session);
  const faults = componentFaults(components, session.systemNamespace);
  return faults.length === 0
    ? components.map(({ name, ready }) => ok("deployments", `${name}: ${ready} pods ready`))
    : faults.map((fault) =>
        fail(
          "deployments",
          `${fault}. Install with svc install, name another namespace with --system-namespace, ` +
            `or look at the pods: kubectl -n ${session.systemNamespace} get pods.`,
        ),
      );
}

async function checkGateway(session: ClusterSession): Promise<readonly CheckResult[]> {
  const { client, connection, systemNamespace } = session;
  const { items } = await client.list(SERVICE, systemNamespace, {
    labelSelector: `${SELECTOR}gateway`,
  });
  const service = items.find((one) => portsOf(one).includes(GATEWAY_PORTS.http));
  if (service === undefined)
    return [fail("gateway", `no Service of the gateway in ${systemNamespace}: svc install`)];
  const { name } = service.metadata;
  const checks: CheckResult[] = [];
  try {
    const proxied = { namespace: systemNamespace, name: `http:${name}:${GATEWAY_PORTS.http}` };
    await connection.request(`${objectPath(SERVICE, proxied)}/proxy/readyz`);
    checks.push(ok("gateway", `the Service ${name} answers`));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status === 403) throw error;
    checks.push(
      fail(
        "gateway",
        `the Service ${name} does not answer through the API server (${error.message}). Look at ` +
          "its pods, and at NetworkPolicies between the API server and them.",
      ),
    );
  }
  for (const { pod, status, problem } of await askGateways(session)) {
    if (problem !== undefined) checks.push(fail("gateway", `Pod ${pod.name}: ${problem}`));
    else if (status?.reason !== undefined)
      checks.push(fail("gateway", `Pod ${pod.name} is not ready: ${status.reason}`));
    for (const { nacks } of status?.envoys ?? [])
      for (const { type, message } of nacks)
        checks.push(
          fail(
            "gateway",
            `Envoy of pod ${pod.name} rejected a ${type}: ${message}. Correct the object.`,
          ),
        );
  }
  return checks;
}

function portsOf(service: KubeObject): readonly number[] {
  const { ports = [] } = (service["spec"] ?? {}) as {
    readonly ports?: readonly { readonly port: number }[];
  };
  return ports.map(({ port }) => port);
}

async function checkWorkloadKey(
  { client, systemNamespace }: ClusterSession,
  { workloadKeySecret: name }: Config,
): Promise<readonly CheckResult[]> {
  const secret = await client.get(CORE.secret, { namespace: systemNamespace, name });
  if (secret === undefined)
    return [
      fail(
        "workload key",
        `there is no Secret ${name}, from which agents' tokens derive. The controller makes it: ` +
          `kubectl -n ${systemNamespace} logs deployment/svc-controller.`,
      ),
    ];
  return workloadKeysOf(secret) === undefined
    ? [
        fail(
          "workload key",
          `the Secret ${name} has no key "current" of 32 bytes. Delete it, and the controller ` +
            "makes another; all agents then get new tokens.",
        ),
      ]
    : [ok("workload key", `Secret ${name}`)];
}

async function checkRedis({
  client,
  systemNamespace,
}: ClusterSession): Promise<readonly CheckResult[]> {
  const { items } = await client.list(CORE.deployment, systemNamespace, {
    labelSelector: `${SELECTOR}gateway`,
  });
  return items.map((deployment) => {
    const spec = (deployment["spec"] ?? {}) as {
      readonly template?: {
        readonly spec?: {
          readonly containers?: readonly {
            readonly env?: readonly { readonly name: string }[];
          }[];
        };
      };
    };
    const variables = spec.template?.spec?.containers?.flatMap(({ env = [] }) => env) ?? [];
    return variables.some(({ name }) => name === "SVC_REDIS_URL")
      ? ok("redis", "the gateways share their counters")
      : warn(
          "redis",
          "not configured: each gateway pod counts limits alone, and from zero after a restart. " +
            "Set redis.enabled=true.",
        );
  });
}

/** Maximum number of objects that are listed. */
const MAX_LISTED = 20;

async function checkObjects({ client }: ClusterSession): Promise<readonly CheckResult[]> {
  const lists = await Promise.all(
    JUDGED_KINDS.map(async (kind) =>
      (await client.list(addressOf(kind))).items.map((object) => stateOf(kind, object)),
    ),
  );
  const objects = lists.flat();
  const unready = objects.filter(({ ready, reason }) => !ready && reason !== "Skipped");
  const more = unready.length - MAX_LISTED;
  return [
    ...unready
      .slice(0, MAX_LISTED)
      .map(({ kind, namespace, name, reason, message }) =>
        fail("objects", `${kind} ${namespace}/${name}: ${reason}: ${message}`),
      ),
    ...(more > 0 ? [fail("objects", `${more} more are not ready: svc status`)] : []),
    ...(unready.length === 0 ? [ok("objects", `all ${objects.length} are ready`)] : []),
  ];
}
