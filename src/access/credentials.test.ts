import { describe, expect, test } from "vitest";
import { type Credential, hashKey, readCredential } from "./credentials.ts";
import { WorkloadTokens } from "./workload-tokens.ts";

const read = (headers: Record<string, string>, query = ""): Credential =>
  readCredential(new Map(Object.entries(headers)), query);
const key = (text: string): Credential => ({ kind: "key", sha256: hashKey(text) });

describe("readCredential", () => {
  test.each<[string, Record<string, string>, string]>([
    ["bearer", { authorization: "Bearer k1" }, ""],
    ["bearer in another case, with spaces", { authorization: "bearer   k1 " }, ""],
    ["Anthropic's", { "x-api-key": "k1" }, ""],
    ["Azure's", { "api-key": "k1" }, ""],
    ["Google's header", { "x-goog-api-key": "k1" }, ""],
    ["Google's query", {}, "alt=sse&key=k1"],
    ["the same twice", { authorization: "Bearer k1", "x-api-key": "k1" }, "key=k1"],
  ])("%s", (_name, headers, query) => {
    expect(read(headers, query)).toEqual(key("k1"));
  });

  test.each<[string, Record<string, string>, string]>([
    ["two headers", { authorization: "Bearer k1", "x-api-key": "k2" }, ""],
    ["header and query", { "x-goog-api-key": "k1" }, "key=k2"],
    [
      "a scheme that is not Bearer beside a key",
      { authorization: "Basic azE=", "x-api-key": "k1" },
      "",
    ],
    ["two bearers joined", { authorization: "Bearer k1, Bearer k1", "x-api-key": "k1" }, ""],
  ])("keys that differ are no key: %s", (_name, headers, query) => {
    expect(read(headers, query)).toEqual({ kind: "conflict" });
  });

  test.each<[string, Record<string, string>, string]>([
    ["nothing", {}, ""],
    ["an empty bearer", { authorization: "Bearer " }, ""],
    ["Basic", { authorization: "Basic azE=" }, ""],
    ["an empty key", { "x-api-key": " " }, ""],
    ["an enormous key", { "x-api-key": "k".repeat(513) }, ""],
    ["a bearer of two words", { authorization: "Bearer k1 k2" }, ""],
    ["a parameter that only ends in key", {}, "monkey=k1"],
    ["a parameter whose name is escaped", {}, "k%65y=k1"],
    ["a parameter without a value", {}, "key="],
    ["bearer behind something else", { authorization: "x Bearer k1" }, ""],
    ["bearer without a space", { authorization: "Bearerk1" }, ""],
  ])("none: %s", (_name, headers, query) => {
    expect(read(headers, query)).toEqual({ kind: "none" });
  });
});

test("the longest key that is looked at", () => {
  const longest = "k".repeat(512);
  expect(read({ "x-api-key": longest })).toEqual(key(longest));
});

const ACCESS_KEY = `svc_${"k".repeat(43)}`;

test.each<[string, Record<string, string>]>([
  ["as bearer", { authorization: `Bearer sk-ant-api03-${ACCESS_KEY}-AA` }],
  ["as x-api-key", { "x-api-key": `sk-ant-api03-${ACCESS_KEY}-AA` }],
  [
    "beside its raw form",
    { authorization: `Bearer ${ACCESS_KEY}`, "x-api-key": `sk-ant-api03-${ACCESS_KEY}-AA` },
  ],
])("a wrapped access key is the access key: %s", (_name, headers) => {
  expect(read(headers)).toEqual(key(ACCESS_KEY));
});

describe("workload tokens", () => {
  const tokens = new WorkloadTokens(new Uint8Array(32).fill(7));

  test("stable, of the documented form, one for each workload", () => {
    expect(tokens.tokenOf("default", "a")).toMatch(/^svcw_[0-9A-Za-z]{43}$/);
    expect(new WorkloadTokens(new Uint8Array(32).fill(7)).tokenOf("default", "a")).toBe(
      tokens.tokenOf("default", "a"),
    );
    const all = [
      tokens.tokenOf("default", "a"),
      tokens.tokenOf("default", "b"),
      tokens.tokenOf("b", "a"),
      tokens.tokenOf("a", "b"),
    ];
    expect(new Set(all).size).toBe(4);
    expect(new WorkloadTokens(new Uint8Array(32).fill(8)).tokenOf("default", "a")).not.toBe(
      tokens.tokenOf("default", "a"),
    );
  });

  test("known by their hash", () => {
    for (const [namespace, name] of [
      ["default", "a"],
      ["default", "b"],
      ["other", "a"],
      // Again, now that others were asked for.
      ["default", "a"],
    ] as const)
      expect(tokens.hashesOf(namespace, name)).toEqual([hashKey(tokens.tokenOf(namespace, name))]);
  });

  test("a short key is refused, and so is none", () => {
    expect(() => new WorkloadTokens(new Uint8Array(31))).toThrow(/32 bytes/);
    expect(() => new WorkloadTokens()).toThrow(/32 bytes/);
    expect(() => new WorkloadTokens(new Uint8Array(32), new Uint8Array(31))).toThrow(/32 bytes/);
  });

  test("while the key is rotated, tokens of both keys are valid, and new ones are of the first", () => {
    const [old, next] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    const rotated = new WorkloadTokens(old);
    const before = rotated.tokenOf("default", "a");
    expect(rotated.hashesOf("default", "a")).toEqual([hashKey(before)]);
    expect(rotated.setKeys(next, old)).toBe(true);
    const after = rotated.tokenOf("default", "a");
    expect(after).toBe(new WorkloadTokens(next).tokenOf("default", "a"));
    expect(rotated.hashesOf("default", "a")).toEqual([hashKey(after), hashKey(before)]);
    expect(rotated.setKeys(next)).toBe(true);
    expect(rotated.hashesOf("default", "a")).toEqual([hashKey(after)]);
    expect(rotated.setKeys(next)).toBe(false);
    expect(() => rotated.setKeys()).toThrow(/32 bytes/);
    expect(rotated.tokenOf("default", "a")).toBe(after);
  });
});
