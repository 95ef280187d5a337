/** Clients that leave before their answer, and uploads that take too long. */
import { describe, expect, test } from "vitest";
import type { Usage } from "./dialects/dialect.ts";
import type { RestRead } from "./attempts/relay.ts";
import { Gateway, provider } from "./testing.ts";
import { chat } from "./testing-samples.ts";

const USAGE: Usage = {
  inputTokens: 100,
  cachedInputTokens: 0,
  cacheWrite5mTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 7,
};

describe("a client that leaves while the relay reads the rest", () => {
  function left(claims: boolean): { readonly gateway: Gateway; readonly told: RestRead[] } {
    const gateway = new Gateway(provider("openai", { readsToEnd: true }));
    const told: RestRead[] = [];
    gateway.relay = {
      claim: (_call, done) => {
        if (claims) told.push(done);
        return claims;
      },
    };
    gateway.trip().request().responseHeaders(200).closed();
    return { gateway, told };
  }

  test("is billed once the rest is read, with what it reports", () => {
    const { gateway, told } = left(true);
    expect(gateway.log).toEqual([]);
    expect(gateway.calls.size).toBe(1);
    told[0]?.(USAGE);
    expect(gateway.log).toMatchObject([
      { end: "disconnected", usage: "exact", inputTokens: 100, outputTokens: 7 },
    ]);
    expect(gateway.calls.size).toBe(0);
  });

  test("is billed by an estimate if the rest reports nothing", () => {
    const { gateway, told } = left(true);
    told[0]?.(undefined);
    expect(gateway.log).toMatchObject([{ end: "disconnected", usage: "estimated" }]);
  });

  test("is billed at once if no relay has its call", () => {
    expect(left(false).gateway.log).toMatchObject([{ end: "disconnected", usage: "estimated" }]);
  });
});

describe("a body that does not arrive in time", () => {
  test("is refused, and holds nothing any more", async () => {
    const gateway = new Gateway(provider("openai"));
    const trip = gateway.trip().requestHeaders({ headers: { "content-length": "65536" } });
    expect(await gateway.bytesInFlight()).toBe(65_536);
    // 15 seconds of pause, and a second for the bytes.
    gateway.clock.advance(15_999);
    expect(trip.exchange.answers).toHaveLength(1);
    gateway.clock.advance(1);
    expect(trip.exchange.responded.status).toBe(408);
    expect(trip.exchange.responded.body).toContain("request_timeout");
    expect(await gateway.bytesInFlight()).toBe(0);
  });

  test("is not refused once it is here", () => {
    const gateway = new Gateway(provider("openai"));
    const trip = gateway.trip().request({ headers: { "content-length": "100" } });
    gateway.clock.advance(60_000);
    expect(trip.exchange.answers.map(({ kind }) => kind)).not.toContain("respond");
  });
});

test.each([1, null, ["m"], {}])("a model that is %j is no name", (model) => {
  const gateway = new Gateway(provider("openai"));
  const trip = gateway.trip().request({
    path: "/v1/embeddings",
    body: { ...chat("openai/m"), model, input: "x" },
  });
  expect(trip.exchange.responded.status).toBe(400);
  expect(trip.exchange.responded.body).toContain("model: ");
});
