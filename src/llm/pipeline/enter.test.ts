/** Requests that do not enter, because too many bytes are on their way. */
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { Gateway, provider } from "../testing.ts";
import { BytesInFlight } from "../../limits/load/bytes-in-flight.ts";

/** A gateway whose requests may hold so many bytes. */
class SmallGateway extends Gateway {
  override readonly bytes: BytesInFlight;

  constructor(total: number, perCaller: number) {
    super(provider("openai"));
    this.bytes = new BytesInFlight({ total, perCaller, registry: new Registry() });
  }
}

describe("a request that announces too many bytes", () => {
  test.each([
    ["for its caller", 10_000, 1_000, "bytes_in_flight_exceeded", 429],
    ["for the gateway", 1_000, 10_000, "overloaded", 503],
  ])("%s is refused, with the time to wait", (_name, total, perCaller, code, status) => {
    const trip = new SmallGateway(total, perCaller).trip();
    trip.requestHeaders({ headers: { "content-length": "1000" } });
    expect(trip.exchange.answers.map(({ kind }) => kind)).not.toContain("respond");
    const second = new SmallGateway(total, perCaller).trip();
    second.requestHeaders({ headers: { "content-length": "1001" } });
    const { status: told, headers, body } = second.exchange.responded;
    expect(told).toBe(status);
    expect(body).toContain(code);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  });
});
