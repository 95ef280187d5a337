/** Volumes of an Agent: `spec.volumes`. */
import * as z from "zod";
import { absolutePathSchema } from "./absolute-path.ts";
import { keyedList } from "./keyed-list.ts";
import { nameSchema, subdomainSchema } from "./metadata.ts";
import { quantitySchema } from "./quantity.ts";
import { countGiven, withRules } from "./rule.ts";

/** Paths on which svc or the container runtime mounts files of its own. */
const SYSTEM_PATHS = ["/etc/hosts", "/etc/resolv.conf"] as const;

/** The same, with everything below them. */
const SYSTEM_FOLDERS = ["/svc", "/run/svc", "/var/run/svc", "/proc", "/sys", "/dev"] as const;

/** The one folder of `/dev` that programs need larger than its default. */
const SHARED_MEMORY = "/dev/shm";

const SOURCES = ["emptyDir", "persistentVolumeClaim", "configMap"] as const;

/** Returns whether a volume may be mounted at a path. */
function isFree(path: string): boolean {
  if (path === SHARED_MEMORY) return true;
  return (
    path !== "/" &&
    !SYSTEM_PATHS.some((taken) => path === taken) &&
    !SYSTEM_FOLDERS.some((taken) => path === taken || path.startsWith(`${taken}/`))
  );
}

const FREE_CEL =
  `self.mountPath == '${SHARED_MEMORY}' || !(` +
  [
    ...["/", ...SYSTEM_PATHS, ...SYSTEM_FOLDERS].map((path) => `self.mountPath == '${path}'`),
    ...SYSTEM_FOLDERS.map((path) => `self.mountPath.startsWith('${path}/')`),
  ].join(" || ") +
  ")";

const volumeSchema = withRules(
  z.strictObject({
    name: nameSchema
      .optional()
      .describe("Name of the volume in the pod. Default: one made from its place in the list."),
    mountPath: absolutePathSchema.describe("Mount path."),
    readOnly: z.boolean().default(false).describe("Whether the agent cannot write to it."),
    emptyDir: z
      .strictObject({
        sizeLimit: quantitySchema.optional().describe("Largest size, for example 1Gi."),
        medium: z
          .enum(["", "Memory"])
          .optional()
          .describe("`Memory` for a file system in memory. Default: the node's disk."),
      })
      .optional()
      .describe("An empty folder that lives as long as the pod. Default if no source is given."),
    persistentVolumeClaim: z
      .strictObject({
        claimName: subdomainSchema.describe("Name of a claim in the same namespace."),
      })
      .optional()
      .describe("A PersistentVolumeClaim."),
    configMap: z
      .strictObject({ name: subdomainSchema.describe("Name, in the same namespace.") })
      .optional()
      .describe("The files of a ConfigMap; read-only."),
    secret: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("Refused: an agent holds no credential."),
  }),
  [
    {
      test: (volume) => SOURCES.filter((source) => volume[source] !== undefined).length <= 1,
      cel: `${countGiven(SOURCES)} <= 1`,
      message: `must have at most one source: ${SOURCES.join(", ")}`,
    },
    {
      test: ({ mountPath }) => isFree(mountPath),
      cel: FREE_CEL,
      field: "mountPath",
      message:
        "must not be '/' or a path of the system or of svc: " +
        `${[...SYSTEM_PATHS, ...SYSTEM_FOLDERS].join(", ")}; choose another`,
    },
    {
      test: ({ secret }) => secret === undefined,
      cel: "!has(self.secret)",
      field: "secret",
      message:
        "must not be given: credentials reach only the sidecar; bind a Provider instead " +
        "(spec.providers)",
    },
  ],
);

export const volumesSchema = withRules(keyedList(volumeSchema, "mountPath", 64), [
  {
    test: (volumes) => {
      const names = volumes.flatMap(({ name }) => name ?? []);
      return new Set(names).size === names.length;
    },
    cel: "self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))",
    message: "must not hold two volumes of one name",
  },
]);
