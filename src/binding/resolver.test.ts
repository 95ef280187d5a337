/** Addresses of endpoints, from a real DNS server. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import { EndpointResolver } from "./resolver.ts";
import { DnsServer } from "./testing-dns.ts";

const HOST = "api.service.example";

let clock: FakeClock;
let dns: DnsServer;
let resolver: EndpointResolver;

beforeEach(async () => {
  clock = new FakeClock();
  dns = new DnsServer();
  resolver = new EndpointResolver({ clock, servers: [await dns.listen()], port: 443 });
});
afterEach(() => dns.close());

/** Sets the IPv4 addresses of the host. */
function set(ttl: number, ...addresses: readonly string[]): void {
  const records = addresses.map((address) => ({ address, ttl }));
  dns.records.set(`A ${HOST}`, records);
}

describe("an address", () => {
  test("is that of DNS, with the endpoints' port", async () => {
    set(60, "192.0.2.1");
    expect(await resolver.resolve(HOST)).toBe("192.0.2.1:443");
    expect(dns.asked).toEqual([`A ${HOST}`]);
  });

  test("is an IPv6 address if there is no other", async () => {
    dns.records.set(`AAAA ${HOST}`, [{ address: "2001:db8::1", ttl: 60 }]);
    expect(await resolver.resolve(HOST)).toBe("[2001:db8::1]:443");
    expect(dns.asked).toEqual([`A ${HOST}`, `AAAA ${HOST}`]);
  });

  test("is not an IPv6 address if there is another", async () => {
    set(60, "192.0.2.1");
    dns.records.set(`AAAA ${HOST}`, [{ address: "2001:db8::1", ttl: 60 }]);
    expect(await resolver.addressesOf(HOST)).toEqual(["192.0.2.1"]);
  });

  test("is each of several in turn", async () => {
    set(60, "192.0.2.1", "192.0.2.2");
    const turns = [await resolver.resolve(HOST), await resolver.resolve(HOST)];
    expect(new Set(turns)).toEqual(new Set(["192.0.2.1:443", "192.0.2.2:443"]));
    expect(await resolver.resolve(HOST)).toBe(turns[0]);
  });

  test("is none if DNS has none", async () => {
    expect(await resolver.resolve(HOST)).toBeUndefined();
    expect(await resolver.addressesOf(HOST)).toEqual([]);
  });

  test("is not that of the hosts file, nor of another host", async () => {
    set(60, "192.0.2.1");
    expect(await resolver.resolve("localhost")).toBeUndefined();
    expect(await resolver.resolve(`x.${HOST}`)).toBeUndefined();
  });
});

describe("an answer", () => {
  async function known(ttl: number): Promise<void> {
    set(ttl, "192.0.2.1");
    await resolver.resolve(HOST);
    set(ttl, "192.0.2.2");
  }

  test.each([
    ["for its TTL", 60, 60_000],
    ["for 5 seconds at least", 0, 5_000],
    ["for 5 minutes at most", 3_600, 300_000],
  ])("is used %s", async (_name, ttl, ms) => {
    await known(ttl);
    clock.advance(ms - 1);
    expect(await resolver.resolve(HOST)).toBe("192.0.2.1:443");
    clock.advance(1);
    expect(await resolver.resolve(HOST)).toBe("192.0.2.2:443");
  });

  test("is used for the shortest TTL of its records", async () => {
    dns.records.set(`A ${HOST}`, [
      { address: "192.0.2.1", ttl: 60 },
      { address: "192.0.2.2", ttl: 20 },
      { address: "192.0.2.3", ttl: 90 },
    ]);
    await resolver.resolve(HOST);
    set(60, "192.0.2.4");
    clock.advance(20_000);
    expect(await resolver.addressesOf(HOST)).toEqual(["192.0.2.4"]);
  });

  test("that is old is used for an hour while DNS has none", async () => {
    await known(60);
    dns.records.clear();
    clock.advance(60_000 + 3_600_000 - 1);
    expect(await resolver.resolve(HOST)).toBe("192.0.2.1:443");
    clock.advance(1);
    expect(await resolver.resolve(HOST)).toBeUndefined();
  });

  test("is shared by requests that wait for it", async () => {
    set(60, "192.0.2.1");
    const waiting = [resolver.resolve(HOST), resolver.resolve(HOST), resolver.resolve(HOST)];
    expect(await Promise.all(waiting)).toEqual(Array(3).fill("192.0.2.1:443"));
    expect(dns.asked).toHaveLength(1);
  });

  test("of none is asked for again", async () => {
    await resolver.resolve(HOST);
    set(60, "192.0.2.1");
    expect(await resolver.resolve(HOST)).toBe("192.0.2.1:443");
  });
});

test("without servers of its own, a resolver uses those of the system", () => {
  const system = new EndpointResolver({ clock, servers: undefined, port: 443 });
  expect(system).toBeInstanceOf(EndpointResolver);
});
