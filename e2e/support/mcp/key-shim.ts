/**
 * Adds an access key to every request, for clients that can send none of their own, such as the
 * conformance suite. Everything else passes as it is.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";

export interface KeyShim {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** @param target URL to which `/mcp` leads */
export async function startKeyShim(target: string, key: string): Promise<KeyShim> {
  const { hostname, port, pathname } = new URL(target);
  const server = http.createServer((request, response) => {
    const headers = [...request.rawHeaders, "authorization", `Bearer ${key}`];
    const upstream = http.request(
      {
        hostname,
        port,
        path: request.url === "/mcp" ? pathname : (request.url ?? "/"),
        method: request.method ?? "GET",
        headers: headers as unknown as http.OutgoingHttpHeaders,
        setHost: false,
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
        response.flushHeaders();
        answer.pipe(response);
        answer.on("error", () => response.destroy());
      },
    );
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    // The suite tests the protection from DNS rebinding for servers at localhost.
    url: `http://localhost:${(server.address() as AddressInfo).port}/mcp`,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
