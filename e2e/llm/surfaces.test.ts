/**
 * A surface with its own processor beside those of the gateway, through the real Envoy: over xDS,
 * with the shipped bootstrap.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import * as grpc from "@grpc/grpc-js";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { compileEnvoy } from "../../src/envoy/config/resources.ts";
import {
  CallerListener,
  type ProcessorEndpoint,
  type Surface,
} from "../../src/envoy/config/surface.ts";
import { type Exchange, type Processor, serveExtProc } from "../../src/envoy/ext-proc/server.ts";
import type { StreamServer } from "../../src/envoy/grpc/serve.ts";
import { ProtoRegistry } from "../../src/envoy/protobuf/registry.ts";
import { AdsServer } from "../../src/envoy/xds/ads.ts";
import { SnapshotEncoder } from "../../src/envoy/xds/snapshot.ts";
import { API_SERVICE } from "../../src/gateway/api-surface.ts";
import { gatewaySurfaces } from "../../src/gateway/surfaces.ts";
import { ATTEMPT_PROCESSOR, LLM_PROCESSOR } from "../../src/llm/surface.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { EMPTY_SNAPSHOT } from "../../src/policy/snapshot.ts";
import { writeBootstrap } from "../../src/up/bootstrap.ts";
import { ROOT } from "../support/build.ts";
import { freePort } from "../support/stack.ts";
import { until } from "../support/wait.ts";

const ECHO_PROCESSOR: ProcessorEndpoint = {
  name: "echo",
  socket: "echo.sock",
  headers: [{ exact: ":path" }, { exact: "x-echo" }],
  mode: { requestHeaderMode: "SEND", requestBodyMode: "NONE", responseHeaderMode: "SKIP" },
  changesMode: false,
  messageTimeoutMs: 1_000,
  seesRequestsWithoutRoute: false,
};

/** Its processor changes a request, which then goes to an HTTP server. */
const ECHO_SURFACE: Surface = {
  name: "echo",
  listeners: [CallerListener.internal],
  paths: [
    { kind: "exact", path: "/echo" },
    { kind: "template", regex: "/echo/[a-z]+/items" },
  ],
  methods: ["GET", "POST"],
  destination: { kind: "service", service: API_SERVICE, processor: ECHO_PROCESSOR },
  bodyLimitBytes: undefined,
  timeouts: { answerMs: 5_000, idleMs: undefined },
};

const REQUEST_HEADERS = { "x-echo": "1", "x-api-key": "k", "x-other": "1", "x-svc-echo": "forged" };

/** Messages to each processor, in order: the phase and the names of its headers. */
const seen: { processor: string; phase: string; headers: readonly string[] }[] = [];
const closing: (() => unknown)[] = [];
let port: number;
let echo: StreamServer;

beforeAll(async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-surfaces-"));
  closing.push(() => rmSync(dir, { recursive: true, force: true }));
  port = await freePort();
  const protos = ProtoRegistry.load(path.join(ROOT, "src/gen/envoy.binpb"));
  const refused: unknown[] = [];
  const ads = new AdsServer({ registry: protos, onNack: (...nack) => void refused.push(nack) });
  const control = new grpc.Server();
  ads.register(control);
  await new Promise<void>((resolve, reject) => {
    control.bindAsync(
      `unix:${path.join(dir, "control.sock")}`,
      grpc.ServerCredentials.createInsecure(),
      (error) => (error === null ? resolve() : reject(error)),
    );
  });
  closing.push(() => control.forceShutdown());
  ads.setSnapshot(
    new SnapshotEncoder(protos).encode(
      compileEnvoy(EMPTY_SNAPSHOT, {
        surfaces: [...gatewaySurfaces({ uploadIdleMs: 15_000 }), ECHO_SURFACE],
        attempts: ATTEMPT_PROCESSOR,
        gateway: { address: "127.0.0.1", port },
        external: undefined,
        runDir: dir,
        caFile: "/etc/ssl/certs/ca-certificates.crt",
      }),
    ),
  );
  const llm = await serve(dir, LLM_PROCESSOR, (exchange) =>
    exchange.respond({ status: 200, body: "llm" }),
  );
  closing.push(() => llm.close());
  echo = await serve(dir, ECHO_PROCESSOR, (exchange) =>
    exchange.proceed("request_headers", { headers: { set: [["x-svc-echo", "processed"]] } }),
  );
  const api = http.createServer((request, response) => {
    const how = String(request.headers["x-svc-echo"] ?? "not processed");
    response.end(`api ${request.url} ${how}`);
  });
  api.listen(path.join(dir, API_SERVICE.socket));
  closing.push(
    () => api.close(),
    () => api.closeAllConnections(),
  );

  const envoy = startEnvoy(
    writeBootstrap(path.join(ROOT, "envoy/bootstrap.yaml"), {
      runDir: dir,
      nodeId: "surfaces",
      maxHeapBytes: 1_073_741_824,
    }),
  );
  closing.push(() => envoy.kill());
  await until(async () => (await ask("/healthz").catch(() => undefined))?.status === 200, {
    what: "Envoy",
  });
  expect(refused).toEqual([]);
});

afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

beforeEach(() => {
  seen.length = 0;
});

function startEnvoy(bootstrap: string): ChildProcess {
  return spawn(
    process.env["ENVOY_PATH"] ?? path.join(ROOT, ".venv/bin/envoy"),
    ["--config-path", bootstrap, "--disable-hot-restart", "--concurrency", "1"].concat([
      "--log-level",
      "error",
    ]),
    { stdio: "inherit" },
  );
}

function serve(
  dir: string,
  { name, socket }: ProcessorEndpoint,
  onRequest: (exchange: Exchange) => void,
): Promise<StreamServer> {
  return serveExtProc({
    path: path.join(dir, socket),
    maxMessageBytes: 1_048_576,
    clock: systemClock,
    onDefect: (error) => {
      throw error;
    },
    createProcessor: (exchange): Processor => ({
      phase: (phase) => {
        const headers = "headers" in phase ? [...phase.headers.keys()] : [];
        seen.push({ processor: name, phase: phase.kind, headers });
        if (phase.kind === "request_headers") onRequest(exchange);
        else exchange.pass(phase.kind);
      },
      closed: () => undefined,
    }),
  });
}

async function ask(url: string, method = "GET"): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.request({
      port,
      path: url,
      method,
      headers: REQUEST_HEADERS,
      agent: false,
    });
    request.once("error", reject);
    request.once("response", (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    request.end();
  });
}

test.each(["/echo", "/echo/abc/items"])("%s: its own processor, with its headers", async (url) => {
  expect(await ask(url, "POST")).toEqual({ status: 200, body: `api ${url} processed` });
  expect(seen).toEqual([
    { processor: "echo", phase: "request_headers", headers: [":path", "x-echo"] },
  ]);
});

test("the paths of the LLM gateway: the LLM processor alone, with its headers", async () => {
  expect(await ask("/v1/messages", "POST")).toEqual({ status: 200, body: "llm" });
  expect(seen.map(({ processor, phase }) => [processor, phase])).toEqual([
    ["llm", "request_headers"],
  ]);
  expect(seen[0]?.headers).toContain("x-api-key");
  expect(seen[0]?.headers).not.toContain("x-echo");
});

test.each([
  ["/echo/", "GET"],
  ["/echo/ABC/items", "GET"],
  ["/echo/abc/items/x", "GET"],
  ["/x/echo", "GET"],
  ["/echo", "PUT"],
  ["/v1/messages", "GET"],
])("%s with %s: no processor", async (url, method) => {
  expect(await ask(url, method)).toEqual({ status: 200, body: `api ${url} not processed` });
  expect(seen).toEqual([]);
});

test("Envoy's answer to a request without a route: the LLM processor alone", async () => {
  const socket = net.connect(port, "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nconnection: close\r\n\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
  expect(seen.map(({ processor, phase }) => [processor, phase])).toEqual([
    ["llm", "response_headers"],
  ]);
});

test("a processor that is gone: its surface fails closed, and the others work", async () => {
  await echo.close();
  expect((await ask("/echo")).status).toBe(500);
  expect((await ask("/v1/messages", "POST")).body).toBe("llm");
  expect((await ask("/other")).body).toBe("api /other not processed");
});
