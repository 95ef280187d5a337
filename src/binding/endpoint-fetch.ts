/**
 * HTTPS requests of plugins to token servers: resolves names with the {@link EndpointResolver}, and
 * verifies certificates against the same bundle as Envoy. By `node:https` and not by `fetch`, whose
 * implementation takes 11 MiB.
 */
import { readFileSync } from "node:fs";
import https from "node:https";
import type http from "node:http";
import net from "node:net";
import { callbackify } from "node:util";
import type { TokenFetch, TokenRequest, TokenResponse } from "../providers/contract.ts";
import type { EndpointResolver } from "./resolver.ts";

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

/** Larger than every answer of a token server. */
const MAX_BODY_BYTES = 1024 * 1024;

export function endpointFetch(
  resolver: EndpointResolver,
  { caFile, port }: EndpointFetchOptions,
): TokenFetch {
  const lookup: net.LookupFunction = callbackify(
    async (host: string, _options: unknown): Promise<FoundAddress[]> => {
      const addresses = await resolver.addressesOf(host);
      if (addresses.length === 0)
        throw Object.assign(new Error(`DNS has no address for ${host}`), { code: "ENOTFOUND" });
      return addresses.map((address) => ({ address, family: net.isIP(address) }));
    },
  );
  return async (url, request) => {
    const target = new URL(url);
    if (target.protocol !== "https:") throw new Error("a token server is asked over HTTPS only");
    const response = await answerOf(
      {
        host: target.hostname,
        servername: target.hostname,
        port: target.port === "" ? port : Number(target.port),
        path: `${target.pathname}${target.search}`,
        // A token is renewed every hour or so: its connection is not kept. The roots take memory
        // only while a request runs.
        agent: false,
        ca: readFileSync(caFile),
        // With autoSelectFamily, all addresses are requested.
        autoSelectFamily: true,
        lookup,
      },
      { ...request, headers: { host: target.host, ...request.headers } },
    );
    const { statusCode: status = 0 } = response;
    if (status >= 300 && status < 400) {
      response.destroy();
      throw new Error("the token server answered with a redirect");
    }
    return wholeResponse(status, response.headers, await bodyOf(response));
  };
}

/** With an option of connections that the types lack. */
type Target = https.RequestOptions & Pick<net.TcpNetConnectOpts, "autoSelectFamily">;

function answerOf(
  target: Target,
  { method, headers, body, signal }: TokenRequest,
): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = https.request(
      { ...target, method, headers: headers ?? {}, ...(signal && { signal }) },
      resolve,
    );
    sent.once("error", reject);
    sent.end(body);
  });
}

async function bodyOf(response: http.IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > MAX_BODY_BYTES)
      throw new Error(`the token server's answer is larger than ${MAX_BODY_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function wholeResponse(
  status: number,
  headers: http.IncomingHttpHeaders,
  body: Buffer,
): TokenResponse {
  return {
    ok: status >= 200 && status < 300,
    status,
    headers: {
      get: (name) => {
        const value = headers[name.toLowerCase()];
        return value === undefined ? null : String(value);
      },
    },
    text: () => Promise.resolve(body.toString("utf8")),
    bytes: () => Promise.resolve(Uint8Array.from(body)),
  };
}
