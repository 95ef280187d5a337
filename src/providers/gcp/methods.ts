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
/** By host. The texts of their methods are unpacked when they are read. */
const apis = new Map<string, { readonly methods: string }[]>();
for (const api of table.apis) {
  for (const host of new Set([api.host, api.legacy].filter(Boolean)))
    apis.set(host, [...(apis.get(host) ?? []), api]);
}

/** Whether an API of the table is at `host`. */
export function isKnownHost(host: string): boolean {
  return apis.has(host);
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
  const lines = (apis.get(host) ?? []).flatMap(({ methods }) => methods.split("\n"));
  for (const line of lines) {
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
