import { describe, expect, test } from "vitest";
import type { CallerPolicy } from "../policy/snapshot.ts";
import { EXTERNAL_PREFIX, externalPaths, splitAudience } from "./audience.ts";
import { callerName } from "./caller.ts";
import { publicError } from "./errors.ts";
import { refusalEvent, refusalHeaders, Refusal, refuse, retryAfterSeconds } from "./refusal.ts";

const ERROR = publicError("not_found", "No.");

describe("the headers of a refusal", () => {
  const HEAD = [
    ["content-type", "application/json"],
    ["x-svc-call-id", "call-1"],
  ];

  test.each<[string, number | undefined, readonly (readonly string[])[]]>([
    ["where time does not matter", undefined, []],
    [
      "where waiting changes nothing",
      0,
      [
        ["retry-after", "0"],
        ["x-should-retry", "false"],
      ],
    ],
    ["after less than a second", 1, [["retry-after", "1"]]],
    ["after a second", 1_000, [["retry-after", "1"]]],
    ["after more than a second", 1_001, [["retry-after", "2"]]],
    ["after as long as SDKs wait", 60_000, [["retry-after", "60"]]],
    [
      "after longer than SDKs wait",
      60_001,
      [
        ["retry-after", "61"],
        ["x-should-retry", "false"],
      ],
    ],
  ])("%s", (_name, retryAfterMs, expected) => {
    const headers = refusalHeaders(new Refusal(ERROR, { retryAfterMs }), "call-1");
    expect(headers).toEqual([...HEAD, ...expected]);
  });

  test("seconds are whole, and at least one", () => {
    expect([0, 1, 999, 1_000, 1_001].map(retryAfterSeconds)).toEqual([1, 1, 1, 1, 2]);
  });
});

test("a refusal of a code has its status, and what it is about", () => {
  const { error, retryAfterMs, policy } = refuse("not_found", "No such path.", "path");
  expect(error).toEqual({
    status: 404,
    code: "not_found",
    message: "No such path.",
    param: "path",
  });
  expect([retryAfterMs, policy]).toEqual([undefined, undefined]);
  expect(refuse("not_found", "No.").error).not.toHaveProperty("param");
});

const AGENT = { kind: "agent", namespace: "team", name: "a", workload: "team/a" } as CallerPolicy;
const KEY = { kind: "key", namespace: "team", name: "ci", workload: "ext:ci" } as CallerPolicy;

describe("the record of a refusal", () => {
  test.each<[string, CallerPolicy | undefined, object]>([
    ["an agent", AGENT, { workload: "team/a" }],
    ["an access key", KEY, { workload: "ext:ci", source: "external", access_key: "team/ci" }],
    ["nobody who is known", undefined, {}],
  ])("of %s", (_name, policy, caller) => {
    const origin = { policy, address: "192.0.2.1", model: "m\u0007", path: "/v1\u001b" };
    expect(refusalEvent("LLM.REFUSED", { error: ERROR, origin })).toEqual({
      type: "LLM.REFUSED",
      fields: {
        asked: String.raw`m\u{7}`,
        client_ip: "192.0.2.1",
        code: "not_found",
        path: String.raw`/v1\u{1b}`,
        status: 404,
        ...caller,
      },
    });
  });

  test("without a model asks for none", () => {
    const origin = { policy: AGENT, address: "192.0.2.1", model: undefined, path: "/" };
    expect(refusalEvent("X", { error: ERROR, origin }).fields["asked"]).toBeUndefined();
  });
});

test("names of access keys are unique in their namespace only, and nobody is one caller", () => {
  expect([AGENT, KEY, undefined].map(callerName)).toEqual(["team/a", "ext:team/ci", "anonymous"]);
});

describe("audiences", () => {
  test.each([
    ["/v1/messages", "internal", "/v1/messages"],
    ["/ext/v1/messages", "external", "/v1/messages"],
    ["/ext/v1/v1/messages", "external", "/v1/messages"],
    ["/ext/v1/v1/v1/messages", "external", "/v1/v1/messages"],
    ["/ext/openai/v1/v1/x", "external", "/openai/v1/v1/x"],
    ["/ext/", "external", "/"],
    ["/ext", "internal", "/ext"],
    ["/extra/v1/messages", "internal", "/extra/v1/messages"],
    ["/v1/ext/messages", "internal", "/v1/ext/messages"],
  ])("%s is %s: %s", (path, audience, pathname) => {
    expect(splitAudience(path)).toEqual({ audience, pathname });
  });

  test("each external path is one of the internal path's", () => {
    const paths = externalPaths("/v1/messages");
    expect(paths).toEqual(["/ext/v1/messages", "/ext/v1/v1/messages"]);
    for (const path of paths) {
      expect(path.startsWith(EXTERNAL_PREFIX)).toBe(true);
      expect(splitAudience(path)).toEqual({ audience: "external", pathname: "/v1/messages" });
    }
  });
});
