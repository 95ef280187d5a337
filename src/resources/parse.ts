/**
 * Parses text or plain objects into resources and problems. This is the only entry: every object
 * that passes is completely validated, and later code sees no unknown field.
 */
import { createHash } from "node:crypto";
import { explainIssues, nearest, valueAt } from "./explain.ts";
import { isResourceKind, KINDS, type Resource, RESOURCE_KINDS, resourceId } from "./kinds.ts";
import type { ResourceReader, UnsupportedField } from "./metadata.ts";
import { DEFAULT_NAMESPACE, WHEN_ENV_ANNOTATION } from "./metadata.ts";
import type { Problem, ProblemReason } from "./problem.ts";
import { formatPath } from "./problem.ts";
import type { YamlDocument } from "./yaml.ts";
import { lineAt, offsetOf, readDocuments, syntaxMessage } from "./yaml.ts";

/** One document of a file: either a resource, or the problems that prevent it from being one. */
export interface ParsedDocument {
  /** `<kind>/<namespace>/<name>`; undefined if unknown. */
  readonly id: string | undefined;
  readonly line: number;
  readonly resource: Resource | undefined;
  readonly problems: readonly Problem[];
}

export interface ParseResult {
  readonly resources: readonly Resource[];
  readonly problems: readonly Problem[];
  readonly documents: readonly ParsedDocument[];
}

/** Names of the kinds, in the order of messages. */
const KIND_LIST = RESOURCE_KINDS.toSorted();

/**
 * Parses a file of YAML documents, or of JSON. `file` is only used in problems. Never throws.
 * @param reader process that reads the objects, which decides what is supported
 */
export function parseDocuments(
  text: string,
  file: string,
  reader: ResourceReader = "machine",
): ParseResult {
  const documents: ParsedDocument[] = [];
  for (const yaml of readDocuments(text)) {
    const parsed = parseOne(yaml, text, file, reader);
    if (parsed !== undefined) documents.push(parsed);
  }
  const seen = new Map<string, number>();
  const unique = documents.map((document) => {
    if (document.id === undefined) return document;
    const first = seen.get(document.id);
    if (first === undefined) {
      seen.set(document.id, document.line);
      return document;
    }
    return duplicateOf(document, file, `${file}:${first}`);
  });
  return collect(unique);
}

/** Marks a document as a duplicate; `first` is the place of the first one. */
export function duplicateOf(document: ParsedDocument, file: string, first: string): ParsedDocument {
  const [kind, namespace, name] = (document.id ?? "").split("/");
  const problem: Problem = {
    reason: "DuplicateObject",
    file,
    line: document.line,
    kind,
    namespace,
    name,
    path: "",
    message: `namespace ${namespace} already has one of this kind and name, at ${first}`,
    fix: "rename or remove one of them",
  };
  return {
    id: document.id,
    line: document.line,
    resource: undefined,
    problems: [...document.problems, problem],
  };
}

function collect(documents: readonly ParsedDocument[]): ParseResult {
  return {
    documents,
    resources: documents.flatMap((document) => document.resource ?? []),
    problems: documents.flatMap((document) => document.problems),
  };
}

/** Parses one document; undefined for an empty one. */
function parseOne(
  yaml: YamlDocument,
  text: string,
  file: string,
  reader: ResourceReader,
): ParsedDocument | undefined {
  const { document, line } = yaml;
  const refuse = (
    reason: ProblemReason,
    message: string,
    fix: string,
    at = line,
  ): ParsedDocument => ({
    id: undefined,
    line,
    resource: undefined,
    problems: [
      {
        reason,
        file,
        line: at,
        kind: undefined,
        namespace: undefined,
        name: undefined,
        path: "",
        message,
        fix,
      },
    ],
  });
  const [syntaxError] = document.errors;
  if (syntaxError !== undefined) {
    const at = lineAt(text, syntaxError.pos[0]);
    return refuse(
      "InvalidSyntax",
      syntaxMessage(syntaxError.code),
      "correct the syntax; the whole document was refused",
      at,
    );
  }
  if (document.contents === null) return undefined;
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 100 });
  } catch {
    return refuse(
      "InvalidSyntax",
      "an alias (*) names nothing before it, or expands to too much",
      "quote a value that begins with '*', or write the values out",
    );
  }
  if (value === null) return undefined;
  const parsed = parseObject(value, reader);
  if (parsed.kind === "ok")
    return { id: resourceId(parsed.resource), line, resource: parsed.resource, problems: [] };
  const { identity } = parsed;
  return {
    id: parsed.id,
    line,
    resource: undefined,
    problems: parsed.findings.map(({ reason, path, message, fix }) => ({
      reason,
      file,
      line: lineAt(text, offsetOf(document, path)),
      ...identity,
      path: formatPath(path),
      message,
      fix,
    })),
  };
}

export interface Finding {
  readonly reason: ProblemReason;
  readonly path: readonly PropertyKey[];
  readonly message: string;
  readonly fix: string;
}

export interface ObjectIdentity {
  readonly kind: string | undefined;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

export type ObjectResult =
  | { readonly kind: "ok"; readonly resource: Resource }
  | {
      readonly kind: "refused";
      readonly id: string | undefined;
      readonly identity: ObjectIdentity;
      readonly findings: readonly Finding[];
    };

/**
 * Validates one object from YAML, JSON or the API server.
 * @param reader process that reads it, which decides what is supported
 */
export function parseObject(value: unknown, reader: ResourceReader = "machine"): ObjectResult {
  const identity = identityOf(value);
  const refuse = (findings: readonly Finding[]): ObjectResult => ({
    kind: "refused",
    id: idOf(identity),
    identity,
    findings,
  });
  const invalid = (path: readonly PropertyKey[], message: string, fix: string) =>
    refuse([{ reason: "InvalidSpec", path, message, fix }]);

  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return invalid(
      [],
      "must be an object with apiVersion, kind, metadata and spec",
      "separate several objects with ---",
    );
  }
  const { kind } = identity;
  if (kind === undefined)
    return invalid(["kind"], "is required", `add kind: ${KIND_LIST.join(" or ")}`);
  if (!isResourceKind(kind)) {
    const near = nearest(kind, KIND_LIST);
    return invalid(
      ["kind"],
      `unknown kind ${kind}`,
      near === undefined ? `use one of ${KIND_LIST.join(", ")}` : `did you mean ${near}?`,
    );
  }
  const entry = KINDS[kind];
  if (!entry.readers.includes(reader)) {
    return refuse([
      {
        reason: "NotSupportedYet",
        path: ["kind"],
        message: `${kind} is not supported yet`,
        fix: "remove the object for now",
      },
    ]);
  }
  const version = valueAt(value, ["apiVersion"]);
  if (version !== entry.apiVersion) {
    return invalid(
      ["apiVersion"],
      version === undefined ? "is required" : "unknown version of this kind",
      `use apiVersion: ${entry.apiVersion}`,
    );
  }

  const unsupported = entry.unsupported.filter(
    (field) =>
      (field.readers?.includes(reader) ?? true) && isSet(valueAt(value, field.path), field),
  );
  const parsed = entry.parse(value, (metadata) => ({
    namespace: metadata.namespace,
    name: metadata.name,
    version: versionOf(value),
    whenEnv: metadata.annotations?.[WHEN_ENV_ANNOTATION],
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
  }));
  if (parsed.kind === "ok" && unsupported.length === 0)
    return { kind: "ok", resource: parsed.resource };
  const findings: Finding[] = unsupported.map((field) => ({
    reason: "NotSupportedYet",
    path: field.path,
    message: "not supported yet",
    fix: "remove it for now: it would have no effect",
  }));
  if (parsed.kind === "invalid") {
    for (const { path, message, fix } of explainIssues(parsed.issues, value, entry.schema)) {
      if (!unsupported.some((field) => field.path.every((part, index) => path[index] === part))) {
        findings.push({ reason: "InvalidSpec", path, message, fix });
      }
    }
  }
  return refuse(findings);
}

/**
 * Hash of the object as written; fields that the API server changes with every write, and our
 * status, are excluded.
 */
function versionOf(value: object): string {
  const {
    status: _status,
    metadata,
    ...rest
  } = value as { status?: unknown; metadata: Record<string, unknown> };
  const {
    resourceVersion: _version,
    managedFields: _fields,
    generation: _generation,
    ...kept
  } = metadata;
  return createHash("sha256")
    .update(JSON.stringify([rest, kept]))
    .digest("base64url");
}

function isSet(value: unknown, field: UnsupportedField): boolean {
  if (value === undefined || value === null) return false;
  if (field.matters !== undefined) return field.matters(value);
  return typeof value !== "object" || Object.keys(value).length > 0;
}

function identityOf(value: unknown): ObjectIdentity {
  const text = (path: readonly string[]) => {
    const at = valueAt(value, path);
    return typeof at === "string" && at !== "" ? at : undefined;
  };
  return {
    kind: text(["kind"]),
    namespace: text(["metadata", "namespace"]) ?? DEFAULT_NAMESPACE,
    name: text(["metadata", "name"]),
  };
}

function idOf({ kind, namespace, name }: ObjectIdentity): string | undefined {
  return kind === undefined ||
    name === undefined ||
    namespace === undefined ||
    !isResourceKind(kind)
    ? undefined
    : resourceId({ kind, namespace, name });
}
