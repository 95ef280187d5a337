/**
 * The fields of an Agent that describe its pod in a cluster. `svc run` is given the command
 * instead, and does not read them. Field reference of a pod:
 * https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/
 */
import * as z from "zod";
import { absolutePathSchema } from "./absolute-path.ts";
import { volumesSchema } from "./agent-volumes.ts";
import { boundedRecord } from "./bounded-record.ts";
import { envListSchema } from "./env-list.ts";
import { subdomainSchema } from "./metadata.ts";
import { resourcesSchema } from "./quantity.ts";
import { countGiven, type Rule, withRules } from "./rule.ts";

/** How an Agent runs in a cluster. */
export const AGENT_VARIANTS = ["service", "task", "template"] as const;

export type AgentVariant = (typeof AGENT_VARIANTS)[number];

/** Key of a label or annotation, with its optional prefix. */
const METADATA_KEY =
  /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

const LABEL_VALUE = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$/;

/**
 * Prefixes of labels and annotations that svc sets, and of annotations that would weaken the pod's
 * hardening or give it a network that no policy covers.
 */
const RESERVED_PREFIXES = [
  "svc.io/",
  "app.kubernetes.io/",
  "container.apparmor.security.beta.kubernetes.io/",
  "container.seccomp.security.alpha.kubernetes.io/",
  "io.kubernetes.cri-o.",
  "k8s.v1.cni.cncf.io/",
  "v1.multus-cni.io/",
  "cni.projectcalico.org/",
  "k8s.ovn.org/",
  "ovn.kubernetes.io/",
] as const;

const NOT_RESERVED = RESERVED_PREFIXES.map((prefix) => `!key.startsWith('${prefix}')`).join(" && ");

function podMetadata<Value extends z.ZodType<string>>(value: Value) {
  return withRules(
    boundedRecord(value, {
      max: 64,
      key: METADATA_KEY,
      message: "must be a key of a label: name, or prefix/name",
    }),
    [
      {
        test: (map) =>
          !Object.keys(map).some((key) =>
            RESERVED_PREFIXES.some((prefix) => key.startsWith(prefix)),
          ),
        cel: `self.all(key, ${NOT_RESERVED})`,
        message: `must not have keys that begin with ${RESERVED_PREFIXES.join(", ")}`,
      },
    ],
  );
}

const text = (max: number) => z.string().max(max);

const port = z.int().min(1).max(65_535);
const seconds = (min: number) => z.int().min(min).max(2_147_483_647);

const PROBES = ["httpGet", "tcpSocket", "exec"] as const;

const probeSchema = withRules(
  z.strictObject({
    httpGet: z
      .strictObject({
        path: text(1024)
          .regex(/^\/[^\s]*$/, "must be a path that begins with '/'")
          .default("/")
          .describe("Path of the request."),
        port: port.describe("Port of the agent."),
      })
      .optional()
      .describe("A GET request; an answer from 200 to 399 is a success."),
    tcpSocket: z
      .strictObject({ port: port.describe("Port of the agent.") })
      .optional()
      .describe("A TCP connection."),
    exec: z
      .strictObject({
        command: z.array(text(4096)).min(1).max(64).describe("Command; 0 is a success."),
      })
      .optional()
      .describe("A command in the agent's container."),
    initialDelaySeconds: seconds(0).optional().describe("Seconds before the first probe."),
    periodSeconds: seconds(1).optional().describe("Seconds between probes. Default: 10."),
    timeoutSeconds: seconds(1).optional().describe("Seconds a probe may take. Default: 1."),
    failureThreshold: seconds(1).optional().describe("Failures in a row that count. Default: 3."),
  }),
  [
    {
      test: (probe) => PROBES.filter((kind) => probe[kind] !== undefined).length === 1,
      cel: `${countGiven(PROBES)} == 1`,
      message: `must have exactly one of ${PROBES.join(", ")}`,
    },
  ],
);

const tolerationSchema = withRules(
  z.strictObject({
    key: text(317).optional().describe("Key of the taint. Default: every key."),
    operator: z
      .enum(["Exists", "Equal"])
      .optional()
      .describe("`Exists` matches every value. Default: Equal."),
    value: text(63).optional().describe("Value of the taint."),
    effect: z
      .enum(["NoSchedule", "PreferNoSchedule", "NoExecute"])
      .optional()
      .describe("Effect of the taint. Default: every effect."),
    tolerationSeconds: z
      .int()
      .optional()
      .describe("Seconds that a NoExecute taint is tolerated. Default: without end."),
  }),
  [
    {
      test: ({ key, operator }) => (key ?? "") !== "" || operator === "Exists",
      cel: "(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",
      field: "operator",
      message: "must be Exists where no key is given",
    },
    {
      test: ({ operator, value }) => operator !== "Exists" || (value ?? "") === "",
      cel:
        "!has(self.operator) || self.operator != 'Exists' || " +
        "!has(self.value) || self.value == ''",
      field: "value",
      message: "must be empty for the operator Exists",
    },
    {
      test: ({ effect, tolerationSeconds }) =>
        tolerationSeconds === undefined || effect === "NoExecute",
      cel: "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
      field: "tolerationSeconds",
      message: "applies only to the effect NoExecute",
    },
  ],
);

/** Members of an Agent's spec. */
export const podFields = {
  variant: z
    .enum(AGENT_VARIANTS)
    .optional()
    .describe(
      "How it runs in a cluster: `service` (a Deployment), `task` (a Job), or `template` (a " +
        "definition from which sessions are started; no pod of its own). Default: service if " +
        "image is set, otherwise template.",
    ),
  image: text(1024)
    .regex(/^[A-Za-z0-9][A-Za-z0-9._:/@-]*$/, "must be an image such as registry/name:tag")
    .optional()
    .describe("In a cluster: container image of the agent. Required for service and task."),
  imagePullPolicy: z
    .enum(["Always", "IfNotPresent", "Never"])
    .optional()
    .describe("In a cluster: when the image is pulled. Default: that of Kubernetes."),
  imagePullSecrets: z
    .array(subdomainSchema)
    .max(16)
    .optional()
    .describe("In a cluster: names of the Secrets by which the node pulls the image."),
  command: z
    .array(text(32_768))
    .max(256)
    .optional()
    .describe("In a cluster: command of the container. Default: the image's entry point."),
  args: z
    .array(text(32_768))
    .max(256)
    .optional()
    .describe("In a cluster: arguments of the command."),
  workingDir: absolutePathSchema
    .optional()
    .describe("In a cluster: working folder. Default: the image's."),
  env: envListSchema.optional().describe("In a cluster: environment variables; no credentials."),
  replicas: z
    .int()
    .min(0)
    .max(2_147_483_647)
    .optional()
    .describe("In a cluster: number of pods. Only for service. Default: 1."),
  resources: resourcesSchema
    .optional()
    .describe("In a cluster: what the container is given; the sidecar's is added."),
  job: z
    .strictObject({
      backoffLimit: seconds(0).optional().describe("Retries before it has failed. Default: 6."),
      activeDeadlineSeconds: seconds(1).optional().describe("Longest run. Default: none."),
      ttlSecondsAfterFinished: seconds(0)
        .optional()
        .describe("Seconds after its end until the Job is deleted. Default: never."),
    })
    .optional()
    .describe("In a cluster: settings of the Job. Only for task."),
  nodeSelector: boundedRecord(
    z.string().regex(LABEL_VALUE, "must be a value of a label, at most 63 characters"),
    { max: 64, key: METADATA_KEY, message: "must be a key of a label: name, or prefix/name" },
  )
    .optional()
    .describe("In a cluster: labels of the nodes on which it may run."),
  tolerations: z
    .array(tolerationSchema)
    .max(32)
    .optional()
    .describe("In a cluster: taints of nodes that it tolerates, as in Kubernetes."),
  podLabels: podMetadata(
    z.string().regex(LABEL_VALUE, "must be a value of a label, at most 63 characters"),
  )
    .optional()
    .describe("In a cluster: further labels of its pods."),
  podAnnotations: podMetadata(text(32_768))
    .optional()
    .describe("In a cluster: further annotations of its pods."),
  terminationGracePeriodSeconds: seconds(0)
    .optional()
    .describe("In a cluster: seconds between SIGTERM and SIGKILL. Default: 30."),
  readinessProbe: probeSchema.optional().describe("In a cluster: tells when it can serve."),
  livenessProbe: probeSchema
    .optional()
    .describe("In a cluster: tells when its container must be restarted."),
  volumes: volumesSchema.optional().describe("Volumes of the container."),
} as const;

interface PodSpec {
  readonly variant?: AgentVariant | undefined;
  readonly image?: string | undefined;
  readonly replicas?: number | undefined;
  readonly job?: object | undefined;
}

/** Returns the variant of an Agent, which by default follows from its image. */
export function variantOf({ spec }: { readonly spec: PodSpec }): AgentVariant {
  return spec.variant ?? (spec.image === undefined ? "template" : "service");
}

const isVariant = (variant: AgentVariant): string =>
  variant === "service"
    ? "(has(self.variant) ? self.variant == 'service' : has(self.image))"
    : `(has(self.variant) && self.variant == '${variant}')`;

/** Rules between these fields. */
export const POD_RULES: readonly Rule<PodSpec>[] = [
  {
    test: ({ variant, image }) =>
      image !== undefined || variant === undefined || variant === "template",
    cel: "has(self.image) || !has(self.variant) || self.variant == 'template'",
    field: "image",
    message: "is required for the variants service and task",
  },
  {
    test: (spec) => spec.replicas === undefined || variantOf({ spec }) === "service",
    cel: `!has(self.replicas) || ${isVariant("service")}`,
    field: "replicas",
    message: "applies only to the variant service",
  },
  {
    test: (spec) => spec.job === undefined || variantOf({ spec }) === "task",
    cel: `!has(self.job) || ${isVariant("task")}`,
    field: "job",
    message: "applies only to the variant task; set variant: task",
  },
];
