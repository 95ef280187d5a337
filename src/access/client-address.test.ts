import { describe, expect, test } from "vitest";
import { compileClientAddress, UNKNOWN_ADDRESS } from "./client-address.ts";

const behindProxies = compileClientAddress(["10.0.0.0/8", "2001:db8:1::/48"]);
const alone = compileClientAddress([]);

test("without trusted proxies the header says nothing", () => {
  expect(alone("198.51.100.1", "10.1.1.1")).toBe("198.51.100.1");
  expect(alone("::ffff:198.51.100.1", undefined)).toBe("198.51.100.1");
});

describe("behind trusted proxies", () => {
  test.each<[string, string, string | undefined, string]>([
    ["the peer is nobody's proxy: spoofed", "198.51.100.1", "10.1.1.1", "198.51.100.1"],
    ["no header: the proxy itself", "10.0.0.1", undefined, "10.0.0.1"],
    ["one hop", "10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["what the client wrote stands left", "10.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"],
    ["through two proxies", "10.0.0.1", "203.0.113.9, 198.51.100.1, 10.0.0.2", "198.51.100.1"],
    ["the client wrote a trusted address", "10.0.0.1", "10.9.9.9, 198.51.100.1", "198.51.100.1"],
    ["all are proxies: the first", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["IPv6 proxies and client", "2001:DB8:1::5", "2001:db8:9:0::1", "2001:db8:9::1"],
    ["an IPv4-mapped proxy", "::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["an IPv4-mapped client", "10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"],
    ["an IPv4-mapped trusted hop", "10.0.0.1", "198.51.100.1, ::ffff:10.0.0.2", "198.51.100.1"],
    ["with ports", "10.0.0.1", "198.51.100.1:4711, [2001:db8:1::7]:80", "198.51.100.1"],
    ["an IPv6 client with a port", "10.0.0.1", "[2001:db8:9::1]:4711", "2001:db8:9::1"],
    ["two headers, joined", "10.0.0.1", "203.0.113.9,198.51.100.1", "198.51.100.1"],
  ])("%s", (_name, peer, header, expected) => {
    expect(behindProxies(peer, header)).toBe(expected);
  });

  test.each<[string, string]>([
    ["empty", ""],
    ["an empty item", "198.51.100.1,"],
    ["words", "unknown"],
    ["a word behind the client", "198.51.100.1, for=10.0.0.2"],
    ["an address in octal", "010.0.0.1"],
    ["a short address", "10.1"],
    ["quotes", '"198.51.100.1"'],
    ["a port too many", "198.51.100.1:1:2"],
    ["control bytes", "198.51.100.1\u0000"],
    ["a very long list", Array.from({ length: 100 }, () => "10.0.0.1").join(",")],
  ])("cannot be told, so no block holds it: %s", (_name, header) => {
    expect(behindProxies("10.0.0.1", header)).toBe(UNKNOWN_ADDRESS);
  });

  test("a list of 64 hops is read, and one more is not", () => {
    const hops = (count: number): string =>
      ["198.51.100.1", ...Array.from({ length: count - 1 }, () => "10.0.0.2")].join();
    expect(behindProxies("10.0.0.1", hops(64))).toBe("198.51.100.1");
    expect(behindProxies("10.0.0.1", hops(65))).toBe(UNKNOWN_ADDRESS);
  });

  test("what stands left of the client is not even read", () => {
    expect(behindProxies("10.0.0.1", "<garbage>, 198.51.100.1")).toBe("198.51.100.1");
  });
});

test("no peer, no address", () => {
  expect(behindProxies(undefined, "198.51.100.1")).toBe(UNKNOWN_ADDRESS);
  expect(alone("not an address", undefined)).toBe(UNKNOWN_ADDRESS);
});

test("a block that is none is refused at once", () => {
  expect(() => compileClientAddress(["10.0.0.1"])).toThrow(/not a CIDR block/);
});
