/**
 * Applies manifests to a cluster: validated here, for places and fixes in messages, and by a dry
 * run of the API server, before anything is written.
 */
import { parse } from "yaml";
import { ApiError, isConflict } from "../../kubernetes/connection.ts";
import { collectionPath, type KubeObject, objectPath } from "../../kubernetes/objects.ts";
import type { SecretResource } from "../../resources/secret.ts";
import { formatProblem } from "../../resources/problem.ts";
import { type ManifestObject, readManifests } from "../../sources/applied/manifest.ts";
import { inParallel } from "../../sources/folder/scan.ts";
import type { ApplyResult, ManifestText } from "../backend.ts";
import { CliError } from "../errors.ts";
import { judged } from "./judged.ts";
import { type ClusterSession, FIELD_MANAGER } from "./session.ts";
import { addressOf, viewOf } from "./views.ts";

/** An object to write, and the one that exists. */
interface Planned {
  readonly object: ManifestObject;
  readonly body: KubeObject;
  readonly before: KubeObject | undefined;
}

/**
 * Resolves when the objects are judged, or after a few seconds.
 * @throws ApiError, CliError
 */
export async function applyManifests(
  session: ClusterSession,
  manifests: readonly ManifestText[],
  create: boolean,
): Promise<readonly ApplyResult[]> {
  const planned = await plan(session, manifests);
  const existing = planned.filter(({ before }) => create && before !== undefined);
  if (existing.length > 0)
    throw new CliError(existing.map(({ object }) => `${label(object)} exists already`).join("\n"));
  const tried = await inParallel(planned, async (one) =>
    write(session, one, { create, dryRun: true }).then(
      () => [],
      (error: unknown) => [refusal(one, error)],
    ),
  );
  const problems = tried.flat();
  if (problems.length > 0) throw new CliError(problems.join("\n"));
  const written: KubeObject[] = [];
  for (const one of planned) {
    try {
      written.push(await write(session, one, { create, dryRun: false }));
    } catch (error) {
      throw new CliError(
        `${refusal(one, error)}\n${written.length} of ${planned.length} objects were written. ` +
          "Apply again when this is corrected.",
      );
    }
  }
  const after = await inParallel(written, async (object) => judged(session, object));
  return planned.map(({ object: { resource }, before }, index) => ({
    kind: resource.kind,
    namespace: resource.namespace,
    name: resource.name,
    change: changeOf(before, written[index] as KubeObject),
    object: viewOf(resource.kind, after[index] as KubeObject),
  }));
}

async function plan(
  { client }: ClusterSession,
  manifests: readonly ManifestText[],
): Promise<readonly Planned[]> {
  const read = readManifests(manifests, "controller");
  if (read.kind === "refused") throw new CliError(read.problems.map(formatProblem).join("\n"));
  if (read.objects.length === 0)
    throw new CliError("nothing to apply: the input contains no object");
  const variables = read.objects.flatMap(({ resource }) =>
    resource.kind === "Secret" ? variablesIn(resource) : [],
  );
  if (variables.length > 0) throw new CliError(variables.join("\n"));
  return inParallel(read.objects, async (object) => {
    const { kind, namespace, name } = object.resource;
    return {
      object,
      body: bodyOf(object),
      before: await client.get(addressOf(kind), { namespace, name }),
    };
  });
}

/** Only svc up replaces `${NAME}` by the environment: in a cluster it would be the key itself. */
function variablesIn({ namespace, name, values }: SecretResource): readonly string[] {
  return [...values].flatMap(([key, value]) =>
    value.kind === "env"
      ? [
          `Secret ${namespace}/${name}: stringData.${key} names the environment variable ` +
            `${value.variable}, which only svc up replaces. Write the value, or create the ` +
            "provider with svc create model-provider.",
        ]
      : [],
  );
}

function bodyOf({ resource, text }: ManifestObject): KubeObject {
  const { status: _status, metadata, ...rest } = parse(text) as KubeObject;
  const { labels, annotations } = metadata;
  const { namespace, name } = resource;
  return { ...rest, metadata: { namespace, name, labels, annotations } } as KubeObject;
}

interface WriteMode {
  /** Refuse an object that exists. */
  readonly create: boolean;
  readonly dryRun: boolean;
}

/** @throws ApiError */
async function write(
  { connection }: ClusterSession,
  { object, body }: Planned,
  { create, dryRun }: WriteMode,
): Promise<KubeObject> {
  const { kind, namespace, name } = object.resource;
  const address = addressOf(kind);
  const query = {
    fieldManager: FIELD_MANAGER,
    fieldValidation: "Strict",
    dryRun: dryRun ? "All" : undefined,
  };
  const answer = create
    ? await connection.request(collectionPath(address, namespace), { method: "POST", query, body })
    : await connection.request(objectPath(address, { namespace, name }), {
        method: "PATCH",
        query: { ...query, force: "true" },
        body,
        contentType: "application/apply-patch+yaml",
      });
  return answer as KubeObject;
}

function refusal({ object }: Planned, error: unknown): string {
  if (!(error instanceof ApiError)) throw error;
  return isConflict(error) && error.reason === "AlreadyExists"
    ? `${label(object)} exists already`
    : `${label(object)}: ${error.message}`;
}

function label({ resource: { kind, namespace, name } }: ManifestObject): string {
  return `${kind} ${namespace}/${name}`;
}

/** Statuses change on their own: what was written is compared by its generation and its labels. */
export function changeOf(before: KubeObject | undefined, after: KubeObject): ApplyResult["change"] {
  if (before === undefined) return "created";
  const content = ({ metadata }: KubeObject): string =>
    JSON.stringify([
      metadata.generation ?? metadata.resourceVersion,
      metadata.labels ?? {},
      metadata.annotations ?? {},
    ]);
  return content(before) === content(after) ? "unchanged" : "configured";
}
