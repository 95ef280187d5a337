/** `fetch` for plugins' token servers: names by the {@link EndpointResolver}, certificates against the same bundle as Envoy's. */
import { readFileSync } from "node:fs";
import net from "node:net";
import { Agent, fetch as undiciFetch, type RequestInit as UndiciRequestInit } from "undici";
import type { EndpointResolver } from "./resolver.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** @param caFile PEM bundle */
export function endpointFetch(resolver: EndpointResolver, caFile: string): Fetch {
  const dispatcher = new Agent({
    connect: {
      ca: readFileSync(caFile, "utf8"),
      lookup: (host, options, done) => {
        resolver.addressesOf(host).then(
          (addresses) => {
            const found = addresses.map((address) => ({ address, family: net.isIP(address) }));
            const [first] = found;
            if (first === undefined) done(Object.assign(new Error("DNS has no address of it"), { code: "ENOTFOUND" }), []);
            else if (options.all === true) done(null, found);
            else done(null, first.address, first.family);
          },
          (error: unknown) => done(error as Error, []),
        );
      },
    },
  });
  // A token server that redirects is none.
  return async (url, init) => (await undiciFetch(url, { redirect: "error", ...(init as unknown as UndiciRequestInit), dispatcher })) as unknown as Response;
}
