import { expect, test } from "vitest";
import { permitFor } from "../request/authorize.ts";
import { JsonBody } from "../request/json-body.ts";
import { prepareAttempt } from "./prepare.ts";
import { parseRoute } from "../request/routes.ts";
import { agent, provider, snapshot } from "../testing.ts";
import { chat } from "../testing-samples.ts";

const openai = provider("openai", { fallbacks: [{ provider: "default/anthropic", model: "m" }] });
const anthropic = provider("anthropic");
const other = provider("gemini");

const route = parseRoute("/v1/chat/completions");
if (route === undefined) throw new Error("no route");
const grant = { ref: "openai/m", provider: openai, model: "m" };
const permit = permitFor({
  caller: agent(openai, anthropic, other),
  grant,
  route,
  stream: false,
  snapshot: snapshot(openai, anthropic, other),
});
if (permit === undefined) throw new Error("no permit");

const source = {
  route,
  stream: false,
  body: JsonBody.read(Buffer.from(JSON.stringify(chat("openai/m")))),
  vendorHeaders: { anthropicVersion: undefined, anthropicBeta: undefined },
  outputCap: undefined,
};

test("a permit names the requested provider and its fallbacks", () => {
  expect(permit.targets.map(({ provider: { name }, model }) => [name, model])).toEqual([
    ["openai", "m"],
    ["anthropic", "m"],
  ]);
});

test("its targets can be prepared, with the key of each", () => {
  const keys = permit.targets.map((target) => {
    const { set } = prepareAttempt(permit, target, source);
    return set.find(([name]) => name === "authorization" || name === "x-api-key")?.[1];
  });
  expect(keys).toEqual(["Bearer sk-secret-openai", "sk-secret-anthropic"]);
});

test.each([
  ["another provider of the caller", { provider: other, model: "m" }],
  ["another model of the same provider", { provider: openai, model: "secret-model" }],
  ["a copy of a target", { ...permit.targets[0] }],
])("%s gets no key", (_name, target) => {
  expect(() => prepareAttempt(permit, target, source)).toThrow("the permit does not allow");
});
