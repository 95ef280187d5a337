/**
 * Names that the agent may look up: the bound hosts, by the function that also routes requests, so
 * that DNS and routing never disagree; and further names that the sidecar's options list, such as
 * the gateway's and services in the cluster.
 */
import * as z from "zod";
import type { BindingSnapshot } from "../binding.ts";
import type { TimeSource } from "../../platform/clock.ts";
import { isHostName } from "../request.ts";
import { MOST_ADDRESSES, TTL_SECONDS } from "./message.ts";

/** A further name, by itself: a pattern would let the agent send text to the name's servers. */
export const dnsNameSchema = z.strictObject({
  name: z
    .string()
    .refine(isHostName, "must be a host name in lower case, without a trailing dot or pattern"),
  /** undefined: what the sidecar's own DNS servers answer for the name. */
  addresses: z
    .array(z.union([z.ipv4(), z.ipv6()]))
    .min(1)
    .max(MOST_ADDRESSES)
    .optional(),
});

export type DnsName = z.infer<typeof dnsNameSchema>;

export type NameFinding =
  /** A bound host: `address` is the sidecar's. */
  | { readonly kind: "bound"; readonly addresses: readonly string[] }
  /** A listed name. */
  | { readonly kind: "listed"; readonly addresses: readonly string[] }
  /** A listed name of which the sidecar's DNS servers have no address now. */
  | { readonly kind: "unavailable" }
  | { readonly kind: "unknown" };

export type FindName = (name: string) => NameFinding | Promise<NameFinding>;

export interface DnsNamesOptions {
  /** The policy in force. */
  readonly snapshot: () => BindingSnapshot;
  readonly names: readonly DnsName[];
  /** Returns all addresses that the sidecar's own DNS servers have; empty if there are none. */
  readonly lookUp: (name: string) => Promise<readonly string[]>;
  readonly clock: TimeSource;
}

/** Address at which the agent reaches the sidecar, as in its hosts file. */
export const SIDECAR_ADDRESS = "127.0.0.1";

/** @returns a function from a name as in a query, in any case and without the trailing dot */
export function compileDnsNames(options: DnsNamesOptions): FindName {
  const { snapshot, names } = options;
  const listed = new Map(names.map(({ name, addresses }) => [name, addresses]));
  const fetched = fetching(options);
  return (text) => {
    // Only ASCII letters are folded: the Kelvin sign is not a k.
    const name = text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
    if (!isHostName(name)) return { kind: "unknown" };
    if (snapshot().bindingsOf(name).length > 0)
      return { kind: "bound", addresses: [SIDECAR_ADDRESS] };
    if (!listed.has(name)) return { kind: "unknown" };
    const addresses = listed.get(name);
    return addresses === undefined ? fetched(name) : { kind: "listed", addresses };
  };
}

/**
 * Looks listed names up. What was found, and that nothing was, is kept as long as clients keep it:
 * the sidecar's DNS servers are not asked as often as the agent asks.
 */
function fetching({ lookUp, clock }: DnsNamesOptions): (name: string) => Promise<NameFinding> {
  const known = new Map<string, { readonly until: number; readonly found: Promise<NameFinding> }>();
  const fetch = async (name: string): Promise<NameFinding> => {
    const addresses = await lookUp(name);
    return addresses.length === 0
      ? { kind: "unavailable" }
      : { kind: "listed", addresses: addresses.slice(0, MOST_ADDRESSES) };
  };
  return (name) => {
    const now = clock.monotonic();
    const last = known.get(name);
    if (last !== undefined && now < last.until) return last.found;
    const found = fetch(name);
    known.set(name, { until: now + TTL_SECONDS * 1_000, found });
    return found;
  };
}
