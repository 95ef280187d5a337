/** Metrics of several gateways as one text. */

/** Lines of one family, in Prometheus' text format. */
interface Family {
  readonly head: string[];
  readonly samples: string[];
}

/** Suffixes of the samples of a histogram or a summary, which belong to its family. */
const SUFFIX = /_(?:bucket|sum|count)$/;

/**
 * Adds the label `pod` to each sample, and keeps the lines of a family together, as the format
 * demands. https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 * @param texts by the pod's name
 */
export function mergeMetrics(texts: ReadonlyMap<string, string>): string {
  const families = new Map<string, Family>();
  const familyOf = (name: string): Family => {
    let family = families.get(name);
    if (family === undefined) families.set(name, (family = { head: [], samples: [] }));
    return family;
  };
  for (const [pod, text] of texts) {
    for (const line of text.split("\n")) {
      const comment = /^# (?:HELP|TYPE) (\S+)/.exec(line);
      if (comment !== null) {
        const { head } = familyOf(comment[1] as string);
        if (!head.includes(line)) head.push(line);
        continue;
      }
      const sample = parseSample(line);
      if (sample === undefined) continue;
      const { name, labels, value } = sample;
      const base = name.replace(SUFFIX, "");
      const all = `pod="${pod}"${labels === "" ? "" : `,${labels}`}`;
      familyOf(families.has(base) ? base : name).samples.push(`${name}{${all}} ${value}`);
    }
  }
  return [...families.values()]
    .flatMap(({ head, samples }) => [...head, ...samples])
    .map((line) => `${line}\n`)
    .join("");
}

/** Parses `name{labels} value` or `name value`; a value holds no brace. */
function parseSample(
  line: string,
): { readonly name: string; readonly labels: string; readonly value: string } | undefined {
  const name = /^[a-zA-Z_:][a-zA-Z0-9_:]*/.exec(line)?.[0];
  if (name === undefined) return undefined;
  const rest = line.slice(name.length);
  const end = rest.lastIndexOf("}");
  const labels = rest.startsWith("{") && end > 0 ? rest.slice(1, end) : "";
  const value = rest.slice(rest.startsWith("{") ? end + 1 : 0);
  return value.startsWith(" ") ? { name, labels, value: value.slice(1) } : undefined;
}
