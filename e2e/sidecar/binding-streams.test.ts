/**
 * Bytes through the binding proxy: large transfers, endless ones, upgrades; and changes under load.
 */
import { createHash, randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import type http2 from "node:http2";
import https from "node:https";
import type net from "node:net";
import path from "node:path";
import tls from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { rssMiB } from "../support/stack.ts";
import { Gate, until } from "../support/wait.ts";

const MIB = 1024 * 1024;
/** In each direction; the proxy buffers none of it. */
const LARGE_MIB = Number(process.env["SVC_E2E_LARGE_MIB"] ?? 1024);

/**
 * Duration of the silence: ten minutes in manual runs. Envoy is configured without a limit for
 * silent streams (the golden file).
 */
const IDLE_MS = Number(process.env["SVC_E2E_IDLE_MS"] ?? 0);

const GITHUB = {
  name: "github",
  type: "github",
  auth: { type: "token", env: { token: "SVC_SECRET_GITHUB_TOKEN" } },
  config: {},
  policy: { deny: [], httpRules: [] },
  scope: {},
  audit: { enforcement: "enforce", logRequests: false },
};

let outside: Outside;
let sidecar: Sidecar;

beforeAll(async () => {
  outside = await Outside.start([
    "api.github.com",
    "github.com",
    "uploads.github.com",
    "codeload.github.com",
    "raw.githubusercontent.com",
  ]);
  sidecar = await Sidecar.start({
    outside,
    bindings: [GITHUB],
    secrets: { SVC_SECRET_GITHUB_TOKEN: "ghp_x" },
  });
});

afterAll(async () => {
  await sidecar?.stop();
  await outside?.close();
});

beforeEach(() => {
  outside.streaming = undefined;
});

const agent = (): https.Agent =>
  new https.Agent({ ca: sidecar.bundle, keepAlive: true, maxSockets: 16 });

interface Asked {
  readonly host?: string;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: https.Agent;
}

function request(options: Asked): ReturnType<typeof https.request> {
  const host = options.host ?? "api.github.com";
  return https.request({
    ca: sidecar.bundle,
    agent: false,
    ...options,
    host: "127.0.0.1",
    port: sidecar.httpsPort,
    servername: host,
    headers: { host, ...options.headers },
  });
}

async function statusOf(sent: ReturnType<typeof https.request>): Promise<number> {
  return new Promise((resolve, reject) => {
    sent.on("response", (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode ?? 0));
      response.on("error", reject);
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** Peak of both processes together since now, MiB. */
function watchMemory(): () => number {
  const { service, envoy } = sidecar.pids;
  const now = (): number => rssMiB(service) + rssMiB(envoy);
  let peak = now();
  const timer = setInterval(() => (peak = Math.max(peak, now())), 20);
  return () => {
    clearInterval(timer);
    return Math.max(peak, now());
  };
}

test(
  `${LARGE_MIB} MiB up and down arrive as they are, and are never held`,
  { timeout: 240_000 },
  async () => {
    const chunk = randomBytes(MIB);
    const hashes: Record<string, string> = {};
    outside.streaming = (incoming, response) => {
      const hash = createHash("sha256");
      incoming.on("data", (part: Buffer) => hash.update(part));
      incoming.on("end", () => {
        hashes["up"] = hash.digest("hex");
        response.writeHead(200);
        let left = incoming.method === "POST" ? 0 : LARGE_MIB;
        const write = (): void => {
          while (left > 0) {
            left -= 1;
            if (!response.write(chunk)) {
              response.once("drain", write);
              return;
            }
          }
          response.end();
        };
        write();
      });
    };
    // A small run first, so that both processes have allocated their basic memory.
    await statusOf(request({ path: "/repos/o/r/pulls" }));
    const { service, envoy } = sidecar.pids;
    const before = rssMiB(service) + rssMiB(envoy);
    const peak = watchMemory();

    const up = request({
      host: "uploads.github.com",
      method: "POST",
      path: "/repos/o/r/releases/1/assets?name=x",
      headers: { "content-type": "application/octet-stream" },
    });
    const sentHash = createHash("sha256");
    const uploaded = new Promise<number>((resolve, reject) => {
      up.on("response", (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      up.on("error", reject);
    });
    for (let i = 0; i < LARGE_MIB; i += 1) {
      sentHash.update(chunk);
      if (!up.write(chunk)) await new Promise((resolve) => up.once("drain", resolve));
    }
    up.end();
    expect(await uploaded).toBe(200);
    const expected = sentHash.digest("hex");
    expect(hashes["up"]).toBe(expected);

    const downHash = createHash("sha256");
    let received = 0;
    await new Promise<void>((resolve, reject) => {
      const down = request({ path: "/repos/o/r/tarball/main" });
      down.on("response", (response) => {
        response.on("data", (part: Buffer) => {
          received += part.length;
          downHash.update(part);
        });
        response.on("end", () => resolve());
        response.on("error", reject);
      });
      down.on("error", reject);
      down.end();
    });
    expect(received).toBe(LARGE_MIB * MIB);
    expect(downHash.digest("hex")).toBe(expected);
    expect(peak() - before).toBeLessThan(32);
  },
);

test("a stream of events comes piece by piece", async () => {
  const gate = new Gate();
  outside.streaming = (_incoming, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: one\n\n");
    void gate.pass().then(() => response.end("data: two\n\n"));
  };
  const sent = request({ path: "/repos/o/r/events" });
  let text = "";
  const ended = new Promise<void>((resolve) => {
    sent.on("response", (response) => {
      response.on("data", (part: Buffer) => (text += part.toString()));
      response.on("end", () => resolve());
    });
  });
  sent.end();
  await until(() => text === "data: one\n\n", { what: "the first event" });
  gate.open();
  await ended;
  expect(text).toBe("data: one\n\ndata: two\n\n");
});

test("a WebSocket is passed on, with the real credential at its beginning", async () => {
  let seen: string | undefined;
  const upgraded = new Promise<tls.TLSSocket>((resolve) => {
    (outside.server as unknown as net.Server).once(
      "upgrade",
      (incoming: { headers: Record<string, string> }, socket: tls.TLSSocket) => {
        seen = incoming.headers["authorization"];
        socket.write(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
            "websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
        );
        socket.on("data", (part: Buffer) =>
          socket.write(Buffer.concat([Buffer.from("echo "), part])),
        );
        resolve(socket);
      },
    );
  });
  const socket = tls.connect({
    host: "127.0.0.1",
    port: sidecar.httpsPort,
    servername: "api.github.com",
    ca: sidecar.bundle,
    ALPNProtocols: ["http/1.1"],
  });
  let text = "";
  socket.on("data", (part: Buffer) => (text += part.toString()));
  socket.write(
    "GET /repos/o/r/events HTTP/1.1\r\nHost: api.github.com\r\nConnection: " +
      "Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: " +
      "AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  await until(() => text.includes("101 Switching Protocols"), { what: "the upgrade" });
  socket.write("hello");
  await until(() => text.endsWith("echo hello"), { what: "the echo" });
  expect(seen).toContain("ghp_x");
  socket.destroy();
  (await upgraded).destroy();
});

test(
  `a stream of events and a WebSocket that are silent for ${IDLE_MS} ms live on`,
  { timeout: IDLE_MS + 60_000 },
  async () => {
    const gate = new Gate();
    outside.streaming = (_incoming, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("data: one\n\n");
      void gate.pass().then(() => response.end("data: two\n\n"));
    };
    const events = request({ path: "/repos/o/r/events" });
    let told = "";
    const ended = new Promise<void>((resolve, reject) => {
      events.on("response", (response) => {
        response.on("data", (part: Buffer) => (told += part.toString()));
        response.on("end", () => resolve());
        response.on("error", reject);
      });
      events.on("error", reject);
    });
    events.end();
    (outside.server as unknown as net.Server).once(
      "upgrade",
      (_incoming: unknown, socket: tls.TLSSocket) => {
        socket.write(
          "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
            "websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
        );
        socket.on("data", (part: Buffer) =>
          socket.write(Buffer.concat([Buffer.from("echo "), part])),
        );
        socket.on("error", () => {});
      },
    );
    const socket = tls.connect({
      host: "127.0.0.1",
      port: sidecar.httpsPort,
      servername: "api.github.com",
      ca: sidecar.bundle,
      ALPNProtocols: ["http/1.1"],
    });
    let text = "";
    socket.on("data", (part: Buffer) => (text += part.toString()));
    socket.write(
      "GET /repos/o/r/events HTTP/1.1\r\nHost: api.github.com\r\nConnection: " +
        "Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: " +
        "AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    await until(() => text.includes("101 Switching Protocols") && told === "data: one\n\n", {
      what: "both to have begun",
    });
    if (IDLE_MS > 0) await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    gate.open();
    await ended;
    expect(told).toBe("data: one\n\ndata: two\n\n");
    socket.write("hello");
    await until(() => text.endsWith("echo hello"), { what: "the echo" });
    socket.destroy();
  },
);

test("100-continue is the service's own answer", async () => {
  outside.server.once(
    "checkContinue",
    (incoming: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => {
      response.writeContinue();
      incoming.resume();
      incoming.on("end", () => response.end("continued"));
    },
  );
  const sent = request({
    method: "POST",
    path: "/repos/o/r/issues",
    headers: { expect: "100-continue" },
  });
  const continued = new Promise<void>((resolve) => sent.once("continue", () => resolve()));
  sent.flushHeaders();
  await continued;
  sent.write("{}");
  expect(await statusOf(sent)).toBe(200);
});

describe("in the middle of load", () => {
  /** Sends requests over kept connections until it is stopped. */
  async function load(during: () => Promise<void>): Promise<Record<string, number>> {
    const shared = agent();
    const statuses: Record<string, number> = {};
    let running = true;
    const going = (): boolean => running;
    const worker = async (): Promise<void> => {
      while (going()) {
        const status = await statusOf(request({ path: "/repos/o/r/pulls", agent: shared })).catch(
          () => 0,
        );
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    };
    const workers = Array.from({ length: 8 }, worker);
    await during();
    running = false;
    await Promise.all(workers);
    shared.destroy();
    return statuses;
  }

  test("edits of the policy fail no request, and one binding's mode is no other's", async () => {
    const statuses = await load(async () => {
      for (let i = 0; i < 5; i += 1) {
        const deny = [`never-${i}:*`];
        sidecar.writeSpecs([{ ...GITHUB, policy: { ...GITHUB.policy, deny } }]);
        const version = sidecar.logs.split("policy in force").length;
        await until(() => sidecar.logs.split("policy in force").length > version, {
          what: "the edit to be live",
        });
      }
    });
    expect(Object.keys(statuses)).toEqual(["200"]);
  });

  test("new connections find a certificate while names are minted", async () => {
    const hosts = [
      "api.github.com",
      "github.com",
      "uploads.github.com",
      "codeload.github.com",
      "raw.githubusercontent.com",
    ];
    const handshakes = await Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const socket = tls.connect({
          host: "127.0.0.1",
          port: sidecar.httpsPort,
          servername: hosts[i % hosts.length],
          ca: sidecar.bundle,
        });
        const authorized = await new Promise<boolean>((resolve) => {
          socket.once("secureConnect", () => resolve(socket.authorized));
          socket.once("error", () => resolve(false));
        });
        socket.destroy();
        return authorized;
      }),
    );
    expect(handshakes.every(Boolean)).toBe(true);
  });
});

test("when the service is gone nothing passes, and the credential with it", async () => {
  for (const socket of ["secrets.sock", "access-log.sock", "authz.sock"])
    rmSync(path.join(sidecar.dir, "run", socket));
  process.kill(sidecar.pids.service, "SIGKILL");
  await until(
    async () => (await statusOf(request({ path: "/repos/o/r/pulls" })).catch(() => 0)) !== 200,
    { what: "the proxy to refuse" },
  );
  outside.requests.length = 0;
  expect([0, 503]).toContain(await statusOf(request({ path: "/repos/o/r/pulls" })).catch(() => 0));
  expect(outside.requests).toEqual([]);
});
