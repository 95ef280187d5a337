/** Where the audit chains of an installation are, and through which pod each place is read. */
import { parse } from "yaml";
import { controllerConfigSchema, type ControllerConfig } from "../../controller/config.ts";
import { podPrefixOf } from "../../controller/names.ts";
import { ApiError } from "../../kubernetes/connection.ts";
import { CORE } from "../../kubernetes/objects.ts";
import { writerOf } from "../../pod/sidecar-options.ts";
import { DEFAULT_RUN_AS_USER } from "../../resources/agent.ts";
import type { ClaimReader } from "./audit-reader.ts";
import {
  agentPods,
  GATEWAY,
  gatewayPods,
  type Pod,
  type PodSpec,
  portOf,
  SIDECAR,
} from "./pods.ts";
import type { ClusterSession } from "./session.ts";

export type ChainSource = {
  /** `pod <namespace>/<name>` or `claim <namespace>/<name>`, for messages. */
  readonly place: string;
  /** Beginning of the names of the chains that are wanted; empty for all. */
  readonly prefix: string;
} & (
  | {
      /** A container that runs, and has the chains. */
      readonly via: "container";
      readonly namespace: string;
      readonly pod: string;
      readonly container: string;
    }
  /** No running pod has the claim. */
  | { readonly via: "reader"; readonly reader: ClaimReader }
  /** The place could not be looked for. */
  | { readonly via: "nothing"; readonly problem: string }
);

/**
 * Lists each place once, so that each chain is read once.
 * @param workload `<namespace>/<name>` or `ext:<key>`; undefined for all
 * @throws ApiError if pods cannot be listed
 */
export async function sourcesOf(
  session: ClusterSession,
  workload: string | undefined,
): Promise<readonly ChainSource[]> {
  const gateways = await gatewaySources(session);
  if (workload?.startsWith("ext:") === true) return gateways;
  const [namespace, agent] = workload === undefined ? [] : workload.split("/");
  const places = new Set(gateways.map(({ place }) => place));
  const agents = await agentSources(session, namespace, agent);
  return [...gateways, ...agents.filter(({ place }) => !places.has(place))];
}

async function gatewaySources(session: ClusterSession): Promise<readonly ChainSource[]> {
  const running = (await gatewayPods(session)).filter((pod) => pod.running);
  return running.length === 0
    ? asked("the claim of the gateway", () => gatewayClaims(session))
    : onePerVolume(running, GATEWAY, "");
}

async function agentSources(
  session: ClusterSession,
  namespace: string | undefined,
  agent: string | undefined,
): Promise<readonly ChainSource[]> {
  const pods = (await agentPods(session, namespace)).filter(
    (pod) => pod.running && portOf(pod, SIDECAR.container, SIDECAR.port) !== undefined,
  );
  // A pod of another agent also has the claim, with the chains of all.
  const isWanted = (pod: Pod): boolean =>
    agent === undefined ||
    pod.labels["svc.io/agent"] === agent ||
    claimOf(pod.spec, SIDECAR.audit) !== undefined;
  const prefix = agent === undefined ? "" : writerOf(podPrefixOf(agent));
  const found = onePerVolume(pods.filter(isWanted), SIDECAR, prefix);
  const places = new Set(found.map(({ place }) => place));
  const onClaims = await asked("the claims of agents", () =>
    agentClaims(session, namespace, prefix),
  );
  return [...found, ...onClaims.filter(({ place }) => !places.has(place))];
}

/** Pods that share a claim all see the chains of all. */
function onePerVolume(
  pods: readonly Pod[],
  { container, audit }: { readonly container: string; readonly audit: string },
  prefix: string,
): readonly ChainSource[] {
  const found = new Map<string, ChainSource>();
  // Ready ones first: another one's container may be starting.
  for (const { namespace, name, spec } of pods.toSorted(
    (a, b) => Number(b.ready) - Number(a.ready),
  )) {
    const claim = claimOf(spec, audit);
    const place = claim === undefined ? `pod ${namespace}/${name}` : `claim ${namespace}/${claim}`;
    if (!found.has(place))
      found.set(place, { place, prefix, via: "container", namespace, pod: name, container });
  }
  return [...found.values()];
}

function claimOf({ volumes }: PodSpec, name: string): string | undefined {
  return volumes?.find((one) => one.name === name)?.persistentVolumeClaim?.claimName;
}

/** A claim that cannot be looked for is no reason to read nothing. */
async function asked(
  place: string,
  look: () => Promise<readonly ChainSource[]>,
): Promise<readonly ChainSource[]> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return [{ place, prefix: "", via: "nothing", problem: error.message }];
  }
}

const claimSource = (reader: ClaimReader, prefix: string): ChainSource => ({
  place: `claim ${reader.namespace}/${reader.claim}`,
  prefix,
  via: "reader",
  reader,
});

/** The claim that gateways would mount, if any ran. @throws ApiError */
async function gatewayClaims({
  client,
  systemNamespace,
}: ClusterSession): Promise<readonly ChainSource[]> {
  const labelSelector = "app.kubernetes.io/part-of=svc,app.kubernetes.io/component=gateway";
  const { items } = await client.list(CORE.deployment, systemNamespace, { labelSelector });
  return items.flatMap((object) => {
    const { template } = (object["spec"] ?? {}) as { readonly template?: { spec?: PodSpec } };
    const spec = template?.spec ?? {};
    const claim = claimOf(spec, GATEWAY.audit);
    const container = spec.containers?.find(({ name }) => name === GATEWAY.container);
    if (claim === undefined || container?.image === undefined) return [];
    const { runAsUser, fsGroup } = spec.securityContext ?? {};
    const reader: ClaimReader = {
      namespace: systemNamespace,
      claim,
      image: container.image,
      pullPolicy: container.imagePullPolicy ?? "IfNotPresent",
      pullSecrets: (spec.imagePullSecrets ?? []).map(({ name }) => name),
      user: runAsUser,
      groups: fsGroup === undefined ? [] : [fsGroup],
    };
    return [claimSource(reader, "")];
  });
}

/** The claims of the controller's configuration that have a volume. @throws ApiError */
async function agentClaims(
  session: ClusterSession,
  namespace: string | undefined,
  prefix: string,
): Promise<readonly ChainSource[]> {
  const config = await controllerConfig(session);
  if (config === undefined || config.audit.claim === "") return [];
  const { audit, images, namespaces: watched, sidecar } = config;
  const everywhere = watched.length === 0 ? [undefined] : watched;
  const asked = namespace === undefined ? everywhere : [namespace];
  const fieldSelector = `metadata.name=${audit.claim}`;
  const lists = await Promise.all(
    asked.map((one) => session.client.list(CORE.persistentVolumeClaim, one, { fieldSelector })),
  );
  return lists
    .flatMap(({ items }) => items)
    .filter((object) => (object["status"] as { phase?: string } | undefined)?.phase === "Bound")
    .map(({ metadata }) =>
      claimSource(
        {
          namespace: metadata.namespace ?? "",
          claim: audit.claim,
          image: images.proxy,
          pullPolicy: images.pullPolicy,
          pullSecrets: images.pullSecrets,
          user: sidecar.uid,
          groups: [DEFAULT_RUN_AS_USER],
        },
        prefix,
      ),
    );
}

/** @returns undefined if the installation has no controller @throws ApiError */
async function controllerConfig({
  client,
  systemNamespace,
}: ClusterSession): Promise<ControllerConfig | undefined> {
  const labelSelector = "app.kubernetes.io/part-of=svc,app.kubernetes.io/component=controller";
  const { items } = await client.list(CORE.configMap, systemNamespace, { labelSelector });
  for (const object of items) {
    const { "controller.yaml": text } = (object["data"] ?? {}) as Readonly<Record<string, string>>;
    if (text === undefined) continue;
    const { data, error } = controllerConfigSchema.safeParse(parse(text));
    if (error === undefined) return data;
    throw new ApiError(
      0,
      "Invalid",
      `the ConfigMap ${systemNamespace}/${object.metadata.name} is of another version: use the ` +
        "svc of the installation",
    );
  }
  return undefined;
}
