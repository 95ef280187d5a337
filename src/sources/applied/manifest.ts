/**
 * Manifests to apply: texts of YAML or JSON, each with several documents. Validated as strictly as
 * files of the folder; one invalid document refuses all of them.
 */
import { Document } from "yaml";
import { resourceId, type Resource } from "../../resources/kinds.ts";
import type { ResourceReader } from "../../resources/metadata.ts";
import { duplicateOf, parseDocuments } from "../../resources/parse.ts";
import type { Problem } from "../../resources/problem.ts";
import { readDocuments } from "../../resources/yaml.ts";

export interface Manifest {
  /** Name of the text in problems: its file. */
  readonly source: string;
  readonly text: string;
}

/** One object of a manifest, and the text of its file. */
export interface ManifestObject {
  readonly id: string;
  readonly resource: Resource;
  readonly text: string;
}

export type ReadManifests =
  | { readonly kind: "ok"; readonly objects: readonly ManifestObject[] }
  | { readonly kind: "refused"; readonly problems: readonly Problem[] };

/**
 * Fields that change with every write, removed from the stored text, so that the output of `svc get
 * -o yaml` can be applied.
 */
const SERVER_METADATA = ["resourceVersion", "managedFields", "generation"] as const;

/** @param reader process that reads the objects, which decides what is supported */
export function readManifests(
  manifests: readonly Manifest[],
  reader: ResourceReader = "machine",
): ReadManifests {
  const objects: ManifestObject[] = [];
  const problems: Problem[] = [];
  const places = new Map<string, string>();
  for (const { source, text } of manifests) {
    const parsed = parseDocuments(text, source, reader);
    const byLine = new Map(parsed.documents.map((document) => [document.line, document]));
    for (const { document, line } of readDocuments(text)) {
      const checked = byLine.get(line);
      // An empty document.
      if (checked === undefined) continue;
      const first = checked.id === undefined ? undefined : places.get(checked.id);
      const judged =
        first === undefined || checked.problems.length > 0
          ? checked
          : duplicateOf(checked, source, first);
      problems.push(...judged.problems);
      if (judged.resource === undefined || judged.problems.length > 0) continue;
      const id = resourceId(judged.resource);
      places.set(id, `${source}:${line}`);
      objects.push({
        id,
        resource: judged.resource,
        text: keptText(document, judged.resource.version, reader),
      });
    }
  }
  return problems.length > 0 ? { kind: "refused", problems } : { kind: "ok", objects };
}

/**
 * Returns a text that parses to exactly the validated object: a plain one if the document's own
 * does not (a `%YAML 1.1`).
 */
function keptText(document: Document, version: string, reader: ResourceReader): string {
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  const text = documentText(document);
  return parseDocuments(text, "", reader).resources[0]?.version === version
    ? text
    : documentText(new Document(value));
}

/**
 * Returns the stored text of a document: with comments, without the fields that the server writes.
 */
export function documentText(document: Document): string {
  document.delete("status");
  for (const field of SERVER_METADATA)
    if (document.hasIn(["metadata", field])) document.deleteIn(["metadata", field]);
  // Directives and end marks belong to the original file.
  return document.toString({ lineWidth: 0, directives: false });
}
