/** The comments of the chart's `values.yaml`: the one place where values are described. */
import { isMap, isScalar, parseDocument, type YAMLMap } from "yaml";

export interface DescribedValue {
  /** Names from the root, for example `["gateway", "replicas"]`. */
  readonly path: readonly string[];
  readonly description: string;
  readonly value: unknown;
  /** Whether its members are described themselves. */
  readonly isSection: boolean;
}

/**
 * Returns every value that has a comment, in the order of the file. Members of a map without
 * comments belong to the map, for example the defaults of a security context.
 *
 * @throws Error naming the values that lack a comment
 */
export function describedValues(yaml: string): readonly DescribedValue[] {
  const document = parseDocument(yaml);
  if (!isMap(document.contents)) throw new Error("values.yaml is not a map");
  const values: DescribedValue[] = [];
  visit(document.contents, [], values);
  const missing = values.filter(({ description, isSection }) => description === "" && !isSection);
  if (missing.length > 0)
    throw new Error(
      `values.yaml: ${missing.map(({ path }) => path.join(".")).join(", ")} must have a comment`,
    );
  return values;
}

function visit(map: YAMLMap, above: readonly string[], values: DescribedValue[]): void {
  for (const [index, { key, value }] of map.items.entries()) {
    if (!isScalar(key)) continue;
    const path = [...above, String(key.value)];
    // The parser gives the comment before the first member to the map itself.
    const comment = key.commentBefore ?? (index === 0 ? map.commentBefore : undefined);
    const isSection = isMap(value) && hasComments(value);
    values.push({
      path,
      description: lastParagraph(comment ?? ""),
      value: map.toJSON()[path.at(-1) ?? ""] as unknown,
      isSection,
    });
    if (isSection) visit(value, path, values);
  }
}

function hasComments(map: YAMLMap): boolean {
  return (
    map.commentBefore !== undefined ||
    map.items.some(({ key }) => isScalar(key) && key.commentBefore !== undefined)
  );
}

/** The text after the last empty line: what precedes it is about the file. */
function lastParagraph(comment: string): string {
  const paragraph = comment.split(/\n\s*\n/).at(-1) ?? "";
  return paragraph
    .split("\n")
    .map((line) => line.trim())
    .join(" ")
    .trim();
}
