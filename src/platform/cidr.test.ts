import { describe, expect, test } from "vitest";
import { canonicalAddress, compileCidrs } from "./cidr.ts";

describe("compileCidrs", () => {
  const inside = compileCidrs([
    "10.0.0.0/8",
    "192.0.2.7/32",
    "2001:db8::/32",
    "::ffff:198.51.100.0/120",
  ]);

  test.each([
    "10.0.0.0",
    "10.255.255.255",
    "192.0.2.7",
    "::ffff:10.1.2.3",
    "::FFFF:0a01:0203",
    "2001:DB8::1",
    "2001:db8:0:0::1%eth0",
    "198.51.100.9",
  ])("inside: %s", (address) => {
    expect(inside(address)).toBe(true);
  });

  test.each([
    "11.0.0.0",
    "192.0.2.8",
    "2001:db9::1",
    "::10.1.2.3",
    "64:ff9b::10.1.2.3",
    // These texts are not addresses, although other parsers may accept some of them.
    "",
    "10",
    "10.1",
    "0x0a.0.0.1",
    "012.0.0.1",
    "10.0.0.1 ",
    " 10.0.0.1",
    "10.0.0.1:443",
    "[2001:db8::1]",
    "10.0.0.0/8",
    "10.0.0.1\0",
    "10.0.0.256",
    "localhost",
  ])("outside: %j", (address) => {
    expect(inside(address)).toBe(false);
  });

  test("an IPv4 block says nothing of IPv6, and everything of a family is a block too", () => {
    expect(compileCidrs(["0.0.0.0/0"])("2001:db8::1")).toBe(false);
    expect(compileCidrs(["0.0.0.0/0"])("::ffff:8.8.8.8")).toBe(true);
    expect(compileCidrs(["::/0"])("2001:db8::1")).toBe(true);
    expect(compileCidrs(["::/0"])("8.8.8.8")).toBe(false);
    expect(compileCidrs([])("8.8.8.8")).toBe(false);
  });

  test.each([
    "10.0.0.0",
    "10.0.0.0/33",
    "10.0.0/8",
    "10.0.0.0/",
    "10.0.0.0/-1",
    "/8",
    "x/8",
    "2001:db8::/129",
  ])("no block: %s", (block) => {
    expect(() => compileCidrs([block])).toThrow(/not a CIDR block/);
  });
});

test("one way to write an address", () => {
  expect(canonicalAddress("2001:DB8:0:0:0:0:0:1")).toBe("2001:db8::1");
  expect(canonicalAddress("::ffff:192.0.2.1")).toBe("192.0.2.1");
  expect(canonicalAddress("192.0.2.01")).toBeUndefined();
});
