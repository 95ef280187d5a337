import { describe, expect, test } from "vitest";
import type { CallerPolicy } from "../../policy/snapshot.ts";
import { accessKey, agent, EXTERNAL, provider, snapshot } from "../testing.ts";
import { authorize, permitFor } from "./authorize.ts";
import { type LlmRoute, parseRoute } from "./routes.ts";

const open = provider("openai", { external: EXTERNAL });

describe("what a key opens", () => {
  const key = accessKey(open, {
    resolveModel: (model) =>
      model === "m"
        ? { kind: "granted", grant: { ref: "openai/m", provider: open, model } }
        : { kind: "denied", reason: "AccessKey laptop may not use it" },
  });

  test("its permit holds it", () => {
    expect(authorize(key, "m")).toMatchObject({
      kind: "granted",
      grant: { ref: "openai/m" },
    });
  });

  test("nothing else", () => {
    expect(authorize(key, "other")).toMatchObject({
      kind: "refused",
      error: { status: 403, code: "model_not_allowed" },
    });
  });
});

describe("why a model is refused", () => {
  const caller = agent(open, provider("anthropic"));
  const refusal = (model: string, of = caller as Parameters<typeof authorize>[0]) => {
    const authorization = authorize(of, model);
    if (authorization.kind === "granted") throw new Error("The model is granted.");
    return authorization.error;
  };

  test("several providers have it: they are named", () => {
    const error = refusal("both");
    expect(error).toMatchObject({ status: 400, code: "ambiguous_model", param: "model" });
    expect(error.message).toContain("openai/m, anthropic/m");
  });

  test("nobody has it: the page that lists the caller's own is named", () => {
    const key = accessKey(open, { resolveModel: () => ({ kind: "unknown" }) });
    expect(refusal("none")).toMatchObject({ status: 404, code: "model_not_found" });
    expect(refusal("none").message).toContain("GET /v1/models ");
    expect(refusal("none", key).message).toContain("GET /ext/v1/models ");
  });

  test("the caller may not use it: the reason is given", () => {
    const error = refusal("secret-model");
    expect(error).toMatchObject({ status: 403, code: "model_not_allowed" });
    expect(error.message).toContain('"secret-model" is not allowed: Agent tester may not use it.');
  });

  test("a long name is shown back shortened, and as one line", () => {
    expect(refusal("x".repeat(100)).message).toContain(`"${"x".repeat(100)}"`);
    expect(refusal("x".repeat(101)).message).toContain(`"${"x".repeat(100)}…"`);
    expect(refusal("a\nb").message).toContain('"a\\nb"');
  });
});

describe("the fallbacks that a permit names", () => {
  const fallbacks = [
    { provider: "default/anthropic", model: "claude" },
    { provider: "default/gemini", model: undefined },
    { provider: "default/inside", model: undefined },
  ];
  const first = provider("openai", { external: EXTERNAL, fallbacks });
  const all = [
    first,
    provider("anthropic", { external: EXTERNAL }),
    provider("gemini", { external: EXTERNAL }),
    provider("openai", { name: "inside", key: "default/inside" }),
  ];
  const grant = { ref: "openai/m", provider: first, model: "m" };
  const route = parseRoute("/v1/chat/completions") as LlmRoute;
  const named = (caller: CallerPolicy): string[] | undefined =>
    permitFor({ caller, grant, route, snapshot: snapshot(...all) })?.targets.map(
      ({ provider: { name }, model }) => `${name}/${model}`,
    );

  test("an agent has all of them", () => {
    expect(named(agent(...all))).toEqual(["openai/m", "anthropic/claude", "gemini/m", "inside/m"]);
  });

  test("a key has those with external access", () => {
    expect(named(accessKey(first))).toEqual(["openai/m", "anthropic/claude", "gemini/m"]);
  });

  test("a key has no model outside of its restrictions, also as a fallback", () => {
    const key = accessKey(first, { allowsModel: (model) => model === "m" });
    expect(named(key)).toEqual(["openai/m", "gemini/m"]);
  });
});
