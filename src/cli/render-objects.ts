/** Formats objects for `svc get`. */
import { stringify } from "yaml";
import { NAMESPACE } from "../resources/columns.ts";
import { KINDS, type ResourceKind } from "../resources/kinds.ts";
import type { ObjectView } from "./backend.ts";
import { kindName } from "./kinds.ts";
import { table } from "./table.ts";

export const OUTPUTS = ["table", "wide", "json", "yaml", "name"] as const;
export type Output = (typeof OUTPUTS)[number];

export interface RenderOptions {
  readonly output: Output;
  /** One object was requested by name: JSON is that object, not a list. */
  readonly single: boolean;
  /** Show the namespace of each. */
  readonly namespaces: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** @returns text with its final newline */
export function renderObjects(
  kind: ResourceKind,
  objects: readonly ObjectView[],
  options: RenderOptions,
): string {
  switch (options.output) {
    case "name":
      return objects
        .map(({ metadata }) => `${kindName(kind).singular}/${metadata.name}\n`)
        .join("");
    case "json": {
      const value = options.single
        ? objects[0]
        : { apiVersion: "v1", kind: "List", items: objects };
      return `${JSON.stringify(value, null, 2)}\n`;
    }
    case "yaml":
      return renderYaml(objects);
    case "table":
    case "wide": {
      const columns = [...(options.namespaces ? [NAMESPACE] : []), ...KINDS[kind].columns].filter(
        (column) => options.output === "wide" || column.wide !== true,
      );
      const rows = objects.map((object) =>
        columns.map((column) => column.cell(object, options.now)),
      );
      return `${table(
        columns.map((column) => column.title),
        rows,
      )}\n`;
    }
  }
}

/** Formats documents that `svc apply` accepts. */
export function renderYaml(values: readonly object[]): string {
  return values
    .map((value) =>
      stringify(JSON.parse(JSON.stringify(value)), { lineWidth: 0, aliasDuplicateObjects: false }),
    )
    .join("---\n");
}
