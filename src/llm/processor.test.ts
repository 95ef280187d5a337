/** How the processor answers each phase, and what the stages of a request are given. */
import { describe, expect, test, vi } from "vitest";
import { hashKey } from "../access/credentials.ts";
import { InternalHeader } from "../envoy/config/names.ts";
import { settled } from "../platform/testing.ts";
import { agent, Gateway, NO_LIMITS, provider, snapshot, TOKEN, type Trip } from "./testing.ts";
import { chat } from "./testing-samples.ts";

const gateway = (): Gateway => new Gateway(provider("openai"));

/** A gateway whose limits answer a reservation later, as a store does. */
function asked(): { readonly shared: Gateway; readonly answer: () => void } {
  const openai = provider("openai");
  const shared = new Gateway(openai);
  const limits = { ...NO_LIMITS, maxTokensPerDay: 1_000_000 };
  shared.policy = {
    ...snapshot(openai),
    agentsByTokenHash: new Map([[hashKey(TOKEN), { ...agent(openai), limits }]]),
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  const { limits: shareds } = shared;
  const reserve = shareds.reserve.bind(shareds);
  vi.spyOn(shareds, "reserve").mockImplementation(async (...demand) => {
    await promise;
    return reserve(...demand);
  });
  return { shared, answer: resolve };
}

const code = (trip: Trip): unknown =>
  (JSON.parse(trip.exchange.responded.body) as { error: { code: unknown } }).error.code;

describe("phases", () => {
  test("trailers pass, of a request and of an answer", () => {
    const trip = gateway().trip().request();
    for (const kind of ["request_trailers", "response_trailers"] as const) {
      trip.exchange.phase({ kind, headers: new Map() } as never);
      expect(trip.exchange.last).toEqual({ kind: "pass", phase: kind });
    }
  });

  test("headers pass, and the body goes on as a whole", () => {
    const trip = gateway().trip().request();
    expect(trip.exchange.answers).toMatchObject([
      { kind: "pass", phase: "request_headers" },
      { kind: "proceed", phase: "request_body", reply: { clearRouteCache: true } },
    ]);
  });

  test("a body that is not changed is not sent again", () => {
    const path = "/v1beta/models/gemini%2Fm:generateContent";
    const trip = new Gateway(provider("gemini")).trip().request({ path, body: '{"contents":[]}' });
    expect(trip.exchange.last).toMatchObject({ kind: "proceed" });
    expect("body" in trip.exchange.proceeded).toBe(false);
  });

  test("a body before its headers fails closed, and is no defect", () => {
    const shared = gateway();
    const trip = shared.trip().requestBody(chat("openai/m"));
    expect(trip.exchange.last).toEqual({ kind: "fail" });
    expect(shared.defects).toEqual([]);
  });

  test("an answer's body before its call passes", () => {
    const shared = gateway();
    const trip = shared.trip().requestHeaders().responseBody("too large");
    expect(trip.exchange.last).toEqual({ kind: "pass", phase: "response_body" });
    expect(shared.defects).toEqual([]);
  });
});

describe("Envoy's own reply before the call", () => {
  test.each([
    [408, "- stream_idle_timeout", "request_timeout"],
    [413, "- request_payload_too_large", "body_too_large"],
    [504, "UT response_timeout", "upstream_timeout"],
    [503, "UT response_timeout", "upstream_timeout"],
    [503, "UH no_healthy_upstream", "upstream_unavailable"],
    [400, "", "upstream_unavailable"],
  ])("%i %s is %s", (status, local, expected) => {
    const trip = gateway().trip().requestHeaders();
    trip.responseHeaders(status, { "x-svc-local": local });
    expect(code(trip)).toBe(expected);
  });

  test("comes with the route and the address of a request that still waits for its turn", async () => {
    const shared = gateway();
    vi.spyOn(shared.share, "enter").mockReturnValue(new Promise(() => undefined));
    const path = "/v1beta/models/openai%2Fm:generateContent?alt=x";
    const trip = shared
      .trip()
      .requestHeaders({ path, headers: { [InternalHeader.peer]: "192.0.2.7" } });
    await settled();
    trip.responseHeaders(413, { "x-svc-local": "- request_payload_too_large" });
    expect(shared.audit.events.map(({ fields }) => fields)).toMatchObject([
      { asked: "openai/m", client_ip: "192.0.2.7", path: path.split("?")[0] },
    ]);
  });
});

describe("a refusal", () => {
  const stranger = { headers: { authorization: "Bearer svcw_unknown" } };

  test("names the client behind a trusted proxy", () => {
    const shared = gateway();
    shared.trustedProxies = ["192.0.2.0/24"];
    const peer = { [InternalHeader.peer]: "192.0.2.7", "x-forwarded-for": "198.51.100.9" };
    shared.trip().requestHeaders({ headers: { ...stranger.headers, ...peer } });
    expect(shared.audit.events[0]?.fields["client_ip"]).toBe("198.51.100.9");
  });

  test("says how long it took", () => {
    const shared = gateway();
    const trip = shared.trip().requestHeaders({ headers: { "content-length": "0" } });
    shared.clock.advance(15_000);
    expect(trip.exchange.responded.status).toBe(408);
    expect(trip.exchange.responded.headers.get("x-svc-duration-ms")).toBe("15000");
  });

  test("of a caller who is known does not wait behind strangers", () => {
    const shared = gateway();
    shared.audit.refusing = true;
    const enter = vi.spyOn(shared.share, "enter");
    const trip = shared.trip().requestHeaders();
    expect(code(trip)).toBe("audit_unavailable");
    expect(enter.mock.calls.map(([caller]) => caller)).toEqual(["default/tester"]);
  });
});

test.each([
  ["a caller who is known", {}, "default/tester"],
  ["a stranger", { authorization: "Bearer svcw_unknown" }, "anonymous"],
])("the work for %s is charged to them", (_name, headers, caller) => {
  const shared = gateway();
  const charge = vi.spyOn(shared.share, "charge");
  shared.trip().requestHeaders({ headers });
  expect(new Set(charge.mock.calls.map(([name]) => name))).toEqual(new Set([caller]));
  expect(charge).toHaveBeenCalled();
});

describe("a reservation that a store answers later", () => {
  test("sends the call when it is there", async () => {
    const { shared, answer } = asked();
    const trip = shared.trip().request();
    expect(trip.exchange.answers).toHaveLength(1);
    answer();
    await settled();
    expect(trip.exchange.last).toMatchObject({ kind: "proceed", phase: "request_body" });
    expect(shared.calls.size).toBe(1);
  });

  test("sends nothing for a client that has left, who is billed nothing", async () => {
    const { shared, answer } = asked();
    const trip = shared.trip().request().closed();
    answer();
    await settled();
    expect(trip.exchange.answers).toHaveLength(1);
    expect([shared.calls.size, shared.log, shared.defects]).toEqual([0, [], []]);
    expect(await shared.bytesInFlight()).toBe(0);
  });
});
