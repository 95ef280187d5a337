/**
 * Valid and invalid objects of each kind, as the API server and the parser must judge them. An
 * invalid sample differs from a valid one in the field that it is about.
 */

export interface ResourceSample {
  readonly title: string;
  readonly kind: string;
  readonly object: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly [field: string]: unknown;
  };
  /** The field that is at fault, as in messages; undefined for a valid sample. */
  readonly fault?: string;
  /** Why the API server cannot find the fault: only the parser does. */
  readonly onlyParser?: string;
}

type Spec = Readonly<Record<string, unknown>>;

const objectOf = (kind: string, spec: Spec, more: object) => ({
  apiVersion: "svc.io/v1",
  kind,
  metadata: { name: "sample" },
  spec,
  ...more,
});

const titleOf = (kind: string, spec: Spec) => {
  const text = JSON.stringify(spec, (_, value: unknown) => (value === undefined ? null : value));
  return `${kind} ${text.slice(0, 120)}`;
};

/** Samples of one kind, whose specs are that of `base` with other members. */
function samplesOf(
  kind: string,
  base: Spec,
  {
    valid,
    invalid,
  }: {
    readonly valid: readonly Spec[];
    readonly invalid: readonly (readonly [spec: Spec, fault: string, onlyParser?: string])[];
  },
): readonly ResourceSample[] {
  return [
    ...valid.map((spec) => ({
      title: titleOf(kind, spec),
      kind,
      object: objectOf(kind, { ...base, ...spec }, {}),
    })),
    ...invalid.map(([spec, fault, onlyParser]) => ({
      title: titleOf(kind, spec),
      kind,
      object: objectOf(kind, { ...base, ...spec }, {}),
      fault: fault === "" ? "spec" : `spec.${fault}`,
      ...(onlyParser === undefined ? {} : { onlyParser }),
    })),
  ];
}

/** A list whose items are different. */
const many = <Item>(count: number, item: (index: number) => Item): readonly Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

const KEYS = "a CRD cannot bound the keys of a map: their pattern would exceed the cost of a rule";

const AGENTS = samplesOf(
  "Agent",
  {},
  {
    valid: [
      {},
      { models: ["openai/gpt-5", "mock/*", "a/meta/llama-*"] },
      { models: many(1000, (i) => `p/${"m".repeat(240)}${i}`) },
      { image: "registry.example.com:5000/team/agent:1.0@sha256:0a", replicas: 0 },
      { image: "i", variant: "task", job: { backoffLimit: 0, ttlSecondsAfterFinished: 60 } },
      { variant: "template" },
      { image: "i", variant: "template" },
      { image: "i", imagePullPolicy: "Never", imagePullSecrets: ["pull.secret"] },
      { image: "i", command: ["sh", "-c"], args: ["echo"], workingDir: "/work" },
      { image: "i", workingDir: "/" },
      {
        image: "i",
        env: [
          { name: "A", value: "" },
          { name: "_b1", value: "$(A)" },
        ],
      },
      { image: "i", env: many(256, (i) => ({ name: `V${i}`, value: "x" })) },
      { image: "i", env: [{ name: "LD_LIBRARY_PATH", value: "/lib" }] },
      { image: "i", resources: { requests: { cpu: "500m" }, limits: { memory: "1.5Gi" } } },
      { image: "i", resources: { limits: { "nvidia.com/gpu": "1", cpu: "1e2" } } },
      { image: "i", nodeSelector: { "kubernetes.io/arch": "amd64", disk: "" } },
      { image: "i", tolerations: [{ operator: "Exists" }, { key: "k", value: "v" }] },
      {
        image: "i",
        tolerations: [{ key: "k", effect: "NoExecute", tolerationSeconds: 30 }],
      },
      { image: "i", podLabels: { team: "a" }, podAnnotations: { "prometheus.io/scrape": "true" } },
      { image: "i", terminationGracePeriodSeconds: 0 },
      { image: "i", readinessProbe: { httpGet: { port: 80 } } },
      { image: "i", livenessProbe: { exec: { command: ["true"] }, periodSeconds: 1 } },
      { image: "i", livenessProbe: { tcpSocket: { port: 65_535 }, failureThreshold: 3 } },
      { image: "i", volumes: [{ mountPath: "/data" }, { mountPath: "/dev/shm" }] },
      { image: "i", volumes: [{ mountPath: "/.a/..b/...", name: "v", readOnly: true }] },
      { image: "i", volumes: [{ mountPath: "/etc/hosts.d", configMap: { name: "c.d" } }] },
      {
        image: "i",
        volumes: [{ mountPath: "/m", emptyDir: { medium: "Memory", sizeLimit: "1Gi" } }],
      },
      { image: "i", volumes: [{ mountPath: "/p", persistentVolumeClaim: { claimName: "c" } }] },
      { runAsUser: 0 },
      { runAsUser: 1000 },
      { rateLimits: { maxCostPerDayUSD: 0.5, requestsPerMinute: 1 } },
      { triggers: [{ webhook: {} }, { webhook: { allowCIDRs: ["10.0.0.0/8", "2001:db8::/32"] } }] },
      { guards: [{ binding: "g" }, { binding: "h", enforcement: "enforce", scan: {} }] },
      { guards: [{ binding: "g", scan: { toolResults: { tools: ["*"] } } }] },
      { providers: ["github"] },
      { filesystem: { readOnlyPaths: ["/"], writablePaths: ["/work"] } },
    ],
    invalid: [
      [{ modles: [] }, "modles"],
      [{ models: "a/b" }, "models"],
      [{ models: ["gpt-5"] }, "models[0]"],
      [{ models: ["Upper/m"] }, "models[0]"],
      [{ models: ["p/a*b"] }, "models[0]"],
      [{ models: ["p/"] }, "models[0]"],
      [{ models: ["p/a b"] }, "models[0]"],
      [{ models: many(1001, () => "p/m") }, "models"],
      [{ models: [`p/${"m".repeat(320)}`] }, "models[0]"],
      [{ system: 5 }, "system"],
      [{ variant: "daemon", image: "i" }, "variant"],
      [{ variant: "service" }, "image"],
      [{ variant: "task" }, "image"],
      [{ image: "" }, "image"],
      [{ image: "two words" }, "image"],
      [{ image: "i\n" }, "image"],
      [{ image: "i", imagePullPolicy: "Sometimes" }, "imagePullPolicy"],
      [{ image: "i", imagePullSecrets: ["Upper"] }, "imagePullSecrets[0]"],
      [{ image: "i", workingDir: "work" }, "workingDir"],
      [{ image: "i", workingDir: "/a/../b" }, "workingDir"],
      [{ image: "i", env: [{ name: "1A", value: "" }] }, "env[0].name"],
      [{ image: "i", env: [{ name: "A" }] }, "env[0].value"],
      [{ image: "i", env: [{ name: "A", valueFrom: { secretKeyRef: {} } }] }, "env[0].valueFrom"],
      [{ image: "i", env: [{ name: "A", value: 5 }] }, "env[0].value"],
      [{ image: "i", env: many(2, () => ({ name: "A", value: "" })) }, "env[1]"],
      [{ image: "i", env: [{ name: "SVC_X", value: "" }] }, "env[0].name"],
      [{ image: "i", env: [{ name: "LD_PRELOAD", value: "/x.so" }] }, "env[0].name"],
      [{ image: "i", env: [{ name: "SSL_CERT_FILE", value: "/x" }] }, "env[0].name"],
      [{ replicas: 1 }, "replicas"],
      [{ image: "i", replicas: -1 }, "replicas"],
      [{ image: "i", replicas: 1.5 }, "replicas"],
      [{ image: "i", variant: "task", replicas: 1 }, "replicas"],
      [{ image: "i", job: {} }, "job"],
      [{ image: "i", variant: "task", job: { backoffLimit: -1 } }, "job.backoffLimit"],
      [
        { image: "i", variant: "task", job: { activeDeadlineSeconds: 0 } },
        "job.activeDeadlineSeconds",
      ],
      [{ image: "i", resources: { limits: { cpu: "one" } } }, "resources.limits.cpu"],
      [{ image: "i", resources: { limits: { cpu: "-1" } } }, "resources.limits.cpu"],
      [{ image: "i", resources: { limits: { "a b": "1" } } }, "resources.limits", KEYS],
      [
        { image: "i", resources: { limits: { cpu: -1 } } },
        "resources.limits.cpu",
        "a CRD cannot bound the integers of a value that is an integer or a text",
      ],
      [{ image: "i", resources: { claims: [] } }, "resources.claims"],
      [{ image: "i", nodeSelector: { "a b": "c" } }, "nodeSelector", KEYS],
      [{ image: "i", nodeSelector: { a: "b c" } }, "nodeSelector.a"],
      [{ image: "i", tolerations: [{ value: "v" }] }, "tolerations[0].operator"],
      [{ image: "i", tolerations: [{ operator: "Exists", value: "v" }] }, "tolerations[0].value"],
      [
        { image: "i", tolerations: [{ key: "k", tolerationSeconds: 1 }] },
        "tolerations[0].tolerationSeconds",
      ],
      [{ image: "i", podLabels: { "svc.io/agent": "x" } }, "podLabels"],
      [{ image: "i", podLabels: { "app.kubernetes.io/name": "x" } }, "podLabels"],
      [{ image: "i", podLabels: { a: "b c" } }, "podLabels.a"],
      [{ image: "i", podAnnotations: { "k8s.v1.cni.cncf.io/networks": "x" } }, "podAnnotations"],
      [
        {
          image: "i",
          podAnnotations: { "container.apparmor.security.beta.kubernetes.io/agent": "unconfined" },
        },
        "podAnnotations",
      ],
      [
        { image: "i", podAnnotations: Object.fromEntries(many(65, (i) => [`a${i}`, ""])) },
        "podAnnotations",
      ],
      [{ image: "i", terminationGracePeriodSeconds: -1 }, "terminationGracePeriodSeconds"],
      [{ image: "i", readinessProbe: {} }, "readinessProbe"],
      [
        { image: "i", readinessProbe: { tcpSocket: { port: 1 }, httpGet: { port: 1 } } },
        "readinessProbe",
      ],
      [{ image: "i", readinessProbe: { httpGet: { port: 0 } } }, "readinessProbe.httpGet.port"],
      [
        { image: "i", readinessProbe: { httpGet: { port: 1, path: "x" } } },
        "readinessProbe.httpGet.path",
      ],
      [{ image: "i", livenessProbe: { exec: { command: [] } } }, "livenessProbe.exec.command"],
      [
        { image: "i", livenessProbe: { tcpSocket: { port: 1 }, periodSeconds: 0 } },
        "livenessProbe.periodSeconds",
      ],
      ...[
        "/",
        "data",
        "/a/",
        "/a//b",
        "/a/../etc/hosts",
        "/./proc",
        "/a:b",
        "/etc/hosts",
        "/etc/resolv.conf",
        "/proc",
        "/proc/self",
        "/sys/fs",
        "/dev",
        "/dev/shm/x",
        "/svc/ca",
        "/run/svc",
        "/var/run/svc/x",
      ].map(
        (mountPath) => [{ image: "i", volumes: [{ mountPath }] }, "volumes[0].mountPath"] as const,
      ),
      [{ image: "i", volumes: [{}] }, "volumes[0].mountPath"],
      [{ image: "i", volumes: many(2, () => ({ mountPath: "/a" })) }, "volumes[1]"],
      [{ image: "i", volumes: many(2, (i) => ({ mountPath: `/${i}a`, name: "v" })) }, "volumes"],
      [
        { image: "i", volumes: [{ mountPath: "/a", secret: { secretName: "s" } }] },
        "volumes[0].secret",
      ],
      [
        { image: "i", volumes: [{ mountPath: "/a", hostPath: { path: "/" } }] },
        "volumes[0].hostPath",
      ],
      [
        { image: "i", volumes: [{ mountPath: "/a", emptyDir: {}, configMap: { name: "c" } }] },
        "volumes[0]",
      ],
      [
        { image: "i", volumes: [{ mountPath: "/a", emptyDir: { medium: "HugePages" } }] },
        "volumes[0].emptyDir.medium",
      ],
      [{ runAsUser: -1 }, "runAsUser"],
      [{ runAsUser: "root" }, "runAsUser"],
      [{ rateLimits: { maxCostPerDayUSD: -1 } }, "rateLimits.maxCostPerDayUSD"],
      [{ rateLimits: { requestsPerMinute: 0 } }, "rateLimits.requestsPerMinute"],
      [
        { triggers: [{ webhook: { allowCIDRs: ["10.0.0.0"] } }] },
        "triggers[0].webhook.allowCIDRs[0]",
      ],
      [
        { triggers: [{ webhook: { allowCIDRs: ["10.0.0.0/33"] } }] },
        "triggers[0].webhook.allowCIDRs[0]",
      ],
      [{ triggers: [{ cron: "* * * * *" }] }, "triggers[0].cron"],
      [{ guards: [{}] }, "guards[0].binding"],
      [{ guards: [{ binding: "g", enforcement: "off" }] }, "guards[0].enforcement"],
      [{ guards: many(2, () => ({ binding: "g" })) }, "guards[1]"],
      [{ providers: ["Git Hub"] }, "providers[0]"],
      [{ filesystem: { readOnlyPaths: ["etc"] } }, "filesystem.readOnlyPaths[0]"],
      [{ packages: [""] }, "packages[0]"],
    ],
  },
);

const MODEL_PROVIDERS = samplesOf(
  "ModelProvider",
  { provider: "openai", apiKeySecretRef: { name: "s", key: "k" } },
  {
    valid: [
      {},
      { baseURL: "HTTPS://api.example.com:8443/v1/.well-known/..x/" },
      { baseURL: "http://[::1]:8080" },
      { provider: "mock", apiKeySecretRef: undefined },
      { provider: "azure-openai", baseURL: "https://x.openai.azure.com/openai", apiVersion: "v1" },
      {
        provider: "openai-compatible",
        apiKeySecretRef: undefined,
        baseURL: "http://vllm:8000/v1",
        servesResponses: true,
      },
      { allowedModels: ["gpt-5*", "*"], deniedModels: ["gpt-5-pro"] },
      { fallbacks: [{ provider: "b", model: "claude" }] },
      { retries: { attempts: 10, baseIntervalMs: 5000 } },
      { externalAccess: { enabled: true, maxTokensPerDay: 0 } },
      { externalAccess: { enabled: true, guards: [{ binding: "g", scan: {} }] } },
      { allowedFeatures: ["background"], onDisconnect: "readToEnd", translation: "strict" },
    ],
    invalid: [
      [{ provider: "opnai" }, "provider"],
      [{ provider: undefined }, "provider"],
      [{ apiKeySecretRef: undefined }, "apiKeySecretRef"],
      [{ apiKeySecretRef: { name: "s" } }, "apiKeySecretRef.key"],
      [{ apiKeySecretRef: { name: "S", key: "k" } }, "apiKeySecretRef.name"],
      [{ apiKeySecretRef: { name: "s", key: "k/" } }, "apiKeySecretRef.key"],
      [{ apiKeySecretRef: { name: `${"a.".repeat(127)}a`, key: "k" } }, "apiKeySecretRef.name"],
      [{ provider: "azure-openai" }, "baseURL"],
      [{ provider: "mock", baseURL: "http://x" }, "baseURL"],
      [{ apiVersion: "v1" }, "apiVersion"],
      [{ provider: "anthropic", servesResponses: true }, "servesResponses"],
      ...[
        "ftp://x",
        "https://",
        "https://user:secret@host",
        "https://host?x=1",
        "https://host#x",
        "https://host/a//b",
        "https://host/../b",
        "https://host/%2e",
        "https://ho st/",
        "https://host\\x",
      ].map((baseURL) => [{ baseURL }, "baseURL"] as const),
      [
        { baseURL: "https://host:0/" },
        "baseURL",
        "the pattern of a CRD does not read the host and the port",
      ],
      [{ allowedModels: [] }, "allowedModels"],
      [{ deniedModels: ["*a"] }, "deniedModels[0]"],
      [{ fallbacks: [{ provider: "b", model: "x*" }] }, "fallbacks[0].model"],
      [{ fallbacks: many(9, () => ({ provider: "b" })) }, "fallbacks"],
      [{ retries: { attempts: 0 } }, "retries.attempts"],
      [{ retries: { baseIntervalMs: 6000 } }, "retries.maxIntervalMs"],
      [{ timeouts: { firstByteMs: 0 } }, "timeouts.firstByteMs"],
      [{ externalAccess: { guards: [{}] } }, "externalAccess.guards[0].binding"],
      [
        { externalAccess: { guards: many(2, () => ({ binding: "g" })) } },
        "externalAccess.guards[1]",
      ],
      [{ allowedFeatures: ["everything"] }, "allowedFeatures[0]"],
    ],
  },
);

const SHA256 = "0".repeat(64);

const ACCESS_KEYS = samplesOf(
  "AccessKey",
  { modelProvider: "openai", keySHA256: SHA256 },
  {
    valid: [
      {},
      { expiresAt: "2027-01-31T12:00:00Z" },
      { previous: { keySHA256: SHA256, expiresAt: "2027-01-31T12:00:00.5+01:00" } },
      { revoked: true, limits: { maxTokensPerDay: 0, maxRequestsPerDay: 5 } },
      { restrictions: { allowedModels: ["gpt-*"], allowedCIDRs: ["::/0", "10.1.2.3/32"] } },
      { modelProvider: undefined, provider: "mcp" },
      { guards: [{ binding: "g", enforcement: "enforce", scan: { responses: true } }] },
    ],
    invalid: [
      [{ provider: "mcp" }, "modelProvider"],
      [{ modelProvider: undefined }, "modelProvider"],
      [{ keySHA256: undefined }, "keySHA256"],
      [{ keySHA256: "A".repeat(64) }, "keySHA256"],
      [{ keySHA256: "0".repeat(63) }, "keySHA256"],
      [{ expiresAt: "tomorrow" }, "expiresAt"],
      [{ expiresAt: "2027-02-30T12:00:00Z" }, "expiresAt"],
      [{ expiresAt: "2027-01-31T12:00:00" }, "expiresAt"],
      [{ restrictions: { allowedModels: [] } }, "restrictions.allowedModels"],
      [{ restrictions: { allowedCIDRs: ["10.0.0.256/8"] } }, "restrictions.allowedCIDRs[0]"],
      [{ restrictions: { allowedCIDRs: ["2001:db8::/129"] } }, "restrictions.allowedCIDRs[0]"],
      [{ limits: { maxRequestsPerDay: -1 } }, "limits.maxRequestsPerDay"],
      [{ guards: [{ binding: "G" }] }, "guards[0].binding"],
      [{ guards: many(2, () => ({ binding: "g" })) }, "guards[1]"],
      [{ modelProvider: undefined, provider: "mcp", guards: [{ binding: "g" }] }, "guards"],
    ],
  },
);

const PROVIDERS = samplesOf(
  "Provider",
  { type: "github", auth: { type: "token", secretRef: "s" } },
  {
    valid: [
      {},
      { hosts: ["api.github.example.com", "*.ghe.example.com"] },
      { policy: { allow: ["pulls:*"], deny: ["pulls:merge"] } },
      {
        policy: {
          httpRules: [{ methods: ["GET"], paths: ["/repos/*/issues/**"], action: "allow" }],
        },
      },
      { policy: { httpRules: [{ paths: ["*"], action: "deny" }] } },
      { scope: { repositories: ["team/*"] } },
      { audit: { enforcement: "audit", logRequests: true } },
      { config: { region: "eu-central-1" } },
      { externalAccess: { enabled: false } },
    ],
    invalid: [
      [{ type: "gitlab" }, "type"],
      [{ auth: undefined }, "auth"],
      [{ auth: { type: "token" } }, "auth.secretRef"],
      [{ hosts: [] }, "hosts"],
      [{ hosts: ["https://api.example.com"] }, "hosts[0]"],
      [{ hosts: ["API.example.com"] }, "hosts[0]"],
      [{ policy: { allow: ["pulls read"] } }, "policy.allow[0]"],
      [{ policy: { httpRules: [{ paths: ["/x"] }] } }, "policy.httpRules[0].action"],
      [
        { policy: { httpRules: [{ paths: ["x"], action: "deny" }] } },
        "policy.httpRules[0].paths[0]",
      ],
      [
        { policy: { httpRules: [{ methods: ["get"], paths: ["/"], action: "deny" }] } },
        "policy.httpRules[0].methods[0]",
      ],
      [{ policy: { httpRules: [{ paths: [], action: "deny" }] } }, "policy.httpRules[0].paths"],
      [{ scope: { repositories: [""] } }, "scope.repositories[0]"],
      [{ audit: { enforcement: "warn" } }, "audit.enforcement"],
      [{ config: { region: 5 } }, "config.region"],
    ],
  },
);

const GUARD_BINDINGS = samplesOf(
  "GuardBinding",
  { classifier: { type: "stub" } },
  {
    valid: [
      {},
      {
        classifier: {
          type: "custom",
          endpoint: "https://guard.example.com:9000/v1",
          model: "m",
          auth: { secretRef: "s", header: "X-Api-Key", prefix: "" },
        },
      },
      { enforcement: "audit", thresholds: { injection: 0.9 }, timeoutMs: 10_000 },
      { audit: { savePayload: false, maxPayloadChars: 0 } },
      {
        classifier: {
          type: "llamaGuard",
          endpoint: "https://llama.example.com/v1",
          auth: { secretRef: "s", header: "authorization" },
        },
      },
    ],
    invalid: [
      [{ classifier: undefined }, "classifier"],
      [{ classifier: { type: "magic" } }, "classifier.type"],
      [{ classifier: { type: "custom" } }, "classifier.endpoint"],
      [{ classifier: { type: "stub", auth: { secretRef: "s" } } }, "classifier.endpoint"],
      [{ classifier: { type: "stub", endpoint: "guard:9000" } }, "classifier.endpoint"],
      [
        {
          classifier: {
            type: "custom",
            endpoint: "http://g",
            auth: { secretRef: "s", header: "a b" },
          },
        },
        "classifier.auth.header",
      ],
      ...["Host", "content-length", "Transfer-Encoding", "CONNECTION", "te"].map(
        (header) =>
          [
            {
              classifier: {
                type: "custom",
                endpoint: "http://g",
                auth: { secretRef: "s", header },
              },
            },
            "classifier.auth.header",
          ] as const,
      ),
      [{ thresholds: { injection: 1.1 } }, "thresholds.injection"],
      [{ enforcement: "off" }, "enforcement"],
      [{ timeoutMs: 0 }, "timeoutMs"],
      [{ timeoutMs: 10_001 }, "timeoutMs"],
      [{ audit: { maxPayloadChars: -1 } }, "audit.maxPayloadChars"],
    ],
  },
);

const SESSIONS = samplesOf(
  "Session",
  { agent: "a" },
  {
    valid: [{}, { title: "Say hello.", env: [{ name: "A", value: "b" }] }],
    invalid: [
      [{ agent: undefined }, "agent"],
      [{ agent: "A" }, "agent"],
      [{ title: 5 }, "title"],
      [{ env: [{ name: "OPENAI_API_KEY", value: "x" }] }, "env[0].name"],
    ],
  },
);

const objectSample = (title: string, fault: string | undefined, more: object): ResourceSample => ({
  title,
  kind: "Agent",
  object: { ...objectOf("Agent", {}, {}), ...more },
  ...(fault === undefined ? {} : { fault }),
});

const OBJECTS: readonly ResourceSample[] = [
  objectSample("a name of 63 characters", undefined, { metadata: { name: "a".repeat(63) } }),
  objectSample("a name of 64 characters", "metadata.name", { metadata: { name: "a".repeat(64) } }),
  objectSample("a name with a dot", "metadata.name", { metadata: { name: "a.b" } }),
  objectSample("a name in capitals", "metadata.name", { metadata: { name: "A" } }),
  objectSample("an unknown field beside the spec", "outbound", { outbound: {} }),
  objectSample("inbound", undefined, { inbound: { port: 8080 } }),
  objectSample("inbound without a port", "inbound.port", { inbound: {} }),
  objectSample("no spec", "spec", { spec: undefined }),
  objectSample("a status", undefined, { status: { ready: true } }),
];

export const RESOURCE_SAMPLES: readonly ResourceSample[] = [
  ...AGENTS,
  ...MODEL_PROVIDERS,
  ...ACCESS_KEYS,
  ...PROVIDERS,
  ...GUARD_BINDINGS,
  ...SESSIONS,
  ...OBJECTS,
];
