import { describe, expect, test } from "vitest";
import { authorize } from "./authorize.ts";
import { accessKey, EXTERNAL, provider } from "./testing.ts";

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
