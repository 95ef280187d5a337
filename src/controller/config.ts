/** Configuration of the controller: a YAML file, mounted from a ConfigMap. */
import * as z from "zod";
import { guardEndpointSchema } from "../resources/guard-binding.ts";
import { nameSchema, subdomainSchema } from "../resources/metadata.ts";

const labels = z.record(z.string(), z.string());
const quantities = z.record(z.string(), z.string());

/** https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/network-policy-v1/ */
const peerSchema = z.strictObject({
  namespaceSelector: z.record(z.string(), z.unknown()).optional(),
  podSelector: z.record(z.string(), z.unknown()).optional(),
  ipBlock: z.record(z.string(), z.unknown()).optional(),
});

export const controllerConfigSchema = z.strictObject({
  /** Watched namespaces; empty for all. */
  namespaces: z.array(nameSchema).default([]),
  /** Durations of the Lease, in seconds. */
  leaderElection: z
    .strictObject({
      leaseName: subdomainSchema.default("svc-controller"),
      leaseSeconds: z.int().min(1).default(15),
      renewSeconds: z.int().min(1).default(10),
      retrySeconds: z.number().min(0.1).default(2),
    })
    .prefault({})
    .refine(({ leaseSeconds, renewSeconds }) => renewSeconds < leaseSeconds, {
      path: ["renewSeconds"],
      message: "must be less than leaseSeconds, so that a leader gives up before another begins",
    }),
  /** Secret in the controller's own namespace with the keys of workload tokens. */
  workloadKeySecret: subdomainSchema.default("svc-workload-key"),
  images: z.strictObject({
    /** Envoy and the services: for sidecars. */
    proxy: z.string().min(1),
    /** The rest: for the init container that redirects. */
    svc: z.string().min(1),
    pullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).default("IfNotPresent"),
    /** Names of Secrets, which every agent's namespace must have. */
    pullSecrets: z.array(subdomainSchema).default([]),
  }),
  gateway: z.strictObject({
    /** `<service>.<namespace>.svc.<domain>`. */
    host: z
      .string()
      .regex(
        /^[a-z0-9-]+\.[a-z0-9-]+\.svc(?:\.[a-z0-9.-]+)?$/,
        "must be the whole name of a Service, such as svc-gateway.svc-system.svc.cluster.local",
      ),
    port: z.int().min(1).max(65_535).default(8000),
    serviceAccount: nameSchema.default("svc-gateway"),
    /** Labels of the gateway's pods, for NetworkPolicies. */
    podLabels: labels.default({ "app.kubernetes.io/component": "gateway" }),
  }),
  /** Base URL of the guard service, for the statuses of GuardBindings; undefined for none. */
  guardEndpoint: guardEndpointSchema.optional(),
  /** Address of the installation from outside; empty for the gateway's own. */
  baseUrl: z.string().default(""),
  sidecar: z
    .strictObject({
      resources: z
        .strictObject({
          requests: quantities.default({ cpu: "10m", memory: "96Mi" }),
          limits: quantities.default({ memory: "256Mi" }),
        })
        .prefault({}),
      logLevel: z.string().default("info"),
      /** Interval between checks of the file of Providers, in seconds. */
      pollSeconds: z.int().min(1).default(30),
      metricsPort: z.int().min(1024).max(65_535).default(8090),
      /** User of the sidecar, which no agent may be. */
      uid: z.int().min(1).default(65_533),
      /** ConfigMap in each agent's namespace with further roots (key ca.crt); empty for none. */
      upstreamCaConfigMap: z.string().default(""),
    })
    .prefault({}),
  /**
   * `init`: an init container with NET_ADMIN redirects loopback's ports 443 and 53, and rejects
   * what is not the agent's to call. `sysctl`: without that container, the sidecar itself listens
   * on these ports, and only the NetworkPolicy limits the agent.
   */
  interception: z.enum(["init", "sysctl"]).default("init"),
  /** DNS servers of the sidecars; empty for those of the controller's own /etc/resolv.conf. */
  dns: z.strictObject({ servers: z.array(z.string()).default([]) }).prefault({}),
  networkPolicy: z
    .strictObject({
      enabled: z.boolean().default(true),
      dnsNamespace: z.string().default("kube-system"),
      dnsPodLabels: labels.default({ "k8s-app": "kube-dns" }),
      /** Who may read the sidecars' metrics. */
      metricsFrom: z.array(peerSchema).default([]),
    })
    .prefault({}),
  audit: z
    .strictObject({
      enabled: z.boolean().default(true),
      /**
       * PersistentVolumeClaim in each agent's namespace for the chains of its pods, which outlive
       * them there; empty: they are on the node, and are deleted with the pod.
       */
      claim: z.union([z.literal(""), subdomainSchema]).default(""),
    })
    .prefault({}),
  /** Plain HTTP: /livez, /readyz, /metrics. */
  http: z
    .strictObject({
      address: z.string().default("0.0.0.0"),
      port: z.int().min(1).max(65_535).default(8082),
    })
    .prefault({}),
  logLevel: z.string().default("info"),
});

export type ControllerConfig = z.output<typeof controllerConfigSchema>;
