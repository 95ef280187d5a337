/**
 * Merges files' documents into one load. Pure. If a document was refused, the last good version of
 * its object stays in use; if the object of a refused document is unknown, all earlier objects of
 * its file that no other document defines stay in use.
 */
import type { Resource } from "../../resources/kinds.ts";
import type { ParsedDocument } from "../../resources/parse.ts";
import { duplicateOf } from "../../resources/parse.ts";
import type { Problem } from "../../resources/problem.ts";
import { buildResourceSet } from "../../resources/resource-set.ts";
import { type LoadResult, NO_GENERATIONS } from "../load-result.ts";

export interface FileState {
  /** Path relative to the folder, with `/`. */
  readonly file: string;
  readonly documents: readonly ParsedDocument[];
  /** The file could not be read at all. */
  readonly unreadable: Problem | undefined;
}

/** Objects in use, by id, with their files. */
export type Serving = ReadonlyMap<string, { readonly resource: Resource; readonly file: string }>;

export interface Merged {
  readonly serving: Serving;
  /** Place of each object's definition, by id: `file:line`; also for refused ones. */
  readonly places: ReadonlyMap<string, string>;
  readonly load: LoadResult;
}

/** Merges files, given in the order of their names, with the objects previously in use. */
export function mergeFiles(files: readonly FileState[], before: Serving): Merged {
  const serving = new Map<string, { resource: Resource; file: string }>();
  const claimed = new Map<string, string>();
  const problems: Problem[] = [];
  /** Files with a document whose object is unknown. */
  const unclear = new Set<string>();

  for (const { file, documents, unreadable } of files) {
    if (unreadable !== undefined) {
      problems.push(unreadable);
      unclear.add(file);
    }
    for (const document of documents) {
      const { id } = document;
      if (id === undefined) {
        problems.push(...document.problems);
        unclear.add(file);
        continue;
      }
      const first = claimed.get(id);
      const judged =
        first !== undefined && !first.startsWith(`${file}:`)
          ? duplicateOf(document, file, first)
          : document;
      problems.push(...judged.problems);
      if (first !== undefined) continue;
      claimed.set(id, `${file}:${document.line}`);
      const resource = judged.resource ?? before.get(id)?.resource;
      if (resource !== undefined) serving.set(id, { resource, file });
    }
  }
  if (unclear.size > 0) {
    for (const [id, old] of before)
      if (!claimed.has(id) && unclear.has(old.file)) serving.set(id, old);
  }
  const resources = buildResourceSet([...serving.values()].map((entry) => entry.resource));
  return { serving, places: claimed, load: { resources, problems, generations: NO_GENERATIONS } };
}
