import { expect, test } from "vitest";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { compilePrices } from "./prices.ts";

const configMap = (namespace: string, price: number, annotations: object = {}): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "svc-model-prices", namespace, annotations },
    data: { prices: `m: {input: ${price}, output: ${price}}` },
  });

const compiled = (...all: string[]): ReturnType<typeof compilePrices> =>
  compilePrices(buildResourceSet(parseDocuments(all.join("\n---\n"), "f").resources), {});

test("no ConfigMap overrides nothing", () => {
  expect(compiled()).toEqual({ prices: {}, verdicts: [] });
});

test("of several, the first by namespace that is not skipped is in use", () => {
  const { prices, verdicts } = compiled(
    configMap("c", 3),
    configMap("b", 2),
    configMap("a", 1, { "svc.io/when-env": "NOT_SET" }),
  );
  expect(prices).toEqual({ m: { input: "2", output: "2" } });
  expect(
    verdicts.map(({ namespace, ready, reason, message }) => [namespace, ready, reason, message]),
  ).toEqual([
    ["a", false, "Skipped", "environment variable NOT_SET is not set"],
    ["b", true, "Ready", ""],
    ["c", false, "DuplicatePrices", "ConfigMap b/svc-model-prices is in use instead"],
  ]);
});
