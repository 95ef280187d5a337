import { describe, expect, test } from "vitest";
import { parseDocuments } from "../../resources/parse.ts";
import { formatProblem } from "../../resources/problem.ts";
import { type ManifestObject, readManifests } from "./manifest.ts";

const MOCK =
  "apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: mock}\nspec: {provider: mock}\n";

function objects(...texts: string[]): readonly ManifestObject[] {
  const read = readManifests(texts.map((text, i) => ({ source: `${i}.yaml`, text })));
  if (read.kind !== "ok") throw new Error(read.problems.map(formatProblem).join("\n"));
  return read.objects;
}

function problems(...texts: string[]): readonly string[] {
  const read = readManifests(texts.map((text, i) => ({ source: `${i}.yaml`, text })));
  return read.kind === "ok" ? [] : read.problems.map(formatProblem);
}

describe("what is kept", () => {
  test("each document alone, with its comments", () => {
    const [first, second, ...more] = objects(
      `# head\n${MOCK}---\n# two\n${MOCK.replace("mock}", "b} # named")}---\n# nothing\n---\n`,
    );
    expect(more).toEqual([]);
    expect(first?.text).toBe(
      "# head\napiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: { name: mock }\nspec: " +
        "{ provider: mock }\n",
    );
    expect(second?.text).toContain("# two");
    expect(second?.text).toContain("{ name: b } # named");
  });

  test("JSON", () => {
    const value = {
      apiVersion: "svc.io/v1",
      kind: "ModelProvider",
      metadata: { name: "mock" },
      spec: { provider: "mock" },
    };
    expect(objects(JSON.stringify(value, null, 2))[0]?.id).toBe("ModelProvider/default/mock");
  });

  test("without state and what the server writes", () => {
    const [object] = objects(
      `${MOCK.replace("mock}", "mock, resourceVersion: x, labels: {a: b}}")}status: ` +
        "{ready: true}\n",
    );
    expect(object?.text).not.toMatch(/status|resourceVersion/);
    expect(object?.text).toContain("labels: { a: b }");
  });

  test("long lines are not folded", () => {
    const long = "word ".repeat(100).trim();
    expect(
      objects(
        `apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: a}\nspec:\n  system: ${long}\n`,
      )[0]?.text,
    ).toContain(long);
  });

  test.each([
    [
      "YAML 1.1",
      "%YAML 1.1\n---\n" +
        MOCK.replace(
          "spec: {provider: mock}",
          "spec:\n  provider: mock\n  externalAccess: {enabled: yes}",
        ),
    ],
    ["anchors", MOCK.replace("{name: mock}", "{name: &n mock, labels: {a: *n}}")],
    ["an end mark", `${MOCK}...\n`],
    ["tags", MOCK.replace("{name: mock}", "{name: !!str mock}")],
  ])("means what was checked: %s", (_name, text) => {
    const [object] = objects(text);
    const again = parseDocuments(object?.text ?? "", "");
    expect(again.problems).toEqual([]);
    expect(again.resources).toEqual([object?.resource]);
  });
});

describe("refused", () => {
  test("the same object twice, in one text or in two", () => {
    expect(problems(`${MOCK}---\n${MOCK}`)).toEqual([
      expect.stringContaining(
        "0.yaml:6: ModelProvider mock: namespace default already has one of this kind and " +
          "name, at 0.yaml:1",
      ),
    ]);
    expect(problems(MOCK, MOCK)).toEqual([
      expect.stringContaining(
        "1.yaml:1: ModelProvider mock: namespace default already has one of this kind and " +
          "name, at 0.yaml:1",
      ),
    ]);
  });

  test.each([
    [
      "somebody else's ConfigMap",
      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n",
      "metadata.name: must be svc-model-prices, the only ConfigMap that svc reads",
    ],
    [
      "what svc get shows of a Secret",
      "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nkeys: [a]\nstatus: {ready: true}\n",
      "keys: unknown field",
    ],
    [
      "a kind of later",
      "apiVersion: svc.io/v1\nkind: Session\nmetadata: {name: p}\n",
      "Session is not supported yet",
    ],
    [
      "somebody else's kind",
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
      "unknown kind Pod",
    ],
    ["a scalar", "hello", "must be an object"],
    ["bad syntax", "a: [", "correct the syntax"],
    [
      "a name that is a path",
      MOCK.replace("name: mock", "name: ../../x"),
      "metadata.name: must be a DNS-1123 label",
    ],
    [
      "a namespace that is a path",
      MOCK.replace("name: mock", "name: mock, namespace: ../x"),
      "metadata.namespace: must be a DNS-1123 label",
    ],
    [
      "a Secret's name with ..",
      "apiVersion: v1\nkind: Secret\nmetadata: {name: a..b}\nstringData: {a: b}\n",
      "metadata.name: must be a DNS-1123 subdomain",
    ],
  ])("%s", (_name, text, words) => {
    expect(problems(MOCK, text).join("\n")).toContain(words);
  });
});
