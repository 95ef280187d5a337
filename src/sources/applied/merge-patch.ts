/**
 * Applies a JSON merge patch (RFC 7396) to a YAML document, and keeps comments where possible. The
 * plain algorithm determines the result; the document is edited in parallel, and rewritten from the
 * plain result if the two differ (anchors).
 */
import { isDeepStrictEqual } from "node:util";
import { Document, isMap, type YAMLMap } from "yaml";

/** RFC 7396, section 2. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result = new Map<string, unknown>(isObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, mergePatch(result.get(key), value));
  }
  return Object.fromEntries(result);
}

/** Returns the patched document; `document` itself may be changed. */
export function patchDocument(document: Document, patch: unknown): Document {
  const wanted = mergePatch(document.toJS({ maxAliasCount: 100 }), patch);
  try {
    if (isObject(patch) && isMap(document.contents)) {
      edit(document, document.contents, patch);
      if (isDeepStrictEqual(document.toJS({ maxAliasCount: 100 }), wanted)) return document;
    }
  } catch {
    // For example an alias that lost its anchor: rewritten.
  }
  return new Document(wanted);
}

function edit(document: Document, map: YAMLMap, patch: Readonly<Record<string, unknown>>): void {
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      map.delete(key);
      continue;
    }
    const node = map.get(key, true) as unknown;
    if (isObject(value) && isMap(node)) edit(document, node, value);
    // A plain value replaces that of the existing node, which keeps its comment.
    else
      map.set(
        key,
        typeof value === "object" ? document.createNode(mergePatch(undefined, value)) : value,
      );
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
