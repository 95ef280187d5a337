/**
 * A proxy between one program and the API server, which records the program's requests, and can
 * answer in the server's place.
 */
import { writeFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";

export interface RecordedRequest {
  readonly method: string;
  /** Path without query. */
  readonly path: string;
}

/** Returns what is answered instead of the server's answer; undefined for the server's. */
export type Answer = (
  request: http.IncomingMessage,
) => { readonly status: number; readonly body?: unknown } | "broken" | undefined;

export class ApiProxy {
  readonly requests: RecordedRequest[] = [];
  /** Instead of the API server. */
  answer: Answer = () => undefined;
  readonly #server: http.Server;
  readonly #agent: https.Agent;

  private constructor(target: URL, agent: https.Agent) {
    this.#agent = agent;
    this.#server = http.createServer((request, response) => {
      const { method = "GET", url = "/" } = request;
      this.requests.push({ method, path: url.split("?")[0] ?? "" });
      const own = this.answer(request);
      if (own === "broken") return void request.socket.destroy();
      if (own !== undefined) {
        response.writeHead(own.status, { "content-type": "application/json" });
        return void response.end(JSON.stringify(own.body ?? {}));
      }
      const sent = https.request(
        {
          agent,
          host: target.hostname,
          port: target.port,
          path: url,
          method,
          headers: request.headers,
        },
        (answer) => {
          response.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(response);
          answer.on("error", () => response.destroy());
        },
      );
      sent.on("error", () => response.destroy());
      response.on("close", () => sent.destroy());
      request.pipe(sent);
    });
  }

  /** @param kubeconfig of the API server, with a client certificate */
  static async start(kubeconfig: string): Promise<ApiProxy> {
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const options: https.RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key } = options;
    const agent = new https.Agent({ keepAlive: true, ca, cert, key });
    const proxy = new ApiProxy(new URL(config.getCurrentCluster()?.server ?? ""), agent);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  /** Requests that change something, but for those of leader election. */
  get writes(): readonly RecordedRequest[] {
    return this.requests.filter(
      ({ method, path: at }) => method !== "GET" && !at.includes("/leases"),
    );
  }

  /** Writes a kubeconfig with which a program calls the API server through the proxy. */
  kubeconfig(folder: string): string {
    const { port } = this.#server.address() as AddressInfo;
    const file = path.join(folder, "proxy.kubeconfig");
    const server = `http://127.0.0.1:${port}`;
    const config = {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "proxy", cluster: { server, "insecure-skip-tls-verify": true } }],
      users: [{ name: "none", user: {} }],
      contexts: [{ name: "proxy", context: { cluster: "proxy", user: "none" } }],
      "current-context": "proxy",
    };
    writeFileSync(file, JSON.stringify(config));
    return file;
  }

  /** Breaks the connections that are open, as a restart of the API server does. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
    this.#agent.destroy();
  }
}
