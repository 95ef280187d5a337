import { describe, expect, test } from "vitest";
import * as z from "zod";
import { crdPlural, crdYaml } from "./crd.ts";
import { generatedFiles } from "./generate.ts";
import { defineKind } from "./kind.ts";
import { KINDS, RESOURCE_KINDS, usageCounterOf, viewContent } from "./kinds.ts";
import { API_VERSION, metadataSchema, type ResourceBase } from "./metadata.ts";
import { statusSchema } from "./object-status.ts";
import { parseDocuments, parseObject } from "./parse.ts";
import { buildResourceSet, EMPTY_RESOURCE_SET, findResource } from "./resource-set.ts";

const kinds = RESOURCE_KINDS.map((kind) => KINDS[kind]);

describe("the table of kinds", () => {
  test("has each kind under its name", () => {
    expect(kinds.map(({ kind }) => kind)).toEqual(RESOURCE_KINDS);
  });

  test("uses each name and each collection once", () => {
    const names = kinds.flatMap(({ names: { singular, plural, short, others = [] } }) =>
      [singular, plural, ...(short === undefined ? [] : [short]), ...others].map((name) =>
        name.replaceAll("-", ""),
      ),
    );
    expect(new Set(names).size).toBe(names.length);
    expect(new Set(kinds.map(({ collection }) => collection)).size).toBe(kinds.length);
    expect(Object.keys(EMPTY_RESOURCE_SET).toSorted()).toEqual(
      kinds.map(({ collection }) => collection).toSorted(),
    );
  });

  test.each(kinds)("$kind: its names are its kind's", ({ kind, names }) => {
    expect(names.singular.replaceAll("-", "")).toBe(kind.toLowerCase());
    expect(names.plural.replaceAll("-", "")).toBe(`${kind.toLowerCase()}s`);
  });

  test.each(kinds)("$kind: is documented, and has a CRD if it is ours", (kind) => {
    const files = generatedFiles();
    expect(files.get("docs/resources.md")).toContain(`\n## ${kind.kind}\n`);
    expect(files.has(`crds/${crdPlural(kind.names)}.yaml`)).toBe(kind.apiVersion === API_VERSION);
  });

  test.each(kinds)("$kind: shows its name first, and whether it is in use", ({ columns }) => {
    expect(columns[0]?.title).toBe("NAME");
    expect(columns.map(({ title }) => title)).toEqual(
      expect.arrayContaining(["READY", "REASON", "MESSAGE"]),
    );
  });
});

test("an object is found by its kind, with what it shows and counts", () => {
  const { resources } = parseDocuments(
    `
apiVersion: svc.io/v1
kind: AccessKey
metadata: {name: k}
spec: {modelProvider: m, keySHA256: "${"0".repeat(64)}"}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {a: sk-secret}
`,
    "f.yaml",
  );
  const set = buildResourceSet(resources);
  expect([set.accessKeys.size, set.secrets.size, set.agents.size]).toEqual([1, 1, 0]);
  const key = set.accessKeys.get("default/k");
  expect(findResource(set, { kind: "AccessKey", namespace: "default", name: "k" })).toBe(key);
  expect(findResource(set, { kind: "Agent", namespace: "default", name: "k" })).toBeUndefined();
  expect(usageCounterOf("AccessKey", key)).toEqual({ kind: "access-key", modelProvider: "m" });
  expect(usageCounterOf("AccessKey", undefined)).toBeUndefined();
  expect(usageCounterOf("Agent", undefined)).toEqual({ kind: "agent" });
  const secret = set.secrets.get("default/s");
  if (secret === undefined) throw new Error("no Secret");
  expect(viewContent("Secret", secret)).toEqual({ keys: ["a"] });
});

describe("a kind of clusters", () => {
  const objects = { Session: { agent: "a" } };
  test.each(Object.entries(objects))("%s is read by the controller alone", (kind, spec) => {
    const object = { apiVersion: API_VERSION, kind, metadata: { name: "x" }, spec };
    expect(parseObject(object, "controller")).toMatchObject({ kind: "ok" });
    for (const reader of ["machine", "gateway"] as const) {
      expect(parseObject(object, reader)).toMatchObject({
        kind: "refused",
        findings: [{ reason: "NotSupportedYet", message: `${kind} is not supported yet` }],
      });
    }
  });
});

describe("a new kind", () => {
  const specSchema = z.strictObject({ size: z.int().describe("Its size.") });
  interface Example extends ResourceBase {
    readonly kind: "Example";
    readonly spec: z.output<typeof specSchema>;
  }
  const example = defineKind({
    kind: "Example",
    apiVersion: API_VERSION,
    collection: "examples",
    names: { singular: "example", plural: "examples", short: "ex" },
    reference: "An example.",
    schema: z.strictObject({
      apiVersion: z.literal(API_VERSION),
      kind: z.literal("Example"),
      metadata: metadataSchema,
      spec: specSchema,
      status: statusSchema({}).optional(),
    }),
    build: ({ spec }, base): Example => ({ kind: "Example", ...base, spec }),
    view: ({ spec }) => ({ spec }),
    columns: [],
  });
  const base: ResourceBase = {
    namespace: "n",
    name: "e",
    version: "1",
    whenEnv: undefined,
    labels: {},
    annotations: {},
  };

  test("is parsed by its schema", () => {
    const object = {
      apiVersion: API_VERSION,
      kind: "Example",
      metadata: { name: "e", namespace: "n" },
      spec: { size: 3 },
    };
    const parsed = example.parse(object, (metadata) => ({ ...base, name: metadata.name }));
    expect(parsed).toEqual({
      kind: "ok",
      resource: { ...base, kind: "Example", spec: { size: 3 } },
    });
    expect(example.parse({ ...object, spec: {} }, () => base)).toMatchObject({
      kind: "invalid",
      issues: [{ path: ["spec", "size"] }],
    });
  });

  test("has a CRD with the names of the command line", () => {
    const yaml = crdYaml(example, []);
    expect(yaml).toContain("name: examples.svc.io");
    expect(yaml).toContain("shortNames:\n      - ex\n");
    expect(yaml).toContain("x-kubernetes-list-map-keys");
  });
});
