/** HTTP over a Unix socket, for our own control APIs and Envoy's admin interface. */
import http from "node:http";

export interface UnixResponse {
  readonly status: number;
  readonly body: string;
}

export interface UnixRequestOptions {
  /** Body, sent as JSON. */
  readonly body?: unknown;
  /** Longest silence of the server, in milliseconds. @defaultValue 5000 */
  readonly timeoutMs?: number;
}

/**
 * @throws an error with the `code` of the failed connection (ENOENT, ECONNREFUSED, EACCES), or
 * without one
 */
export function unixRequest(
  socketPath: string,
  path: string,
  method = "GET",
  options: UnixRequestOptions = {},
): Promise<UnixResponse> {
  const body = options.body === undefined ? undefined : JSON.stringify(options.body);
  const headers =
    body === undefined
      ? {}
      : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const request = http.request(
      { socketPath, path, method, headers, timeout: options.timeoutMs ?? 5_000 },
      (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(parts).toString("utf8"),
          }),
        );
        response.on("error", reject);
      },
    );
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", reject);
    request.end(body);
  });
}
