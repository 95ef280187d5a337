/** The files of the chart that derive from others: path from the repository's root, and content. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describedValues, type DescribedValue } from "./comments.ts";
import { referencePage } from "./reference.ts";
import { valuesSchema, type JsonSchemaNode } from "./values-schema.ts";

const CHART = "charts/svc";

/** Folder of the copies of the CustomResourceDefinitions: nothing else is in it. */
export const CHART_CRDS = `${CHART}/files/crds`;

/** @param root absolute path of the repository */
export function chartFiles(root: string): ReadonlyMap<string, string> {
  const read = (file: string): string => readFileSync(path.join(root, file), "utf8");
  const values = describedValues(read(`${CHART}/values.yaml`));
  const { version } = JSON.parse(read("package.json")) as { readonly version: string };
  return new Map([
    [`${CHART}/Chart.yaml`, withVersion(read(`${CHART}/Chart.yaml`), version)],
    [`${CHART}/values.schema.json`, `${JSON.stringify(describedSchema(values), null, 2)}\n`],
    ["docs/helm.md", referencePage(values)],
    ...readdirSync(path.join(root, "crds"))
      .toSorted()
      .map((file): [string, string] => [`${CHART_CRDS}/${file}`, read(`crds/${file}`)]),
  ]);
}

function withVersion(chart: string, version: string): string {
  return chart.replace(/^(version|appVersion): .*$/gm, `$1: ${version}`);
}

function describedSchema(values: readonly DescribedValue[]): JsonSchemaNode {
  const schema = valuesSchema();
  for (const { path: names, description } of values) {
    const node = names.reduce<JsonSchemaNode | undefined>(
      (parent, name) => parent?.properties?.[name],
      schema,
    );
    if (node === undefined)
      throw new Error(`values.yaml: the schema in values-schema.ts has no ${names.join(".")}`);
    if (description !== "") node.description = description;
  }
  return schema;
}
