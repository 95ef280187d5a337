import { beforeEach, describe, expect, test } from "vitest";
import { hashKey } from "../../access/credentials.ts";
import type { AccountUsage } from "../../limits/contract.ts";
import { externalScope, PROVIDER_ACCOUNT } from "../../limits/subject.ts";
import { accessKey, Gateway, provider, snapshot } from "../testing.ts";
import type { Trip } from "../testing.ts";
import { ANSWERS, chat } from "../testing-samples.ts";

const KEY = `svc_${"k".repeat(32)}`;
const ANSWER_TOKENS = 107;
const ONCE = { attempts: 1, baseIntervalMs: 1, maxIntervalMs: 1, maxRetryAfterMs: 1 };
const UNAVAILABLE = { status: 503, retryAfterMs: undefined, flags: "" };

/** An access key of `first`, which falls back to `second` and then to `third`. */
function chained(secondLimit: number | undefined, attempts = 1): Gateway {
  const retries = { ...ONCE, attempts };
  const first = provider("openai", {
    external: { maxTokensPerDay: 1_000_000 },
    retries: ONCE,
    fallbacks: [
      { provider: "default/second", model: undefined },
      { provider: "default/third", model: undefined },
    ],
  });
  const named = (name: string, maxTokensPerDay: number | undefined) =>
    provider("openai", { name, key: `default/${name}`, retries, external: { maxTokensPerDay } });
  const gateway = new Gateway(first, named("second", secondLimit), named("third", undefined));
  gateway.policy = {
    ...gateway.policy,
    keysByHash: new Map([[hashKey(KEY), { key: accessKey(first), graceUntil: undefined }]]),
  };
  return gateway;
}

function ask(gateway: Gateway): Trip {
  return gateway.trip().request({
    path: "/ext/v1/chat/completions",
    headers: { authorization: `Bearer ${KEY}` },
    body: chat("m", { max_tokens: 10 }),
  });
}

/** Fails the attempt under way, and lets the next one begin. */
function fail(gateway: Gateway, id: string, trip: Trip): void {
  trip.call(id).reportSentFailure(UNAVAILABLE);
  gateway.attempt(id);
  gateway.clock.advance(1);
}

async function used(gateway: Gateway, name: string): Promise<AccountUsage | undefined> {
  const subject = { scope: externalScope(`default/${name}`), account: PROVIDER_ACCOUNT };
  return (await gateway.limits.usage([subject]))[0];
}

describe("the external budget of a fallback", () => {
  let gateway: Gateway;
  beforeEach(() => {
    gateway = chained(1_000);
  });

  test("is charged for what the fallback serves", async () => {
    const trip = ask(gateway);
    fail(gateway, "call-1", trip);
    expect(trip.call().target.provider.name).toBe("second");
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect(await used(gateway, "second")).toMatchObject({ tokens: ANSWER_TOKENS, requests: 1 });
    expect(await used(gateway, "third")).toMatchObject({ tokens: 0, requests: 0 });
    expect(await used(gateway, "openai")).toMatchObject({ tokens: ANSWER_TOKENS, requests: 1 });
  });

  test("is charged also without a limit", async () => {
    gateway = chained(undefined);
    const trip = ask(gateway);
    fail(gateway, "call-1", trip);
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect(await used(gateway, "second")).toMatchObject({ tokens: ANSWER_TOKENS, requests: 1 });
  });

  test("is not charged for an attempt that failed", async () => {
    const trip = ask(gateway);
    fail(gateway, "call-1", trip);
    fail(gateway, "call-1", trip);
    expect(trip.call().target.provider.name).toBe("third");
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect(await used(gateway, "second")).toMatchObject({ tokens: 0, requests: 0, inFlight: 0 });
    expect(await used(gateway, "third")).toMatchObject({ tokens: ANSWER_TOKENS });
  });

  test("is charged for an attempt that may have been billed", async () => {
    const trip = ask(gateway);
    fail(gateway, "call-1", trip);
    trip.call().reportSentFailure({ ...UNAVAILABLE, status: 0, flags: "upstreamRequestTimeout" });
    gateway.attempt("call-1");
    gateway.clock.advance(1);
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect((await used(gateway, "second"))?.tokens).toBeGreaterThan(10);
  });

  test("is passed over when it has no room, and the next fallback answers", async () => {
    gateway = chained(5);
    const trip = ask(gateway);
    fail(gateway, "call-1", trip);
    expect(trip.call().target.provider.name).toBe("third");
    expect(trip.call().attempts.map(({ failure }) => failure?.flags)).toEqual([
      "",
      "external_tokens_per_day_exceeded",
      undefined,
    ]);
    trip.responseHeaders(200).responseBody(ANSWERS.openai);
    expect(await used(gateway, "second")).toMatchObject({ tokens: 0, requests: 0 });
    expect(await used(gateway, "third")).toMatchObject({ tokens: ANSWER_TOKENS });
  });

  test("holds its reservation while the fallback answers, once for all of its attempts", async () => {
    gateway = chained(1_000, 3);
    const trip = ask(gateway);
    fail(gateway, "call-1", trip);
    fail(gateway, "call-1", trip);
    expect(trip.call().attempts.map(({ target }) => target.provider.name)).toEqual([
      "openai",
      "second",
      "second",
    ]);
    expect(await used(gateway, "second")).toMatchObject({ tokens: 0, inFlight: 1 });
    trip.closed();
    expect(await used(gateway, "second")).toMatchObject({ inFlight: 0 });
  });

  test("counts calls of several keys together", async () => {
    gateway = chained(150);
    for (const id of ["call-1", "call-2"]) {
      const trip = ask(gateway);
      fail(gateway, id, trip);
      trip.responseHeaders(200).responseBody(ANSWERS.openai);
    }
    // The second call's prompt and its 10 tokens fit; a third call finds no room.
    const trip = ask(gateway);
    fail(gateway, "call-3", trip);
    expect(trip.call("call-3").target.provider.name).toBe("third");
  });
});

test("a slow store: a reservation that arrives after the client left is returned", async () => {
  const gateway = chained(1_000);
  const { limits } = gateway;
  const admit = limits.admit.bind(limits);
  const { promise, resolve } = Promise.withResolvers<void>();
  limits.admit = (request) =>
    request.scope.endsWith("second") ? promise.then(() => admit(request)) : admit(request);
  const trip = ask(gateway);
  fail(gateway, "call-1", trip);
  const { fallbackBudgets, attempts } = trip.call();
  expect(attempts).toHaveLength(1);
  trip.closed();
  resolve();
  await promise;
  await Promise.resolve();
  expect(fallbackBudgets).toBeDefined();
  expect(await used(gateway, "second")).toMatchObject({ tokens: 0, inFlight: 0 });
});

test("an agent's calls are not external: its fallbacks are not limited", () => {
  const first = provider("openai", {
    retries: ONCE,
    fallbacks: [{ provider: "default/second", model: undefined }],
  });
  const second = provider("openai", {
    name: "second",
    key: "default/second",
    external: { maxTokensPerDay: 0 },
  });
  const gateway = new Gateway(first, second);
  gateway.policy = snapshot(first, second);
  const trip = gateway.trip().request();
  fail(gateway, "call-1", trip);
  expect(trip.call().target.provider.name).toBe("second");
});
