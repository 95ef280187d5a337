import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { JsonSchema } from "./crd.ts";
import { generatedFiles } from "./generate.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const files = generatedFiles();

describe("generated files", () => {
  test.each([...files])(
    "%s is as committed; else run node scripts/generate-crds.ts",
    (path, content) => {
      expect(existsSync(root + path)).toBe(true);
      expect(readFileSync(root + path, "utf8")).toBe(content);
    },
  );

  test("crds/ holds nothing else", () => {
    expect(readdirSync(`${root}crds`).map((file) => `crds/${file}`)).toEqual(
      [...files.keys()].filter((path) => path.startsWith("crds/")),
    );
  });

  test.each([...files].filter(([path]) => path.startsWith("crds/")))(
    "%s is structural",
    (_, content) => {
      const { spec } = parse(content) as {
        spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] };
      };
      const schema = spec.versions[0]?.schema.openAPIV3Schema;
      const visit = (node: JsonSchema, path: string) => {
        if (node["x-kubernetes-int-or-string"] === true) expect(node.type, path).toBeUndefined();
        else expect(node.type, path).toMatch(/^(?:object|array|string|integer|number|boolean)$/);
        expect(
          Object.keys(node).filter((keyword) =>
            ["$ref", "const", "anyOf", "oneOf", "not", "$schema", "propertyNames"].includes(
              keyword,
            ),
          ),
          path,
        ).toEqual([]);
        expect(node.additionalProperties === false, path).toBe(false);
        // The API server refuses a default that its schema refuses, and patterns RE2 cannot read.
        if (node["pattern"] !== undefined)
          expect(JSON.stringify(node["pattern"]), path).not.toMatch(/\(\?[=!<]/);
        for (const [field, value] of Object.entries(node.properties ?? {}))
          visit(value, `${path}.${field}`);
        if (node.items !== undefined) visit(node.items, `${path}[]`);
        if (typeof node.additionalProperties === "object")
          visit(node.additionalProperties, `${path}{}`);
      };
      visit(schema ?? {}, "");
    },
  );

  test("every field of a spec says what it is", () => {
    const visit = (node: JsonSchema, path: string): string[] => [
      ...Object.entries(node.properties ?? {}).flatMap(([field, value]) => [
        ...(value.description === undefined ? [`${path}.${field}`] : []),
        ...visit(value, `${path}.${field}`),
      ]),
      ...(node.items === undefined ? [] : visit(node.items, `${path}[]`)),
    ];
    for (const [path, content] of files) {
      if (!path.startsWith("crds/")) continue;
      const { spec } = parse(content) as {
        spec: { versions: { schema: { openAPIV3Schema: JsonSchema } }[] };
      };
      expect(
        visit(spec.versions[0]?.schema.openAPIV3Schema.properties?.["spec"] ?? {}, "spec"),
      ).toEqual([]);
    }
  });
});
