import { identify, type IdentityRequest } from "./identity.ts";
import { describe, expect, test } from "vitest";
import { hashKey } from "./credentials.ts";
import type { AccessKeyPolicy, KeyEntry, PolicySnapshot } from "../policy/snapshot.ts";
import { accessKey, EXTERNAL, headers, provider, snapshot, TOKEN } from "../llm/testing.ts";

const KEY = `svc_${"k".repeat(43)}`;
const OLD_KEY = `svc_${"o".repeat(43)}`;
const NOW = Date.parse("2026-11-21T12:00:00Z");

const open = provider("openai", { external: EXTERNAL });

function policy(key: Partial<AccessKeyPolicy> = {}, provided = open): PolicySnapshot {
  const held = accessKey(provided, key);
  const entry = (graceUntil: number | undefined): KeyEntry => ({ key: held, graceUntil });
  const keysByHash = new Map([
    [hashKey(KEY), entry(undefined)],
    [hashKey(OLD_KEY), entry(NOW + 60_000)],
  ]);
  return { ...snapshot(provided), keysByHash };
}

function claim(key: string | undefined, more: Partial<IdentityRequest> = {}): IdentityRequest {
  return {
    audience: "external",
    headers: headers(key === undefined ? {} : { authorization: `Bearer ${key}` }),
    query: "",
    address: "198.51.100.1",
    now: NOW,
    ...more,
  };
}

const INSIDE = { audience: "internal" } as const;

const codeOf = (snapshot: PolicySnapshot, made: IdentityRequest): string => {
  const identity = identify(snapshot, made);
  return identity.kind === "known" ? identity.policy.workload : identity.error.code;
};

describe("who calls", () => {
  test.each<[string, PolicySnapshot, IdentityRequest, string]>([
    ["an agent", policy(), claim(TOKEN, { audience: "internal" }), "default/tester"],
    ["an access key", policy(), claim(KEY), "ext:laptop"],
    [
      "one in its vendor's wrapping",
      policy(),
      claim(undefined, { headers: headers({ "x-api-key": `sk-ant-api03-${KEY}-AA` }) }),
      "ext:laptop",
    ],
    ["the key before, in its grace period", policy(), claim(OLD_KEY), "ext:laptop"],
    [
      "the key before, at the end of it",
      policy(),
      claim(OLD_KEY, { now: NOW + 60_000 }),
      "key_expired",
    ],
    ["a key that expires in a moment", policy({ expiresAt: NOW + 1 }), claim(KEY), "ext:laptop"],
    ["a key that has just expired", policy({ expiresAt: NOW }), claim(KEY), "key_expired"],
    ["a revoked key", policy({ revoked: true }), claim(KEY), "key_revoked"],
    ["a revoked key in its grace period", policy({ revoked: true }), claim(OLD_KEY), "key_revoked"],
    [
      "a provider that is closed to the outside",
      policy({}, provider("openai")),
      claim(KEY),
      "external_access_disabled",
    ],
    [
      "a provider that is not in use, whose models tell it",
      { ...policy(), providers: new Map() },
      claim(KEY),
      "ext:laptop",
    ],
    [
      "an address that is not allowed",
      policy({ allowsAddress: () => false }),
      claim(KEY),
      "address_not_allowed",
    ],
    ["a workload token outside", policy(), claim(TOKEN), "wrong_surface"],
    ["an access key inside", policy(), claim(KEY, { audience: "internal" }), "wrong_surface"],
    ["no key", policy(), claim(undefined), "missing_key"],
    [
      "two keys",
      policy(),
      claim(KEY, { headers: headers({ authorization: `Bearer ${KEY}`, "x-api-key": TOKEN }) }),
      "missing_key",
    ],
    ["the key in another case", policy(), claim(KEY.toUpperCase()), "invalid_key"],
    ["the key with something behind it", policy(), claim(`${KEY}x`), "invalid_key"],
    ["the key's hash", policy(), claim(hashKey(KEY)), "invalid_key"],
    ["a wrapped workload token", policy(), claim(`sk-ant-api03-${TOKEN}-AA`), "invalid_key"],
  ])("%s", (_name, snapshot, made, expected) => {
    expect(codeOf(snapshot, made)).toBe(expected);
  });

  test("a refusal knows whom it refused, and shows no key", () => {
    const identity = identify(policy({ revoked: true }), claim(KEY));
    expect(identity).toMatchObject({ kind: "refused", policy: { workload: "ext:laptop" } });
    expect(JSON.stringify(identity)).not.toContain(KEY);
  });

  test.each<[string, string, PolicySnapshot, IdentityRequest]>([
    ["which key to send inside", "send the workload token", policy(), claim(undefined, INSIDE)],
    ["which key to send outside", "send the access key", policy(), claim(undefined)],
    [
      "when it expired",
      "expired at 2026-11-21T12:00:00.000Z.",
      policy({ expiresAt: NOW }),
      claim(KEY),
    ],
    [
      "since when the key before is not taken",
      "expired at 2026-11-21T12:01:00.000Z.",
      policy(),
      claim(OLD_KEY, { now: NOW + 60_000 }),
    ],
    [
      "from where it may not be used",
      "from the address 198.51.100.1.",
      policy({ allowsAddress: () => false }),
      claim(KEY),
    ],
  ])("a refusal says %s", (_name, said, snapshot, made) => {
    const identity = identify(snapshot, made);
    expect(identity).toMatchObject({ error: { message: expect.stringContaining(said) as string } });
  });
});
