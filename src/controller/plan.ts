/**
 * Decides what an agent's objects are. Pure: the same resources give the same plan, whatever was
 * made before. An agent that cannot run as it is written gets no workload, and the reason; a
 * workload that runs already is then left as it is.
 */
import type { Compiled } from "../compile/compile.ts";
import { guardsOfAgent, guardSpecsOf } from "../compile/guards.ts";
import {
  CORE,
  type KubeKind,
  type KubeObject,
  type OwnerReference,
} from "../kubernetes/objects.ts";
import { OPTIONS_FILE, SPEC_FILE } from "../pod/sidecar-options.ts";
import type { ObjectStatus, Reason } from "../policy/status.ts";
import type { Agent } from "../resources/agent.ts";
import { type AgentVariant, variantOf } from "../resources/agent-pod.ts";
import type { BindingSpecs } from "../resources/binding-spec.ts";
import { keyOf } from "../resources/metadata.ts";
import type { ControllerConfig } from "./config.ts";
import { labelsOf, namesOf, RUN_ANNOTATION, selectorOf, shortHash } from "./names.ts";
import { networkPolicySpec } from "./network-policy.ts";
import { type PodManifest, podTemplate, type SecretRef } from "./pod.ts";
import { sidecarOptions } from "./sidecar-options.ts";

/** Inputs of each agent's plan besides the resources. */
export interface Surroundings {
  readonly config: ControllerConfig;
  /** Addresses of the cluster's DNS servers. */
  readonly dnsServers: readonly string[];
  /** The gateway's Service; undefined if there is none. */
  readonly gateway: { readonly address: string | undefined } | undefined;
  readonly tokenOf: (namespace: string, name: string) => string;
  /** UID of an Agent, for its objects' owner references. */
  readonly uidOf: (agent: Agent) => string;
  /** Returns a keyed digest of a Secret's value, for the detection of changes. */
  readonly digestOf: (namespace: string, ref: SecretRef) => string;
}

/** An object to be applied, of a kind. */
export interface PlannedObject {
  readonly kind: KubeKind;
  readonly object: KubeObject;
}

export interface Plan {
  readonly variant: AgentVariant;
  /** Objects that the workload needs. */
  readonly objects: readonly PlannedObject[];
  /** Deployment or Job; undefined for a template. */
  readonly workload: PlannedObject | undefined;
  /** Hash of the Providers' file, which changes while the pods run. */
  readonly providersHash: string;
  /** Hash of a task's run: another hash is another run. */
  readonly run: string | undefined;
  /** Seconds after which the Job of a run that has ended is deleted; undefined for never. */
  readonly ttlSeconds: number | undefined;
  /** UID of the Agent. */
  readonly uid: string;
  /** Owner of every object, so that it is deleted with the Agent. */
  readonly owner: OwnerReference;
  /** Why the workload is not brought into being, or up to date; undefined if nothing is wrong. */
  readonly blocked: { readonly reason: Reason; readonly message: string } | undefined;
  /** Whether it has a webhook, whose token a Secret holds. */
  readonly hasWebhook: boolean;
}

/**
 * @param verdict on the Agent
 * @param compiled of resources that hold it
 */
export function planAgent(
  agent: Agent,
  verdict: Pick<ObjectStatus, "reason" | "message">,
  compiled: Compiled,
  around: Surroundings,
): Plan {
  const { config } = around;
  const variant = variantOf(agent);
  const names = namesOf(agent.name);
  const specs = compiled.sidecars.get(keyOf(agent))?.specs ?? {
    version: 1 as const,
    workload: keyOf(agent),
    bindings: [],
  };
  const guards = guardsOfAgent(agent, { bindings: compiled.resources.guardBindings, env: {} });
  const owner = ownerOf(agent, around);
  const base = (name: string) => ({
    name,
    namespace: agent.namespace,
    labels: labelsOf(agent.name),
    ownerReferences: [owner],
  });
  const object = (kind: KubeKind, name: string, fields: PodManifest): PlannedObject => ({
    kind,
    object: { apiVersion: kind.apiVersion, kind: kind.kind, metadata: base(name), ...fields },
  });
  const token = around.tokenOf(agent.namespace, agent.name);
  const isRun = variant !== "template";
  const objects: PlannedObject[] = [
    ...(isRun
      ? [
          object(CORE.configMap, names.providers, {
            data: {
              [OPTIONS_FILE]: json(sidecarOptions(keyOf(agent), config, around.dnsServers)),
              [SPEC_FILE]: json(specs),
            },
          }),
          object(CORE.secret, names.token, {
            type: "Opaque",
            data: { token: Buffer.from(token).toString("base64") },
          }),
        ]
      : []),
    ...(isRun && config.networkPolicy.enabled
      ? [
          object(CORE.networkPolicy, names.workload, {
            spec: networkPolicySpec(agent.name, specs.bindings.length > 0, config),
          }),
        ]
      : []),
    ...((agent.spec.guards ?? []).length > 0
      ? [
          object(CORE.configMap, names.guards, {
            data: { "guards.json": json(guardSpecsOf(agent, guards)) },
          }),
        ]
      : []),
  ];
  const secretRefs = secretRefsOf(agent, specs, compiled);
  const template = podTemplate(
    {
      agent,
      specs,
      secretRefs,
      gatewayAddress: around.gateway?.address,
      annotations: {
        "svc.io/bindings": keptHash(specs, config, around.dnsServers),
        "svc.io/secrets": secretsHash(agent.namespace, secretRefs, token, around),
      },
    },
    config,
  );
  const run = variant === "task" ? runOf(agent) : undefined;
  return {
    variant,
    objects,
    workload: isRun ? workloadOf(agent, variant, template, run, object) : undefined,
    providersHash: shortHash(json(specs)),
    run,
    ttlSeconds: agent.spec.job?.ttlSecondsAfterFinished,
    uid: owner.uid,
    owner,
    blocked: blockOf(agent, verdict, compiled, around),
    hasWebhook: (agent.spec.triggers ?? []).some(({ webhook }) => webhook !== undefined),
  };
}

function ownerOf(agent: Agent, { uidOf }: Surroundings): OwnerReference {
  return {
    apiVersion: "svc.io/v1",
    kind: "Agent",
    name: agent.name,
    uid: uidOf(agent),
    controller: true,
    blockOwnerDeletion: true,
  };
}

function workloadOf(
  agent: Agent,
  variant: AgentVariant,
  template: PodManifest,
  run: string | undefined,
  object: (kind: KubeKind, name: string, fields: PodManifest) => PlannedObject,
): PlannedObject {
  const { workload } = namesOf(agent.name);
  if (variant === "service") {
    return object(CORE.deployment, workload, {
      spec: {
        replicas: agent.spec.replicas ?? 1,
        selector: { matchLabels: selectorOf(agent.name) },
        strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template,
      },
    });
  }
  // Without the time to live: a Job that is gone before its end is recorded would run again.
  const { kind, object: job } = object(CORE.job, workload, {
    spec: {
      parallelism: 1,
      suspend: false,
      backoffLimit: agent.spec.job?.backoffLimit ?? 6,
      ...(agent.spec.job?.activeDeadlineSeconds === undefined
        ? {}
        : { activeDeadlineSeconds: agent.spec.job.activeDeadlineSeconds }),
      template: {
        ...template,
        spec: { ...(template["spec"] as PodManifest), restartPolicy: "Never" },
      },
    },
  });
  const annotations = { [RUN_ANNOTATION]: run ?? "" };
  return { kind, object: { ...job, metadata: { ...job.metadata, annotations } } };
}

/**
 * Returns the hash of what a task does: another one is another run. Limits, guards and what else is
 * in force without a restart are not in it, nor are fields that a later release may add.
 */
function runOf({ spec }: Agent): string {
  const { image, command, args, workingDir, env, runAsUser, volumes, resources, providers } = spec;
  const { activeDeadlineSeconds, backoffLimit } = spec.job ?? {};
  const work = { image, command, args, workingDir, env, runAsUser, volumes, resources, providers };
  return shortHash(json({ ...work, activeDeadlineSeconds, backoffLimit }));
}

/** Each variable of the sidecar, and the value of a Secret that the kubelet gives it. */
function secretRefsOf(
  agent: Agent,
  { bindings }: BindingSpecs,
  { resources }: Compiled,
): ReadonlyMap<string, SecretRef> {
  const refs = new Map<string, SecretRef>();
  for (const { name, auth } of bindings) {
    const secret = resources.providers.get(`${agent.namespace}/${name}`)?.spec.auth?.secretRef;
    for (const [key, variable] of Object.entries(auth.env))
      if (secret !== undefined) refs.set(variable, { name: secret, key });
  }
  return refs;
}

/** The parts of a sidecar's settings that it reads only at its start. */
function keptHash(
  { bindings }: BindingSpecs,
  config: ControllerConfig,
  dnsServers: readonly string[],
): string {
  const kept = bindings.map(({ name, type, hosts, auth, config: settings, mcp }) => [
    name,
    type,
    hosts ?? null,
    auth,
    settings,
    ...(mcp === undefined ? [] : [mcp]),
  ]);
  return shortHash(json([kept, sidecarOptions("", config, dnsServers)]));
}

function secretsHash(
  namespace: string,
  refs: ReadonlyMap<string, SecretRef>,
  token: string,
  { digestOf }: Surroundings,
): string {
  const digests = [...refs].map(([variable, ref]) => `${variable} ${digestOf(namespace, ref)}`);
  return shortHash(json([token, digests.toSorted((a, b) => (a < b ? -1 : 1))]));
}

/** Returns why an agent cannot run as it is written. */
function blockOf(
  agent: Agent,
  { reason, message }: Pick<ObjectStatus, "reason" | "message">,
  { missing }: Compiled,
  {
    gateway,
    config: {
      audit,
      sidecar,
      gateway: { host },
    },
  }: Surroundings,
): Plan["blocked"] {
  if (BLOCKING.has(reason)) return { reason, message };
  if (agent.spec.runAsUser === sidecar.uid)
    return {
      reason: "ReservedUser",
      message: `spec.runAsUser: ${sidecar.uid} is the sidecar's user; choose another`,
    };
  const claims = (agent.spec.volumes ?? []).map((one) => one.persistentVolumeClaim?.claimName);
  if (claims.includes(audit.claim))
    return {
      reason: "ReservedVolume",
      message: `spec.volumes: the claim ${audit.claim} holds audit chains; choose another`,
    };
  const absent = missing.get(keyOf(agent));
  if (absent !== undefined) return { reason: "DegradedProviders", message: absent.join("; ") };
  if (gateway === undefined)
    return { reason: "GatewayNotFound", message: `there is no Service ${host}` };
  return undefined;
}

/** Reasons for which a workload is not brought into being. */
const BLOCKING: ReadonlySet<Reason> = new Set<Reason>([
  "RunsAsRoot",
  "UnknownGuardBinding",
  "RelaxedGuard",
  "InvalidSpec",
  "NotSupportedYet",
  "Skipped",
]);

function json(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
