/**
 * The pod of an agent: the agent, its sidecar, and the redirect. Pure. The containers share one
 * network namespace: the sidecar is told apart by its user alone, and the packet rules give the
 * agent's user nothing but loopback and the gateway.
 */
import { SIDECAR_NODE_ENV, SIDECAR_NODE_FLAGS } from "../binding/node-flags.ts";
import { trustEnvironment } from "../interception/trust-environment.ts";
import {
  AUDIT_DIR,
  CONFIG_DIR,
  EXTRA_ROOTS_FILE,
  OPTIONS_FILE,
  RUN_DIR,
  SHARED_DIR,
  TRUST_DIR,
} from "../pod/sidecar-options.ts";
import type { Agent } from "../resources/agent.ts";
import { mcpEnvironment } from "../run/mcp-environment.ts";
import { sdkEnvironment } from "../run/sdk-environment.ts";
import type { ControllerConfig } from "./config.ts";
import { labelsOf, namesOf, selectorOf } from "./names.ts";
import { interceptedHosts, PORTS } from "./sidecar-options.ts";
import type { BindingSpecs } from "../resources/binding-spec.ts";

/** A value of a Secret of the agent's namespace. */
export interface SecretRef {
  readonly name: string;
  readonly key: string;
}

export interface PodInput {
  readonly agent: Agent;
  readonly specs: BindingSpecs;
  /** Variables of the sidecar, by name. */
  readonly secretRefs: ReadonlyMap<string, SecretRef>;
  /** Address of the gateway's Service; undefined if it has none of its own. */
  readonly gatewayAddress: string | undefined;
  /**
   * Annotations whose change rolls the pods, because a running pod does not see what they stand
   * for.
   */
  readonly annotations: Readonly<Record<string, string>>;
}

/** A part of a manifest. */
export type PodManifest = Readonly<Record<string, unknown>>;

const NODE = "/usr/local/bin/node";
const APP = "/opt/svc";

/** Privileges that every container is denied. */
const CONFINED = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
} as const;

/** Names of our containers and volumes. */
const SIDECAR = "svc-sidecar";
const REDIRECT = "svc-redirect";
const VOLUME = {
  config: "svc-config",
  run: "svc-run",
  trust: "svc-trust",
  audit: "svc-audit",
  roots: "svc-roots",
} as const;

/** The template of a Deployment or a Job. */
export function podTemplate(input: PodInput, config: ControllerConfig): PodManifest {
  const { agent, specs, annotations } = input;
  const { spec, name } = agent;
  const exact = interceptedHosts(specs).filter((host) => !host.startsWith("*."));
  return {
    metadata: {
      labels: { ...spec.podLabels, ...labelsOf(name), ...selectorOf(name) },
      annotations: { ...spec.podAnnotations, ...annotations },
    },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: spec.runAsUser,
        runAsGroup: spec.runAsUser,
        fsGroup: spec.runAsUser,
        // A volume of many chains is not walked through at every start.
        fsGroupChangePolicy: "OnRootMismatch",
        seccompProfile: { type: "RuntimeDefault" },
        ...(config.interception === "sysctl"
          ? { sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }] }
          : {}),
      },
      ...(exact.length === 0 ? {} : { hostAliases: [{ ip: "127.0.0.1", hostnames: exact }] }),
      // The sidecar answers: it knows the bound hosts and the gateway, and nothing else.
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["127.0.0.1"], options: [{ name: "ndots", value: "1" }] },
      ...(config.images.pullSecrets.length + (spec.imagePullSecrets?.length ?? 0) === 0
        ? {}
        : {
            imagePullSecrets: [
              ...new Set([...config.images.pullSecrets, ...(spec.imagePullSecrets ?? [])]),
            ].map((secret) => ({ name: secret })),
          }),
      ...(spec.nodeSelector === undefined ? {} : { nodeSelector: spec.nodeSelector }),
      ...(spec.tolerations === undefined ? {} : { tolerations: spec.tolerations }),
      ...(spec.terminationGracePeriodSeconds === undefined
        ? {}
        : { terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds }),
      initContainers: [
        ...(config.interception === "init" ? [redirect(input, config)] : []),
        sidecar(input, config),
      ],
      containers: [agentContainer(agent, specs, config)],
      volumes: [
        { name: VOLUME.config, configMap: { name: namesOf(name).providers } },
        { name: VOLUME.run, emptyDir: { medium: "Memory", sizeLimit: "16Mi" } },
        { name: VOLUME.trust, emptyDir: { medium: "Memory", sizeLimit: "8Mi" } },
        {
          name: VOLUME.audit,
          ...(config.audit.claim === ""
            ? { emptyDir: {} }
            : { persistentVolumeClaim: { claimName: config.audit.claim } }),
        },
        ...(config.sidecar.upstreamCaConfigMap === ""
          ? []
          : [{ name: VOLUME.roots, configMap: { name: config.sidecar.upstreamCaConfigMap } }]),
        ...agentVolumes(agent).map(({ volume }) => volume),
      ],
    },
  };
}

/** Needs user 0 and NET_ADMIN in the network namespace, and ends before anything else runs. */
function redirect({ gatewayAddress }: PodInput, config: ControllerConfig): PodManifest {
  const { images, sidecar, gateway } = config;
  return {
    name: REDIRECT,
    image: images.svc,
    imagePullPolicy: images.pullPolicy,
    command: [NODE, `${APP}/dist/svc-init.js`],
    args: [
      ["--sidecar-uid", String(sidecar.uid)],
      ["--https-port", String(PORTS.https)],
      ["--dns-port", String(PORTS.dns)],
      ["--sidecar-only-port", String(sidecar.metricsPort)],
      gatewayAddress === undefined
        ? []
        : ["--deny-egress", "--gateway", endpoint(gatewayAddress, gateway.port)],
    ].flat(),
    securityContext: {
      ...CONFINED,
      runAsUser: 0,
      runAsGroup: 0,
      runAsNonRoot: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"], add: ["NET_ADMIN"] },
    },
    resources: { requests: { cpu: "10m", memory: "64Mi" }, limits: { memory: "256Mi" } },
  };
}

/**
 * A native sidecar: it is ready before the agent starts, outlives it, and does not keep a Job from
 * completing. https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
 */
function sidecar({ secretRefs }: PodInput, config: ControllerConfig): PodManifest {
  const { images, sidecar: settings } = config;
  const probe = { httpGet: { path: "/readyz", port: settings.metricsPort } };
  return {
    name: SIDECAR,
    image: images.proxy,
    imagePullPolicy: images.pullPolicy,
    restartPolicy: "Always",
    command: [NODE, ...SIDECAR_NODE_FLAGS, `${APP}/dist/sidecar-pod.js`],
    args: [`${CONFIG_DIR}/${OPTIONS_FILE}`],
    env: [
      { name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      ...Object.entries(SIDECAR_NODE_ENV).map(([name, value]) => ({ name, value })),
      ...[...secretRefs]
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { name: secret, key }]) => ({
          name,
          valueFrom: { secretKeyRef: { name: secret, key } },
        })),
    ],
    ports: [{ name: "svc-metrics", containerPort: settings.metricsPort }],
    // Where many pods start at once on a small node, a start may take minutes.
    startupProbe: { ...probe, periodSeconds: 1, failureThreshold: 300 },
    livenessProbe: {
      httpGet: { path: "/livez", port: settings.metricsPort },
      periodSeconds: 10,
      failureThreshold: 3,
    },
    securityContext: {
      ...CONFINED,
      runAsUser: settings.uid,
      runAsGroup: settings.uid,
      runAsNonRoot: true,
      readOnlyRootFilesystem: true,
    },
    resources: settings.resources,
    volumeMounts: [
      { name: VOLUME.config, mountPath: CONFIG_DIR, readOnly: true },
      { name: VOLUME.run, mountPath: RUN_DIR },
      { name: VOLUME.trust, mountPath: SHARED_DIR },
      { name: VOLUME.audit, mountPath: AUDIT_DIR },
      ...(settings.upstreamCaConfigMap === ""
        ? []
        : [
            {
              name: VOLUME.roots,
              mountPath: EXTRA_ROOTS_FILE.slice(0, EXTRA_ROOTS_FILE.lastIndexOf("/")),
              readOnly: true,
            },
          ]),
    ],
  };
}

function agentContainer(
  { spec, name }: Agent,
  { bindings }: BindingSpecs,
  { gateway }: ControllerConfig,
): PodManifest {
  const url = `http://${gateway.host}:${gateway.port}`;
  const token = { secretKeyRef: { name: namesOf(name).token, key: "token" } };
  const optional = Object.fromEntries(
    Object.entries({
      imagePullPolicy: spec.imagePullPolicy,
      command: spec.command,
      args: spec.args,
      workingDir: spec.workingDir,
      resources: spec.resources,
      readinessProbe: spec.readinessProbe,
      livenessProbe: spec.livenessProbe,
    }).filter(([, value]) => value !== undefined),
  );
  return {
    name: "agent",
    image: spec.image,
    ...optional,
    env: [
      ...Object.entries({
        ...trustEnvironment(TRUST_DIR),
        ...sdkEnvironment(url).urls,
        ...mcpEnvironment(bindings),
      }).map(([variable, value]) => ({ name: variable, value })),
      ...sdkEnvironment(url).keys.map((variable) => ({ name: variable, valueFrom: token })),
      ...(spec.env ?? []),
    ],
    securityContext: {
      ...CONFINED,
      runAsUser: spec.runAsUser,
      runAsGroup: spec.runAsUser,
      runAsNonRoot: true,
    },
    volumeMounts: [
      { name: VOLUME.trust, mountPath: SHARED_DIR, readOnly: true },
      ...agentVolumes({ spec }).map(({ mount }) => mount),
    ],
  };
}

/** The agent's own volumes. */
function agentVolumes({
  spec,
}: Pick<Agent, "spec">): readonly { readonly volume: PodManifest; readonly mount: PodManifest }[] {
  return (spec.volumes ?? []).map((given, index) => {
    const name = given.name ?? `volume-${index}`;
    const { persistentVolumeClaim, configMap, emptyDir = {} } = given;
    const source =
      persistentVolumeClaim !== undefined
        ? { persistentVolumeClaim }
        : configMap !== undefined
          ? { configMap }
          : { emptyDir };
    return {
      volume: { name, ...source },
      mount: {
        name,
        mountPath: given.mountPath,
        ...(given.readOnly ? { readOnly: true } : {}),
      },
    };
  });
}

function endpoint(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
