/** The local control API on a Unix socket that only this user can open: what the command line talks to. */
import http from "node:http";
import type { GatewayStatus } from "./status.ts";

export interface ControlOptions {
  readonly status: () => GatewayStatus;
  readonly tokenOf: (namespace: string, name: string) => string;
}

export function createControl(options: ControlOptions): http.Server {
  return http.createServer((request, response) => {
    const path = (request.url ?? "/").split("?")[0] as string;
    const json = (status: number, body: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.method !== "GET") return json(405, { error: "method not allowed" });
    if (path === "/status") return json(200, options.status());
    const agent = /^\/agents\/([^/]+)\/([^/]+)\/token$/.exec(path);
    if (agent !== null) {
      const [, namespace, name] = agent as unknown as [string, string, string];
      const known = options
        .status()
        .objects.some((object) => object.kind === "Agent" && object.namespace === namespace && object.name === name);
      if (!known) return json(404, { error: `no Agent ${name} in namespace ${namespace}` });
      return json(200, { token: options.tokenOf(namespace, name) });
    }
    json(404, { error: "not found" });
  });
}
