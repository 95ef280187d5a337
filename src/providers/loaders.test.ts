import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { pluginFiles, shippedPlugins } from "../../scripts/plugin-files.ts";
import { SERVICE_TYPES } from "../resources/service-types.ts";
import { loaders } from "./loaders.ts";
import { plugins } from "./registry.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const names = shippedPlugins(ROOT);

describe("the list of plugins", () => {
  test.each([...pluginFiles(names)])(
    "%s is as committed; else run node scripts/generate-plugins.ts",
    (file, content) => {
      expect(readFileSync(path.join(ROOT, file), "utf8")).toBe(content);
    },
  );

  test("is every folder but the example, under the plugin's own name", () => {
    expect(names).toContain("github");
    expect(names).not.toContain("example");
    expect([...SERVICE_TYPES]).toEqual(names);
    expect([...loaders.keys()]).toEqual(names);
    expect([...plugins].map(([type, { providerName }]) => [type, providerName])).toEqual(
      names.map((name) => [name, name]),
    );
  });

  test("stays formatted when it is long", () => {
    const many = Array.from({ length: 20 }, (_, i) => `service-${i}`);
    const text = pluginFiles(many).get("src/resources/service-types.ts") ?? "";
    expect(text).toContain('  "service-19",\n] as const;\n');
  });
});
