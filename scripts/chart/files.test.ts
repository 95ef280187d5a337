import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { describedValues } from "./comments.ts";
import { CHART_CRDS, chartFiles } from "./files.ts";
import { referencePage } from "./reference.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const files = chartFiles(ROOT);

describe("derived files of the chart", () => {
  test.each([...files])("%s is as committed; else run make chart", (file, content) => {
    expect(readFileSync(path.join(ROOT, file), "utf8")).toBe(content);
  });

  test("the chart has no other custom resource definitions", () => {
    expect(readdirSync(path.join(ROOT, CHART_CRDS)).map((file) => `${CHART_CRDS}/${file}`)).toEqual(
      [...files.keys()].filter((file) => file.startsWith(CHART_CRDS)),
    );
  });
});

describe("comments of values", () => {
  const VALUES = `# About the file.

# The name.
name: a

# A section,
# on two lines.
section:
  # One | of the values.
  first: 1
  # Defaults without comments of their own.
  second:
    third: true
`;

  test("belong to the value below them", () => {
    expect(describedValues(VALUES)).toEqual([
      { path: ["name"], description: "The name.", value: "a", isSection: false },
      {
        path: ["section"],
        description: "A section, on two lines.",
        value: { first: 1, second: { third: true } },
        isSection: true,
      },
      {
        path: ["section", "first"],
        description: "One | of the values.",
        value: 1,
        isSection: false,
      },
      {
        path: ["section", "second"],
        description: "Defaults without comments of their own.",
        value: { third: true },
        isSection: false,
      },
    ]);
  });

  test("are required of every value", () => {
    expect(() => describedValues("# A.\na: 1\nb:\n  c: 1\n  # D.\n  d: 2\n")).toThrow(
      "values.yaml: b.c must have a comment",
    );
  });

  test("become rows of a table", () => {
    const page = referencePage(describedValues(VALUES));
    expect(page).toContain("## General\n\n| Value | Default | Meaning |\n| --- | --- | --- |\n");
    expect(page).toContain('| `name` | `"a"` | The name. |\n');
    expect(page).toContain("## section\n\nA section, on two lines.\n\n");
    expect(page).toContain("| `section.first` | `1` | One \\| of the values. |\n");
    expect(page).toContain('| `section.second` | `{"third":true}` | Defaults');
  });
});
