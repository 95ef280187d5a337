/** Values that the chart refuses, and a part of the message. */

interface Refusal {
  readonly values: string;
  readonly message: string;
}

const gateway = (values: string): string => `{gateway: {${values}}}`;
const guard = (values: string): string => `{guard: {enabled: true, ${values}}}`;
const external = (values: string): string => gateway(`externalProviderGateway: {${values}}`);

/** Refused by `values.schema.json`. */
const BY_SCHEMA: readonly Refusal[] = [
  { values: "{gatway: {}}", message: "additional properties 'gatway' not allowed" },
  { values: gateway("replica: 2"), message: "at '/gateway': additional properties 'replica'" },
  { values: gateway("replicas: two"), message: "at '/gateway/replicas': got string, want integer" },
  { values: gateway("replicas: -1"), message: "at '/gateway/replicas': minimum: got -1, want 0" },
  { values: gateway("logLevel: trace"), message: "'debug', 'info', 'warn', 'error'" },
  { values: gateway("drainSeconds: -1"), message: "at '/gateway/drainSeconds'" },
  { values: gateway("audit: {onFailure: ignore}"), message: "'refuse', 'continue'" },
  { values: gateway("audit: {space: {low: 10%}}"), message: "at '/gateway/audit/space/low'" },
  { values: gateway("audit: {persistence: {size: 10 GB}}"), message: "persistence/size'" },
  { values: gateway("resources: {limit: {}}"), message: "additional properties 'limit'" },
  { values: gateway("resources: {limits: {memory: 2GiB}}"), message: "/limits/memory'" },
  { values: gateway("maxSurge: 0"), message: "at '/gateway/maxSurge'" },
  { values: gateway("extraEnv: [{value: a}]"), message: "missing property 'name'" },
  { values: external("trustedProxies: [10.0.0.1]"), message: "/trustedProxies/0'" },
  { values: external("trustedProxies: 10.0.0.0/8"), message: "got string, want array" },
  {
    values: gateway("mcp: {allowedOrigins: ['https://a.example/']}"),
    message: "allowedOrigins/0'",
  },
  { values: gateway("mcp: {allowedOrigins: ['*']}"), message: "allowedOrigins/0'" },
  { values: gateway("mcp: {allowedHosts: ['a.example:80']}"), message: "allowedHosts/0'" },
  { values: external("service: {type: ExternalName}"), message: "service/type'" },
  { values: external("service: {port: 70000}"), message: "maximum: got 70,000, want 65,535" },
  { values: external("ingress: {hosts: [{host: a}]}"), message: "got object, want string" },
  { values: "{watchNamespaces: [Team]}", message: "at '/watchNamespaces/0'" },
  { values: "{watchNamespaces: [a, a]}", message: "items at 0 and 1 are equal" },
  { values: "{baseUrl: svc.example.com}", message: "at '/baseUrl'" },
  { values: "{images: {proxy: {digest: abc}}}", message: "at '/images/proxy/digest'" },
  { values: "{images: {pullPolicy: always}}", message: "'Always', 'IfNotPresent', 'Never'" },
  { values: "{agents: {interception: none}}", message: "'init', 'sysctl'" },
  { values: "{agents: {sidecar: {uid: 0}}}", message: "at '/agents/sidecar/uid'" },
  { values: "{agents: {dns: {servers: [dns.example]}}}", message: "at '/agents/dns/servers/0'" },
  { values: "{redis: {externalUrl: 'redis.example.com:6379'}}", message: "/redis/externalUrl'" },
  { values: "{redis: {maxMemory: 192MiB}}", message: "at '/redis/maxMemory'" },
  { values: "{guard: {type: magic}}", message: "'promptGuard', 'stub', 'llamaGuard', 'custom'" },
  { values: "{guard: {stub: {patterns: ['a,b']}}}", message: "at '/guard/stub/patterns/0'" },
  { values: "{guard: {stub: {patterns: ['']}}}", message: "at '/guard/stub/patterns/0'" },
  { values: "{guard: {stub: {patterns: a}}}", message: "got string, want array" },
  { values: "{guard: {promptGuard: {path: models}}}", message: "at '/guard/promptGuard/path'" },
  { values: "{guard: {custom: {endpoint: 'guard:1'}}}", message: "at '/guard/custom/endpoint'" },
  {
    values: "{guard: {llamaGuard: {endpoint: 'http://u:p@a'}}}",
    message: "at '/guard/llamaGuard/endpoint'",
  },
  { values: "{guard: {custom: {authHeader: 'a b'}}}", message: "at '/guard/custom/authHeader'" },
  { values: "{crds: {install: 'yes'}}", message: "at '/crds/install': got string, want boolean" },
];

/** Refused by the checks in the chart's `_checks.tpl`. */
const BY_CHECKS: readonly Refusal[] = [
  { values: guard(""), message: "guard.type is promptGuard, but there is no model" },
  {
    values: guard("promptGuard: {existingClaim: models, path: /opt/model}"),
    message: "guard.promptGuard.path is /opt/model, but the claim models is mounted at /models",
  },
  { values: guard("type: llamaGuard, model: m"), message: "guard.llamaGuard.endpoint is empty" },
  {
    values: guard("type: llamaGuard, llamaGuard: {endpoint: 'http://a'}"),
    message: "guard.type is llamaGuard, but guard.model is empty",
  },
  { values: guard("type: custom"), message: "guard.custom.endpoint is empty" },
  {
    values: guard("type: custom, llamaGuard: {endpoint: 'http://a'}"),
    message: "guard.custom.endpoint is empty",
  },
  {
    values: guard("type: stub, extraEnv: [{name: SVC_GUARD_STUB_INJECTION, value: a}]"),
    message: "Remove it and use guard.stub.patterns",
  },
  {
    values: guard("type: stub, extraEnv: [{name: SVC_GUARD_TOKEN, value: a}]"),
    message: "Remove it and use guard.llamaGuard.existingSecret or guard.custom.existingSecret",
  },
  {
    values: guard("type: stub, extraEnv: [{name: NODE_OPTIONS, value: --inspect}]"),
    message: "guard.extraEnv sets NODE_OPTIONS",
  },
  {
    values: guard("type: stub, autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 2}"),
    message: "guard.autoscaling.minReplicas (5) is greater than maxReplicas (2)",
  },
  {
    values: guard("type: stub, podDisruptionBudget: {maxUnavailable: 0}"),
    message: "guard.podDisruptionBudget allows no disruption",
  },
  {
    values: guard("type: stub, podLabels: {app.kubernetes.io/component: gateway}"),
    message: "guard.podLabels sets app.kubernetes.io/component",
  },
  {
    values: external("enabled: false, ingress: {enabled: true, hosts: [a.example]}"),
    message: "ingress.enabled is true, but there is no external listener",
  },
  { values: external("ingress: {enabled: true}"), message: "Name at least one host" },
  {
    values: external("httpRoute: {enabled: true}"),
    message: "httpRoute.parentRefs is empty",
  },
  {
    values: external("service: {loadBalancerSourceRanges: [192.0.2.0/24]}"),
    message: "loadBalancerSourceRanges restricts nothing with the type ClusterIP",
  },
  { values: external("service: {nodePort: 30000}"), message: "nodePort is set with the type" },
  { values: external("service: {loadBalancerClass: a}"), message: "loadBalancerClass is set with" },
  { values: external("trustedProxies: [0.0.0.0/0]"), message: "Name only the addresses of your" },
  { values: external("trustedProxies: ['::/0']"), message: "Name only the addresses of your" },
  {
    values: gateway("autoscaling: {enabled: true, minReplicas: 5, maxReplicas: 2}"),
    message: "minReplicas (5) is greater than maxReplicas (2)",
  },
  {
    values: gateway("autoscaling: {enabled: true}, resources: {requests: {cpu: null}}"),
    message: "Set gateway.resources.requests.cpu",
  },
  {
    values: gateway("autoscaling: {enabled: true, targetCPUUtilizationPercentage: 0}"),
    message: "gateway.autoscaling has no target",
  },
  {
    values: gateway("podDisruptionBudget: {minAvailable: 1}"),
    message: "gateway.podDisruptionBudget has both",
  },
  {
    values: "{controller: {podDisruptionBudget: {maxUnavailable: 0}}}",
    message: "controller.podDisruptionBudget allows no disruption",
  },
  {
    values: gateway("podDisruptionBudget: {maxUnavailable: ''}"),
    message: "gateway.podDisruptionBudget has neither",
  },
  {
    values: gateway("resources: {limits: {memory: 1Gi}}"),
    message:
      "gateway.resources.limits.memory (1Gi) is less than gateway.envoy.heapBytes and 512 MiB",
  },
  {
    values: gateway("audit: {persistence: {enabled: true, accessModes: [ReadWriteOnce]}}"),
    message: "accessModes has no ReadWriteMany, but several gateway pods share the volume",
  },
  {
    values: "{redis: {enabled: false, externalUrl: 'redis://redis:6379'}}",
    message: "redis.externalUrl is set, but redis.enabled is false",
  },
  {
    values: "{redis: {externalUrl: 'redis://:secret@redis:6379'}}",
    message: "Store them in a Secret and name it in redis.existingSecret",
  },
  {
    values: "{redis: {existingSecretKeys: {url: url}}}",
    message: "redis.existingSecretKeys.url is set, but redis.existingSecret is empty",
  },
  {
    values: "{redis: {externalUrl: 'redis://a', existingSecret: s, existingSecretKeys: {url: u}}}",
    message: "are both set. Remove one of them",
  },
  {
    values: "{redis: {existingSecret: s, existingSecretKeys: {username: u}}}",
    message: "the built-in Redis has only the default user",
  },
  {
    values: "{redis: {existingSecretKeys: {password: ''}}}",
    message: "the built-in Redis always has a password",
  },
  { values: "{redis: {tls: {enabled: true}}}", message: "ca.crt, tls.crt and tls.key" },
  {
    values: gateway("extraEnv: [{name: NODE_OPTIONS, value: --inspect}]"),
    message: "gateway.extraEnv sets NODE_OPTIONS",
  },
  {
    values: gateway("extraEnv: [{name: SVC_REDIS_URL, value: a}]"),
    message: "use the values under redis",
  },
  {
    values: "{controller: {podLabels: {app.kubernetes.io/name: other}}}",
    message: "controller.podLabels sets app.kubernetes.io/name",
  },
  {
    values: "{commonLabels: {app.kubernetes.io/instance: other}}",
    message: "commonLabels sets app.kubernetes.io/instance",
  },
  {
    values: gateway("serviceAccount: {create: false}"),
    message: "Name the ServiceAccount that exists",
  },
  {
    values: "{controller: {leaderElection: {leaseSeconds: 10}}}",
    message: "renewSeconds (10) must be less than leaseSeconds (10)",
  },
  { values: "{agents: {sidecar: {uid: 65532}}}", message: "agents.sidecar.uid is 65532" },
  {
    values: "{agents: {networkPolicy: {dnsPodLabels: {k8s-app: null}}}}",
    message: "agents could reach port 53 of every pod in kube-system",
  },
];

export const REFUSED_VALUES: readonly Refusal[] = [...BY_SCHEMA, ...BY_CHECKS];
