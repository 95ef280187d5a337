/**
 * Determines the address of a request's client. Any client can write `X-Forwarded-For`, so it is
 * trusted only if the direct peer is a trusted proxy, and then only the entries at its right end,
 * which trusted proxies wrote.
 * https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/X-Forwarded-For#selecting_an_ip_address
 */
import { canonicalAddress, compileCidrs } from "../platform/cidr.ts";

/** Address of a client that cannot be determined; it lies in no CIDR block. */
export const UNKNOWN_ADDRESS = "unknown";

/**
 * @param peer address of the connection's peer
 * @param forwardedFor `X-Forwarded-For`, several headers joined with `,` in their order
 * @returns the address in its canonical form, or {@link UNKNOWN_ADDRESS}
 */
export type ClientAddress = (peer: string | undefined, forwardedFor: string | undefined) => string;

/** Maximum number of hops that are examined; no legitimate chain is longer. */
const MAX_HOPS = 64;

/**
 * @param trustedProxies CIDR blocks
 * @throws if one is not in CIDR notation
 */
export function compileClientAddress(trustedProxies: readonly string[]): ClientAddress {
  const trusted = compileCidrs(trustedProxies);
  return (peer, forwardedFor) => {
    const direct = canonicalAddress(peer ?? "");
    if (direct === undefined) return UNKNOWN_ADDRESS;
    if (trustedProxies.length === 0 || forwardedFor === undefined || !trusted(direct))
      return direct;
    const hops = forwardedFor.split(",");
    if (hops.length > MAX_HOPS) return UNKNOWN_ADDRESS;
    let client = direct;
    // The right-most address that is not a trusted proxy; if all are, the first one.
    for (const hop of hops.toReversed()) {
      const address = canonicalAddress(withoutPort(hop.trim()));
      if (address === undefined) return UNKNOWN_ADDRESS;
      client = address;
      if (!trusted(address)) break;
    }
    return client;
  };
}

/** Some proxies write `192.0.2.1:4711`, `[2001:db8::1]` or `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  const match = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+))(?::\d{1,5})?$/.exec(hop);
  return match?.[1] ?? match?.[2] ?? hop;
}
