/** A gateway in a cluster: its resources, Secrets and statuses are the Kubernetes API's. */
import { WorkloadTokens } from "../access/workload-tokens.ts";
import { secretsOfGateway } from "../compile/gateway-secrets.ts";
import { KubeClient } from "../kubernetes/client.ts";
import { ApiConnection } from "../kubernetes/connection.ts";
import { Informer } from "../kubernetes/informer.ts";
import { LeaderElection } from "../kubernetes/lease.ts";
import { NamedSecrets } from "../kubernetes/named-secrets.ts";
import { CORE, type KubeObject } from "../kubernetes/objects.ts";
import { systemClock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { PRICES_CONFIG_MAP } from "../resources/model-prices.ts";
import { parseObject } from "../resources/parse.ts";
import { ownInformers } from "../sources/kubernetes/own-informers.ts";
import { openKubernetes } from "../sources/kubernetes/kubernetes-source.ts";
import { workloadKeysOf } from "../sources/kubernetes/workload-keys.ts";
import type { Backing } from "./backing.ts";
import { ClusterStatusSink } from "./cluster-status.ts";
import type { ClusterOptions } from "./options.ts";

/** Kinds that are compiled. */
const OWN_KINDS = ["Agent", "ModelProvider", "Provider", "AccessKey", "GuardBinding"] as const;
/** Name of this program in `metadata.managedFields`. */
const FIELD_MANAGER = "svc-gateway";
/** Duration of a Lease for writing statuses, in seconds: nothing is lost while none is held. */
const STATUS_LEASE = { leaseSeconds: 30, renewSeconds: 20, retrySeconds: 5 } as const;
/** Longest wait for the Secrets at the start: those that come later take effect then. */
const SECRETS_WAIT_MS = 3_000;

/** Resolves when the resources are loaded. */
export async function clusterBacking(options: ClusterOptions, log: Logger): Promise<Backing> {
  const client = new KubeClient(ApiConnection.load(), FIELD_MANAGER);
  const base = { client, clock: systemClock, log };
  const own = ownInformers(OWN_KINDS, { ...base, namespaces: options.namespaces });
  const only = (kind: typeof CORE.secret | typeof CORE.configMap, name: string): Informer =>
    new Informer({
      ...base,
      kind,
      namespace: options.ownNamespace,
      selector: { fieldSelector: `metadata.name=${name}` },
    });
  const prices = only(CORE.configMap, PRICES_CONFIG_MAP);
  const workloadKey = only(CORE.secret, options.workloadKeySecret);
  const tokens = await tokensOf(workloadKey, options, log);
  const secrets = new NamedSecrets(base);
  for (const informer of [...own, prices]) informer.start();
  const source = await openKubernetes({
    informers: [...own, prices],
    secrets,
    secretsOf: secretsOfGateway,
    parse: (value) => parseObject(value, "gateway"),
    clock: systemClock,
  });
  await Promise.race([
    secrets.synced(),
    new Promise((resolve) => systemClock.after(SECRETS_WAIT_MS, () => resolve(undefined))),
  ]);
  await source.refresh();
  workloadKey.onChange((_name, object) => {
    const keys = object === undefined ? undefined : workloadKeysOf(object);
    if (keys === undefined)
      log.error(
        { secret: options.workloadKeySecret },
        "no usable workload key; the last one stays",
      );
    else if (tokens.setKeys(...keys)) void source.refresh();
  });
  return {
    source,
    tokens,
    env: () => ({}),
    publishTo: ({ clock, usage }) => {
      const election = new LeaderElection({
        client,
        namespace: options.ownNamespace,
        leaseName: options.statusWriter.leaseName,
        identity: options.pod,
        ...STATUS_LEASE,
        clock,
        log,
        onStarted: () => sink.write(),
        onStopped: () => undefined,
      });
      const sink = new ClusterStatusSink({
        client,
        informers: own,
        usage,
        isWriter: () => election.isLeader,
        intervalMs: options.statusWriter.intervalSeconds * 1_000,
        clock,
        log,
      });
      election.start();
      return {
        publish: (statuses) => sink.publish(statuses),
        close: async () => {
          await sink.close();
          await election.stop();
        },
      };
    },
    close: async () => {
      await source.close();
      await secrets.stop();
      await Promise.all([...own, prices, workloadKey].map(async (informer) => informer.stop()));
    },
  };
}

/** Waits until the controller has made the Secret with the keys. */
async function tokensOf(
  informer: Informer,
  { workloadKeySecret, ownNamespace }: ClusterOptions,
  log: Logger,
): Promise<WorkloadTokens> {
  const found = new Promise<KubeObject>((resolve) => {
    informer.onChange((_name, object) => {
      if (object !== undefined && workloadKeysOf(object) !== undefined) resolve(object);
    });
  });
  informer.start();
  await informer.synced;
  if (informer.objects.size === 0)
    log.warn({ secret: `${ownNamespace}/${workloadKeySecret}` }, "waiting for the workload key");
  return new WorkloadTokens(...(workloadKeysOf(await found) ?? []));
}
