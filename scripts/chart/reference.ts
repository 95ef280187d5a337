/** `docs/helm.md`: the table of all values. */
import type { DescribedValue } from "./comments.ts";

const HEAD = `# Values of the Helm chart

Generated from the comments of \`charts/svc/values.yaml\` by \`make chart\`; a test holds both equal. See
[Kubernetes](kubernetes.md) for the installation and [Living with a mesh](mesh.md) for service meshes.

Unknown values and values of a wrong type fail the installation (\`values.schema.json\`), and so do combinations that
cannot work; the message says what to change. What works but may surprise is a warning after the installation.
`;

/** Returns the page: a section for each top-level map, and one for the single values. */
export function referencePage(values: readonly DescribedValue[]): string {
  const general = values.filter(({ path, isSection }) => path.length === 1 && !isSection);
  const sections = values.filter(({ path, isSection }) => path.length === 1 && isSection);
  const parts = sections.map(({ path: [name], description }) => {
    const inside = values.filter(({ path, isSection }) => path[0] === name && !isSection);
    const text = description === "" ? "" : `${description}\n\n`;
    return `## ${name}\n\n${text}${table(inside)}`;
  });
  return [HEAD, `## General\n\n${table(general)}`, ...parts].join("\n");
}

function table(values: readonly DescribedValue[]): string {
  const rows = values.map(
    ({ path, description, value }) =>
      `| \`${path.join(".")}\` | ${defaultOf(value)} | ${escaped(description)} |\n`,
  );
  return `| Value | Default | Meaning |\n| --- | --- | --- |\n${rows.join("")}`;
}

function defaultOf(value: unknown): string {
  return value === "" ? "" : `\`${escaped(JSON.stringify(value))}\``;
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|");
}
