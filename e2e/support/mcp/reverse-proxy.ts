/** Forwards requests of the outside to a local HTTP server, streams in both directions. */
import http from "node:http";
import type http2 from "node:http2";

/** A request as it arrived, without its body. */
export interface Forwarded {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
}

export function reverseProxy(
  port: (host: string) => number,
  arrived: Forwarded[],
): (request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => void {
  return (request, response) => {
    const { method, url, headers } = request;
    const host = headers[":authority"] ?? headers.host ?? "";
    arrived.push({ method, url, headers });
    const sent = Object.fromEntries(
      Object.entries(headers).filter(([name]) => !name.startsWith(":") && name !== "host"),
    );
    const upstream = http.request(
      { host: "127.0.0.1", port: port(host), method, path: url, headers: sent },
      (answer) => {
        const kept = Object.entries(answer.headers).filter(
          ([name]) => !["connection", "keep-alive", "transfer-encoding"].includes(name),
        );
        response.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept));
        answer.pipe(response);
        answer.once("error", () => response.destroy());
      },
    );
    upstream.once("error", () => response.destroy());
    response.once("close", () => upstream.destroy());
    request.pipe(upstream);
  };
}
