/**
 * Common parts of every resource: group and version, and metadata. Field reference of Kubernetes
 * ObjectMeta: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta/
 */
import * as z from "zod";

/** The only version of our own kinds. */
export const API_VERSION = "svc.io/v1";

export const DEFAULT_NAMESPACE = "default";

/**
 * An object with this annotation is skipped while the named environment variable is unset or empty.
 */
export const WHEN_ENV_ANNOTATION = "svc.io/when-env";

/** A DNS-1123 label, which Kubernetes requires for names that become parts of host names. */
export const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * A DNS-1123 subdomain: labels joined by dots. Its length, 253 characters at most, is checked
 * besides, since the API server's patterns have no look-ahead.
 */
const DNS_SUBDOMAIN =
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const MAX_SUBDOMAIN = 253;

/** Name of an environment variable (POSIX). */
export const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** What a name of one of our kinds must be. */
export const NAME_MESSAGE =
  "must be a DNS-1123 label: lower-case letters, digits and '-', at most 63 characters";

/** A name of one of our kinds, or of a namespace. */
export const nameSchema = z
  .string()
  .regex(DNS_LABEL, NAME_MESSAGE)
  // The pattern implies it; the API server needs it to bound the cost of rules.
  .meta({ maxLength: 63 });

/** A key of a Secret or a ConfigMap. */
export const dataKeySchema = z
  .string()
  .regex(/^[-._a-zA-Z0-9]{1,253}$/, "must be letters, digits, '-', '_' or '.'");

/** A name of a Secret, which may contain dots in Kubernetes. */
export const subdomainSchema = z
  .string()
  .max(MAX_SUBDOMAIN)
  .regex(
    DNS_SUBDOMAIN,
    "must be a DNS-1123 subdomain: lower-case letters, digits, '-' and '.', at most 253 characters",
  );

/**
 * Fields written by the API server: accepted, so that the output of `kubectl get -o yaml` can be
 * read back, and ignored.
 */
const SERVER_FIELDS = {
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.number().optional(),
  creationTimestamp: z.string().nullable().optional(),
  deletionTimestamp: z.string().optional(),
  deletionGracePeriodSeconds: z.number().optional(),
  generateName: z.string().optional(),
  selfLink: z.string().optional(),
  finalizers: z.array(z.string()).optional(),
  ownerReferences: z.array(z.record(z.string(), z.unknown())).optional(),
  managedFields: z.array(z.record(z.string(), z.unknown())).optional(),
};

function metadataOf(name: typeof nameSchema) {
  return z
    .strictObject({
      name: name.describe("Name, unique for its kind in its namespace."),
      namespace: nameSchema
        .default(DEFAULT_NAMESPACE)
        .describe("Namespace; references never leave it."),
      labels: z.record(z.string(), z.string()).optional().describe("Labels, as in Kubernetes."),
      annotations: z
        .record(z.string(), z.string())
        .optional()
        .describe(
          `Annotations. \`${WHEN_ENV_ANNOTATION}: NAME\` skips the object while the ` +
            "environment variable NAME is unset or empty.",
        ),
      ...SERVER_FIELDS,
    })
    .superRefine((metadata, context) => {
      const variable = metadata.annotations?.[WHEN_ENV_ANNOTATION];
      if (variable !== undefined && !ENV_NAME.test(variable)) {
        context.addIssue({
          code: "custom",
          path: ["annotations", WHEN_ENV_ANNOTATION],
          message: "must name one environment variable",
        });
      }
    });
}

/** Metadata of our own kinds. */
export const metadataSchema = metadataOf(nameSchema);

/** Metadata of a Secret or a ConfigMap. */
export const secretMetadataSchema = metadataOf(subdomainSchema);

export type Metadata = z.output<typeof metadataSchema>;

/** Common fields of every parsed resource. */
export interface ResourceBase {
  readonly namespace: string;
  readonly name: string;
  /** Hash of the object's source: equal versions mean equal content. Never shown for a Secret. */
  readonly version: string;
  /** Environment variable of {@link WHEN_ENV_ANNOTATION}. */
  readonly whenEnv: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Returns `<namespace>/<name>`, the key of resources of one kind. */
export function keyOf(resource: { readonly namespace: string; readonly name: string }): string {
  return `${resource.namespace}/${resource.name}`;
}

/**
 * The process that reads resources, which decides what is supported: `machine` is `svc up`,
 * `gateway` and `controller` are those of a cluster.
 */
export const RESOURCE_READERS = ["machine", "gateway", "controller"] as const;

export type ResourceReader = (typeof RESOURCE_READERS)[number];

/**
 * A field that is parsed and documented, but refused if it is set to a value with an effect, until
 * it is implemented.
 */
export interface UnsupportedField {
  /** Path from the object's root, e.g. `["spec", "guards"]`. */
  readonly path: readonly string[];
  /** Readers that refuse it. @defaultValue all */
  readonly readers?: readonly ResourceReader[];
  /**
   * Returns whether a value would have an effect. @defaultValue any value but undefined, null, `[]`
   * and `{}`
   */
  readonly matters?: (value: unknown) => boolean;
}
