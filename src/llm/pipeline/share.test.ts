import { expect, test } from "vitest";
import { settled } from "../../platform/testing.ts";
import { Gateway, provider } from "../testing.ts";
import { chat } from "../testing-samples.ts";
import { ANONYMOUS } from "../../access/caller.ts";

const TESTER = "default/tester";

/** A gateway with work of this caller and of another one with small demand. */
function busyWith(caller: string): Gateway {
  const gateway = new Gateway(provider("openai"));
  makeBusy(gateway, caller, 5_000);
  return gateway;
}

/** One second of a busy event loop, after which the caller has done so much work. */
function makeBusy(gateway: Gateway, caller: string, ms: number): void {
  gateway.utilization = 1;
  for (let round = 0; round < 20; round += 1) {
    gateway.share.charge("default/small", 1);
    gateway.share.charge("default/large", 40);
    gateway.clock.advance(50);
    void gateway.share.enter("default/small", 0);
  }
  gateway.share.charge(caller, ms);
}

test("a caller above its share is refused after a second, and told when to come back", async () => {
  const gateway = busyWith(TESTER);
  const trip = gateway.trip();
  trip.requestHeaders();
  await gateway.clock.advanceAndSettle(950);
  expect(trip.exchange.answers).toEqual([]);
  await gateway.clock.advanceAndSettle(100);
  const { status, headers, body } = trip.exchange.responded;
  expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
  expect(JSON.parse(body)).toMatchObject({ error: { code: "fair_share_exceeded" } });
  expect(await gateway.bytesInFlight()).toBe(0);
});

test("a caller above its share goes on when its turn comes", async () => {
  const gateway = new Gateway(provider("openai"));
  makeBusy(gateway, TESTER, 600);
  const trip = gateway.trip();
  trip.requestHeaders();
  await settled();
  expect(trip.exchange.answers).toEqual([]);
  gateway.utilization = 0;
  await gateway.clock.advanceAndSettle(900);
  expect(trip.exchange.last).toEqual({ kind: "pass", phase: "request_headers" });
});

test("others are served meanwhile", () => {
  const gateway = busyWith("default/greedy");
  const trip = gateway.trip();
  trip.requestHeaders();
  trip.requestBody(chat("openai/m"));
  expect(trip.exchange.last.kind).toBe("proceed");
});

test("strangers wait for their refusal when there are too many of them", async () => {
  const gateway = busyWith(ANONYMOUS);
  const trip = gateway.trip();
  trip.requestHeaders({ headers: { authorization: "Bearer svcw_unknown" } });
  await settled();
  expect(trip.exchange.answers).toEqual([]);
  await gateway.clock.advanceAndSettle(1_050);
  expect(trip.exchange.responded.status).toBe(401);
});

test("one stranger is refused at once", () => {
  const trip = new Gateway(provider("openai")).trip();
  trip.requestHeaders({ headers: { authorization: "Bearer svcw_unknown" } });
  expect(trip.exchange.responded.status).toBe(401);
});

test.each(["99999999999999999999", "-1", "many", "1e400"])(
  "content-length %s costs no more than the largest body, and harms no other caller",
  async (length) => {
    const gateway = new Gateway(provider("openai"));
    gateway.trip().requestHeaders({ headers: { "content-length": length } });
    const [ratio] = await gateway.metric("svc_request_work_ratio");
    expect(ratio?.value).toBeGreaterThanOrEqual(0);
    expect(ratio?.value).toBeLessThanOrEqual(0.26);
  },
);

test.each<[string, Record<string, string>]>([
  ["announced", { "content-length": String(16 * 1024 * 1024) }],
  ["not announced", {}],
])("a body whose size is %s is charged to its caller", async (_name, headers) => {
  const gateway = new Gateway(provider("openai"));
  const trip = gateway.trip();
  trip.requestHeaders({ headers });
  trip.requestBody({ ...chat("openai/m"), metadata: { x: "x".repeat(16 * 1024 * 1024 - 200) } });
  const [ratio] = await gateway.metric("svc_request_work_ratio");
  expect(ratio?.value).toBeCloseTo(0.128, 3);
});
