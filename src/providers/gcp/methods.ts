/** Methods of Google's APIs by HTTP method and path, from methods.json (scripts/gcp-methods.py). */
import table from "./methods.json" with { type: "json" };

interface Part {
  readonly kind: "literal" | "label";
  /** A literal's text, a label's name. */
  readonly text: string;
  /** Custom verb after a label, `publish` of `{}:publish`. */
  readonly verb: string | undefined;
}

interface Template {
  readonly parts: readonly Part[];
  readonly action: string;
}

export interface Match {
  readonly action: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** By host, then by method and number of segments. */
const byHost = new Map<string, Map<string, Template[]>>();
const lines = new Map<string, string[]>();
for (const { host, legacy, methods } of table.apis) {
  for (const each of new Set([host, legacy].filter(Boolean)))
    lines.set(each, [...(lines.get(each) ?? []), methods]);
}

/** Whether an API of the table is at `host`. */
export function isKnownHost(host: string): boolean {
  return lines.has(host);
}

/**
 * Returns the most specific methods that match these segments: one, or several that differ in name.
 * @param verbs whether a colon in the last segment begins a verb; in names of objects it does not
 */
export function matchMethods(
  host: string,
  method: string,
  segments: readonly string[],
  verbs = true,
): readonly Match[] {
  const found = templatesOf(host).get(`${method} ${segments.length}`) ?? [];
  const matches = found.flatMap((template) => {
    const labels = labelsOf(template.parts, segments, verbs);
    return labels === undefined
      ? []
      : [
          {
            template,
            labels,
            rank: template.parts
              .map(({ kind, verb }) => (kind === "literal" ? "0" : verb === undefined ? "2" : "1"))
              .join(""),
          },
        ];
  });
  const best = matches.map(({ rank }) => rank).toSorted()[0];
  const distinct = new Map(
    matches
      .filter(({ rank }) => rank === best)
      .map(({ template, labels }) => [template.action, { action: template.action, labels }]),
  );
  return [...distinct.values()];
}

function templatesOf(host: string): ReadonlyMap<string, Template[]> {
  const known = byHost.get(host);
  if (known !== undefined) return known;
  const templates = new Map<string, Template[]>();
  for (const line of (lines.get(host) ?? []).flatMap((text) => text.split("\n"))) {
    const [method = "", path = "", action = ""] = line.split(" ");
    const parts = path.split("/").map(partOf);
    const key = `${method} ${parts.length}`;
    templates.set(key, [...(templates.get(key) ?? []), { parts, action }]);
  }
  byHost.set(host, templates);
  return templates;
}

function partOf(text: string): Part {
  const label = /^\{(\w*)\}(?::(\w+))?$/.exec(text);
  return label === null
    ? { kind: "literal", text, verb: undefined }
    : { kind: "label", text: label[1] ?? "", verb: label[2] };
}

function labelsOf(
  parts: readonly Part[],
  segments: readonly string[],
  verbs: boolean,
): Record<string, string> | undefined {
  const labels: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    let value = segments[index] as string;
    if (part.kind === "literal") {
      if (value !== part.text) return undefined;
      continue;
    }
    if (part.verb !== undefined) {
      if (!value.endsWith(`:${part.verb}`)) return undefined;
      value = value.slice(0, -part.verb.length - 1);
    }
    // A colon in the last segment begins a verb: an unknown verb is not part of a name.
    if (value === "" || (verbs && index === parts.length - 1 && value.includes(":")))
      return undefined;
    if (part.text !== "") labels[part.text] = value;
    // The label after `projects` names one, whatever its name is.
    if (parts[index - 1]?.kind === "literal" && parts[index - 1]?.text === "projects")
      labels["project"] = value;
  }
  return labels;
}
