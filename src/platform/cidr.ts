/**
 * IP addresses and CIDR blocks. An IPv4 address written as an IPv6 one (`::ffff:192.0.2.1`, RFC
 * 4291 section 2.5.5.2) is the same address; a zone (`fe80::1%eth0`) is ignored.
 */
import net from "node:net";
import ipaddr from "ipaddr.js";

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/**
 * Returns undefined for anything that is not exactly one address. The library would also accept
 * `127.1`, `0x7f.1` and octal octets.
 */
function parseAddress(text: string): Address | undefined {
  const zone = text.indexOf("%");
  const bare = zone < 0 ? text : text.slice(0, zone);
  const family = net.isIP(bare);
  if (family === 0) return undefined;
  return ipaddr.process(family === 6 ? withoutDottedTail(bare) : bare);
}

/**
 * Rewrites `::10.1.2.3` as `::a01:203`, because the library mistakes the first for the IPv4-mapped
 * `::ffff:10.1.2.3`.
 */
function withoutDottedTail(address: string): string {
  return address.replace(
    /(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/,
    (_text, a: string, b: string, c: string, d: string) => {
      const group = (high: string, low: string): string =>
        (Number(high) * 256 + Number(low)).toString(16);
      return `${group(a, b)}:${group(c, d)}`;
    },
  );
}

/**
 * Returns the canonical form of an address: lower-case, shortest, and IPv4 if possible. Returns
 * undefined if `text` is not an address.
 */
export function canonicalAddress(text: string): string | undefined {
  return parseAddress(text)?.toString();
}

/**
 * @returns whether an address lies in one of the blocks; false for text that is not an address
 * @throws if a block is not in CIDR notation
 */
export function compileCidrs(blocks: readonly string[]): (address: string) => boolean {
  const ranges = blocks.map(parseBlock);
  return (text) => {
    const address = parseAddress(text);
    if (address === undefined) return false;
    return ranges.some(
      ([base, bits]) => base.kind() === address.kind() && address.match(base, bits),
    );
  };
}

/** An IPv4 block written as IPv6 (`::ffff:10.0.0.0/104`) is treated as an IPv4 block. */
function parseBlock(block: string): [Address, number] {
  const slash = block.lastIndexOf("/");
  const text = block.slice(0, slash);
  const bits = Number(block.slice(slash + 1));
  const family = net.isIP(text);
  const wellFormed =
    slash > 0 &&
    /^\d{1,3}$/.test(block.slice(slash + 1)) &&
    family !== 0 &&
    bits <= (family === 4 ? 32 : 128);
  if (!wellFormed) throw new Error(`not a CIDR block: ${block}`);
  const base = ipaddr.parse(family === 6 ? withoutDottedTail(text) : text);
  if (base instanceof ipaddr.IPv6 && base.isIPv4MappedAddress() && bits >= 96)
    return [base.toIPv4Address(), bits - 96];
  return [base, bits];
}
