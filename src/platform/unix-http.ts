/** HTTP over a Unix socket, for our own control APIs and Envoy's admin interface. */
import http from "node:http";

export interface UnixResponse {
  readonly status: number;
  readonly body: string;
}

export function unixRequest(socketPath: string, path: string, method = "GET"): Promise<UnixResponse> {
  return new Promise((resolve, reject) => {
    const request = http.request({ socketPath, path, method, timeout: 5_000 }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString("utf8") }));
      response.on("error", reject);
    });
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("error", reject);
    request.end();
  });
}
