/**
 * The values of the Helm chart, strictly: unknown names and wrong types are errors. What spans
 * several values is in the chart's `_checks.tpl`.
 */
import * as z from "zod";

// Patterns are for Go's regular expressions, which have no lookahead.
const CIDR = z.string().regex(/^[0-9a-fA-F.:]+\/[0-9]{1,3}$/);
const ORIGIN = z.string().regex(/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]+$/);
const HOST = z.string().regex(/^([a-z0-9_.-]*[a-z0-9]|[0-9a-f]*:[0-9a-f]*:[0-9a-f.:]*)$/);
const ADDRESS = z.string().regex(/^[0-9a-fA-F.:]+$/);
const DNS_LABEL = z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
const OPTIONAL_NAME = z.string().regex(/^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?$/);
const DIGEST = z.string().regex(/^(sha256:[0-9a-f]{64})?$/);
const QUANTITY = z.union([
  z.string().regex(/^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti|P|Pi)?$/),
  z.number().min(0),
]);
/** A number or a percentage; as text, it may also be empty. */
const COUNT_OR_PERCENTAGE = z.union([
  z.string().regex(/^([0-9]+%?)?$/),
  z.int().min(0).max(100_000),
]);
const COUNT = z.int().min(1).max(1_000_000);
const SECONDS = z.int().min(1).max(86_400);
const MILLISECONDS = z.int().min(100).max(3_600_000);
const BYTES = z.int().min(1_048_576).max(1_099_511_627_776);
const PORT = z.int().min(1).max(65_535);
const LOG_LEVEL = z.enum(["debug", "info", "warn", "error"]);
const PULL_POLICY = z.enum(["Always", "IfNotPresent", "Never"]);
const TEXTS = z.record(z.string(), z.string());
/** Kubernetes' own objects are checked by the API server. */
const OBJECT = z.looseObject({});
const OBJECTS = z.array(OBJECT);

/** Without `claims`, which the configuration of the sidecars cannot hold. */
const QUANTITIES = {
  requests: z.record(z.string(), QUANTITY).optional(),
  limits: z.record(z.string(), QUANTITY).optional(),
};
const RESOURCES = z.strictObject({ ...QUANTITIES, claims: OBJECTS.optional() });

const NETWORK_POLICY = { enabled: z.boolean(), egress: OBJECTS };

const SERVICE_ACCOUNT = z.strictObject({
  create: z.boolean(),
  name: OPTIONAL_NAME,
  annotations: TEXTS,
});

const DISRUPTION_BUDGET = z.strictObject({
  enabled: z.boolean(),
  minAvailable: COUNT_OR_PERCENTAGE,
  maxUnavailable: COUNT_OR_PERCENTAGE,
});

const AUTOSCALING = z.strictObject({
  enabled: z.boolean(),
  minReplicas: COUNT,
  maxReplicas: COUNT,
  targetCPUUtilizationPercentage: z.int().min(0).max(10_000),
  targetMemoryUtilizationPercentage: z.int().min(0).max(10_000),
  behavior: OBJECT,
});

/** Where pods run, and as whom. */
const POD = {
  podAnnotations: TEXTS,
  podLabels: TEXTS,
  nodeSelector: TEXTS,
  tolerations: OBJECTS,
  affinity: OBJECT,
  priorityClassName: OPTIONAL_NAME,
  podSecurityContext: OBJECT,
  securityContext: OBJECT,
};

/** What the pods of our own images have in addition. */
const OWN_POD = {
  ...POD,
  topologySpreadConstraints: OBJECTS,
  extraEnv: z.array(z.looseObject({ name: z.string().min(1) })),
  extraVolumes: OBJECTS,
  extraVolumeMounts: OBJECTS,
  serviceAccount: SERVICE_ACCOUNT,
};

const MONITOR = z.strictObject({
  enabled: z.boolean(),
  labels: TEXTS,
  interval: z.string().regex(/^([0-9]+(ms|s|m|h))*$/),
});

const EXTERNAL = z.strictObject({
  enabled: z.boolean(),
  trustedProxies: z.array(CIDR),
  service: z.strictObject({
    type: z.enum(["ClusterIP", "NodePort", "LoadBalancer"]),
    port: PORT,
    nodePort: z.int().min(0).max(65_535),
    annotations: TEXTS,
    labels: TEXTS,
    loadBalancerSourceRanges: z.array(CIDR),
    loadBalancerClass: z.string(),
    externalTrafficPolicy: z.enum(["Local", "Cluster"]),
  }),
  ingress: z.strictObject({
    enabled: z.boolean(),
    className: OPTIONAL_NAME,
    annotations: TEXTS,
    labels: TEXTS,
    hosts: z.array(z.string().min(1)),
    tls: z.array(
      z.strictObject({ secretName: z.string().optional(), hosts: z.array(z.string()).optional() }),
    ),
  }),
  httpRoute: z.strictObject({
    enabled: z.boolean(),
    annotations: TEXTS,
    labels: TEXTS,
    parentRefs: z.array(z.looseObject({ name: z.string().min(1) })),
    hostnames: z.array(z.string().min(1)),
    filters: OBJECTS,
    timeouts: TEXTS,
  }),
});

/** As in the options of the audit chain (`src/audit/options.ts`). */
const THRESHOLD = z.union([
  z.strictObject({ kind: z.literal("bytes"), bytes: z.int().min(0).max(1_099_511_627_776) }),
  z.strictObject({ kind: z.literal("fraction"), fraction: z.number().min(0).max(1) }),
]);

const AUDIT = z.strictObject({
  enabled: z.boolean(),
  onFailure: z.enum(["refuse", "continue"]),
  sync: z.enum(["group", "none"]),
  space: z.strictObject({
    low: THRESHOLD.optional(),
    full: THRESHOLD.optional(),
    maxBytes: BYTES.optional(),
  }),
  persistence: z.strictObject({
    enabled: z.boolean(),
    existingClaim: OPTIONAL_NAME,
    storageClass: OPTIONAL_NAME,
    accessModes: z
      .array(z.enum(["ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]))
      .min(1)
      .max(3),
    size: QUANTITY,
    annotations: TEXTS,
  }),
  emptyDirSizeLimit: QUANTITY,
});

const GATEWAY = z.strictObject({
  replicas: z.int().min(0).max(1000),
  externalProviderGateway: EXTERNAL,
  service: z.strictObject({ annotations: TEXTS, labels: TEXTS }),
  redisTimeoutMs: z.int().min(1).max(60_000),
  leaseMs: MILLISECONDS,
  bytesInFlight: z.strictObject({ total: BYTES, perCaller: BYTES }),
  upstreamCaConfigMap: OPTIONAL_NAME,
  uploadIdleMs: MILLISECONDS,
  mcp: z.strictObject({ allowedOrigins: z.array(ORIGIN), allowedHosts: z.array(HOST) }),
  mock: z.boolean(),
  statusIntervalSeconds: SECONDS,
  drainSeconds: z.int().min(0).max(86_400),
  drainDelaySeconds: z.int().min(0).max(600),
  logLevel: LOG_LEVEL,
  envoy: z.strictObject({
    heapBytes: z.int().min(67_108_864).max(1_099_511_627_776),
    concurrency: z.int().min(0).max(1024),
  }),
  audit: AUDIT,
  resources: RESOURCES,
  autoscaling: AUTOSCALING,
  podDisruptionBudget: DISRUPTION_BUDGET,
  maxSurge: z.union([z.string().regex(/^[1-9][0-9]*%$/), z.int().min(1).max(1000)]),
  networkPolicy: z.strictObject({
    ...NETWORK_POLICY,
    from: OBJECTS,
    externalFrom: OBJECTS,
    ingress: OBJECTS,
  }),
  ...OWN_POD,
});

const CONTROLLER = z.strictObject({
  replicas: z.int().min(0).max(100),
  leaderElection: z.strictObject({
    leaseSeconds: SECONDS,
    renewSeconds: SECONDS,
    retrySeconds: SECONDS,
  }),
  logLevel: LOG_LEVEL,
  resources: RESOURCES,
  podDisruptionBudget: DISRUPTION_BUDGET,
  networkPolicy: z.strictObject(NETWORK_POLICY),
  ...OWN_POD,
});

const AGENTS = z.strictObject({
  interception: z.enum(["init", "sysctl"]),
  dns: z.strictObject({ servers: z.array(ADDRESS) }),
  networkPolicy: z.strictObject({
    enabled: z.boolean(),
    dnsNamespace: DNS_LABEL,
    dnsPodLabels: TEXTS,
  }),
  audit: z.strictObject({ enabled: z.boolean(), claim: z.string() }),
  sidecar: z.strictObject({
    resources: z.strictObject(QUANTITIES),
    logLevel: LOG_LEVEL,
    pollSeconds: SECONDS,
    metricsPort: z.int().min(1024).max(65_535),
    uid: z.int().min(1).max(4_294_967_294),
    upstreamCaConfigMap: OPTIONAL_NAME,
  }),
});

const REDIS = z.strictObject({
  enabled: z.boolean(),
  externalUrl: z.string().regex(/^(rediss?:\/\/[^?#\s]+)?$/),
  existingSecret: OPTIONAL_NAME,
  existingSecretKeys: z.strictObject({
    password: z.string(),
    username: z.string(),
    url: z.string(),
  }),
  tls: z.strictObject({ enabled: z.boolean(), existingSecret: OPTIONAL_NAME }),
  image: z.strictObject({
    registry: z.string(),
    repository: z.string().min(1),
    tag: z.string().min(1),
    digest: DIGEST,
    pullPolicy: PULL_POLICY,
  }),
  maxMemory: z.string().regex(/^[1-9][0-9]*(kb|mb|gb)$/),
  persistence: z.strictObject({
    enabled: z.boolean(),
    existingClaim: OPTIONAL_NAME,
    storageClass: OPTIONAL_NAME,
    size: QUANTITY,
    annotations: TEXTS,
  }),
  resources: RESOURCES,
  networkPolicy: z.strictObject({ ...NETWORK_POLICY, ingress: OBJECTS }),
  ...POD,
});

/** Without credentials, which everyone who reads the Deployment would see. */
const CLASSIFIER_URL = z.string().regex(/^(https?:\/\/[^\s/?#@]+(\/[^\s?#@]*)?)?$/);

const UPSTREAM = z.strictObject({
  endpoint: CLASSIFIER_URL,
  existingSecret: OPTIONAL_NAME,
  existingSecretKey: z.string().min(1),
  authHeader: z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/),
  authPrefix: z.string().regex(/^[\x20-\x7e]*$/),
});

const GUARD = z.strictObject({
  enabled: z.boolean(),
  type: z.enum(["promptGuard", "stub", "llamaGuard", "custom"]),
  model: z.string(),
  image: z.strictObject({
    registry: z.string(),
    repository: z.string().min(1),
    tag: z.string(),
    digest: DIGEST,
    pullPolicy: z.union([PULL_POLICY, z.literal("")]),
  }),
  promptGuard: z.strictObject({
    path: z.string().regex(/^(\/[^\s]+)?$/),
    existingClaim: OPTIONAL_NAME,
  }),
  stub: z.strictObject({ patterns: z.array(z.string().regex(/^[^,]*[^,\s][^,]*$/)) }),
  llamaGuard: UPSTREAM,
  custom: UPSTREAM,
  replicas: z.int().min(0).max(1000),
  logLevel: LOG_LEVEL,
  extraArgs: z.array(z.string()),
  service: z.strictObject({ annotations: TEXTS, labels: TEXTS }),
  resources: RESOURCES,
  autoscaling: AUTOSCALING,
  podDisruptionBudget: DISRUPTION_BUDGET,
  networkPolicy: z.strictObject({ ...NETWORK_POLICY, ingress: OBJECTS }),
  ...OWN_POD,
});

const IMAGE = z.strictObject({ repository: z.string().min(1), digest: DIGEST });

const VALUES = z.strictObject({
  // As a dependency: its parent may switch it on and off by this value, and shares `global`.
  enabled: z.boolean().optional(),
  global: z.looseObject({ imageRegistry: z.string(), imagePullSecrets: z.array(z.string()) }),
  nameOverride: OPTIONAL_NAME,
  fullnameOverride: OPTIONAL_NAME,
  commonLabels: TEXTS,
  images: z.strictObject({
    registry: z.string(),
    tag: z.string(),
    pullPolicy: PULL_POLICY,
    pullSecrets: z.array(z.string().min(1)),
    proxy: IMAGE,
    svc: IMAGE,
  }),
  clusterDomain: z.string().min(1),
  watchNamespaces: z.array(DNS_LABEL).meta({ uniqueItems: true }),
  baseUrl: z.string().regex(/^(https?:\/\/[^\s]+)?$/),
  workloadKeySecret: z.string().regex(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/),
  crds: z.strictObject({ install: z.boolean(), annotations: TEXTS }),
  rbac: z.strictObject({ create: z.boolean() }),
  gateway: GATEWAY,
  controller: CONTROLLER,
  agents: AGENTS,
  redis: REDIS,
  guard: GUARD,
  monitoring: z.strictObject({
    scrapeFrom: OBJECTS,
    podMonitor: MONITOR,
    serviceMonitor: MONITOR,
  }),
  tests: z.strictObject({ enabled: z.boolean(), podAnnotations: TEXTS, podLabels: TEXTS }),
});

export interface JsonSchemaNode {
  description?: string;
  readonly properties?: Readonly<Record<string, JsonSchemaNode>>;
  readonly [keyword: string]: unknown;
}

/** Returns the JSON schema of the values; draft 7, which every version of Helm 3 and 4 reads. */
export function valuesSchema(): JsonSchemaNode {
  return z.toJSONSchema(VALUES, { target: "draft-7", io: "input" }) as JsonSchemaNode;
}
