/**
 * A `fetch` for plugins' token servers: resolves names with the {@link EndpointResolver}, and
 * verifies certificates against the same bundle as Envoy.
 */
import { readFileSync } from "node:fs";
import net from "node:net";
import { callbackify } from "node:util";
import type { Dispatcher } from "undici";
import type { EndpointResolver } from "./resolver.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface EndpointFetchOptions {
  /** PEM bundle. */
  readonly caFile: string;
  /** Port of HTTPS servers: 443. */
  readonly port: number;
}

interface FoundAddress {
  readonly address: string;
  readonly family: number;
}

export function endpointFetch(
  resolver: EndpointResolver,
  { caFile, port }: EndpointFetchOptions,
): Fetch {
  const lookup: net.LookupFunction = callbackify(
    async (host: string, _options: unknown): Promise<FoundAddress[]> => {
      const addresses = await resolver.addressesOf(host);
      if (addresses.length === 0)
        throw Object.assign(new Error(`DNS has no address for ${host}`), { code: "ENOTFOUND" });
      return addresses.map((address) => ({ address, family: net.isIP(address) }));
    },
  );
  const open = async (): Promise<(url: string, init: RequestInit) => Promise<Response>> => {
    // Loaded on demand: most credentials are fixed secrets, and an HTTP client takes megabytes.
    const { Agent, buildConnector, fetch } = await import("undici");
    // With autoSelectFamily, all addresses are requested.
    const connect = buildConnector({
      ca: readFileSync(caFile, "utf8"),
      autoSelectFamily: true,
      lookup,
    });
    const dispatcher: Dispatcher = new Agent({
      connect: (options, done) =>
        connect({ ...options, port: options.port === "" ? String(port) : options.port }, done),
    });
    // A token server must not redirect.
    return (url, init) => fetch(url, { redirect: "error", ...(init as object), dispatcher });
  };
  let client: ReturnType<typeof open> | undefined;
  return async (url, init) => (await (client ??= open()))(url, init);
}
