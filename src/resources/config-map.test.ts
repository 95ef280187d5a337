import { describe, expect, test } from "vitest";
import { formatProblem } from "./problem.ts";
import { parseDocuments } from "./parse.ts";

const configMap = (data: object, metadata: object = { name: "svc-model-prices" }): string =>
  JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata, data });

const problems = (text: string): string[] =>
  parseDocuments(text, "f.yaml").problems.map(formatProblem);

describe("the ConfigMap svc-model-prices", () => {
  test("holds tables of prices: a later key overrides an earlier", () => {
    const text = `
apiVersion: v1
kind: ConfigMap
metadata: {name: svc-model-prices, namespace: svc}
data:
  a.yaml: |
    # ours
    my-model: {input: 2.50, output: 10}
    llama-*: {input: 0.10, output: 0.10}
  b: '{"my-model": {"input": 3, "output": 4}}'
  empty: ""
`;
    expect(parseDocuments(text, "f.yaml")).toMatchObject({
      problems: [],
      resources: [
        {
          kind: "ConfigMap",
          namespace: "svc",
          name: "svc-model-prices",
          prices: {
            "my-model": { input: "3", output: "4" },
            "llama-*": { input: "0.10", output: "0.10" },
          },
        },
      ],
    });
  });

  test.each([
    [{ p: "m: {input: x, output: 1}" }, "data.p: m.input: must be US dollars"],
    [{ p: "m: {input: 1}" }, "data.p: m.output: is required"],
    [{ p: "m: {input: 1, output: 2, ouput: 3}" }, "data.p: m.ouput: unknown field; did you mean"],
    [{ p: "{" }, "data.p: not valid YAML"],
    [{ p: { m: { input: 1, output: 2 } } }, "data.p: must be a string"],
    [{ "a b": "" }, "must be letters, digits"],
  ])("%j is refused", (data, message) => {
    expect(problems(configMap(data)).join("\n")).toContain(message);
  });

  test.each([
    [configMap({}, { name: "settings" }), "must be svc-model-prices, the only ConfigMap"],
    [configMap({}, {}), "metadata.name: is required"],
    ["{kind: ConfigMap, metadata: {name: svc-model-prices}}", "apiVersion: is required"],
    [configMap({}).replace('"data"', '"binaryData"'), "binaryData: unknown field"],
  ])("%s is refused", (text, message) => {
    expect(problems(text).join("\n")).toContain(message);
  });
});
