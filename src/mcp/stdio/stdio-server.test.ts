import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../platform/clock.ts";
import { Secret } from "../../platform/secret.ts";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import { BRIDGE_LIMITS, BRIDGE_TIMES } from "../bridge/limits.ts";
import { serveStdio, type StdioServer, type StdioServerOptions } from "./stdio-server.ts";

const PROGRAM = path.resolve(import.meta.dirname, "../../../e2e/support/mcp/line-server.mjs");

let dir: string;
let log: CapturedLog;
let server: StdioServer | undefined;
const defects: unknown[] = [];

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-stdio-"));
  writeFileSync(path.join(dir, "lines"), "");
  log = new CapturedLog();
  defects.length = 0;
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(dir, { recursive: true });
  expect(defects).toEqual([]);
});

async function start(options: Partial<StdioServerOptions> = {}): Promise<void> {
  server = await serveStdio({
    socket: path.join(dir, "mcp.sock"),
    path: "/mcp",
    program: {
      command: [process.execPath, PROGRAM, path.join(dir, "lines")],
      secrets: new Map([["OWN", new Secret("own")]]),
      path: "/usr/bin:/bin",
      home: "/",
      user: undefined,
    },
    maxSessions: 3,
    limits: BRIDGE_LIMITS,
    times: BRIDGE_TIMES,
    clock: systemClock,
    log: log.log,
    onDefect: (error) => defects.push(error),
    ...options,
  });
}

interface Answered {
  readonly status: number;
  readonly session: string | undefined;
  readonly text: string;
}

function send(
  body: unknown,
  {
    session,
    method = "POST",
  }: { readonly session?: string | undefined; readonly method?: string } = {},
  sent: (request: http.ClientRequest) => void = () => undefined,
): Promise<Answered> {
  const headers = session === undefined ? {} : { "mcp-session-id": session };
  return new Promise((resolve, reject) => {
    const request = http.request(
      { socketPath: path.join(dir, "mcp.sock"), path: "/mcp", method, headers, agent: false },
      (response) => {
        let text = "";
        response.on("data", (part: Buffer) => (text += part.toString()));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            session: response.headers["mcp-session-id"]?.toString(),
            text,
          }),
        );
      },
    );
    request.on("error", reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
    sent(request);
  });
}

const rpc = (id: number, method: string, params: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
});
const call = (id: number, name: string, more: object = {}) =>
  rpc(id, "tools/call", { name, ...more });
const STATELESS = { _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } };

const open = async (): Promise<string> =>
  (await send(rpc(0, "initialize", { protocolVersion: "2025-11-25" }))).session ?? "";
const pidOf = ({ text }: Answered): string => /"text":"(\d+)"/.exec(text)?.[1] ?? "";
const lines = (): readonly string[] => readFileSync(path.join(dir, "lines"), "utf8").split("\n");

test("each session has a process of its own, until it ends", async () => {
  await start();
  const [first, second] = [await open(), await open()];
  const pid = pidOf(await send(call(1, "pid"), { session: first }));
  expect(pid).not.toBe("");
  expect(pidOf(await send(call(1, "pid"), { session: second }))).not.toBe(pid);
  expect(pidOf(await send(call(2, "pid"), { session: first }))).toBe(pid);
  expect((await send(undefined, { session: first, method: "DELETE" })).status).toBe(204);
  expect(() => process.kill(Number(pid), 0)).toThrow();
  expect((await send(call(3, "pid"), { session: first })).status).toBe(404);
});

test("requests without sessions share a process as far as their ids differ", async () => {
  await start();
  const pid = pidOf(await send(call(1, "pid", STATELESS)));
  expect(pidOf(await send(call(1, "pid", STATELESS)))).toBe(pid);
  let abort = (): void => undefined;
  const open = send(call(7, "never", STATELESS), {}, (request) => {
    abort = () => void request.destroy();
  }).catch(() => undefined);
  await expect.poll(() => lines().some((line) => line.includes('"never"'))).toBe(true);
  expect(pidOf(await send(call(7, "pid", STATELESS)))).not.toBe(pid);
  expect(pidOf(await send(call(8, "pid", STATELESS)))).toBe(pid);
  abort();
  await open;
  await expect.poll(() => lines().find((line) => line.includes("cancelled"))).toContain("7");
});

test("its standard error is logged", async () => {
  await start();
  await open();
  await expect.poll(() => JSON.stringify(log.lines)).toContain("the server has started");
});

test.each([
  ["is missing", ["/nonexistent/program"]],
  ["ends at once", ["/bin/false"]],
])("a program that %s is an answer, and a new try", async (_, command) => {
  await start({
    program: { command, secrets: new Map(), path: "/usr/bin", home: "/", user: undefined },
  });
  for (let n = 0; n < 5; n += 1) {
    const { status, text } = await send(rpc(0, "initialize"));
    expect([502, 503]).toContain(status);
    expect(text).toContain("error");
  }
});

test("a message of the server above the limit ends it", async () => {
  await start({ limits: { ...BRIDGE_LIMITS, serverMessageBytes: 100 } });
  const { status } = await send(rpc(0, "initialize", { protocolVersion: "x".repeat(200) }));
  expect(status).toBe(502);
  expect(JSON.stringify(log.lines)).toContain("more than 100 bytes");
});

test("a session that is not used ends, unless a stream is open", async () => {
  const clock = new FakeClock();
  await start({ clock });
  const [idle, watched] = [await open(), await open()];
  const stream = http.request({
    socketPath: path.join(dir, "mcp.sock"),
    path: "/mcp",
    headers: { "mcp-session-id": watched },
  });
  stream.on("error", () => undefined);
  await new Promise((resolve) => stream.once("response", resolve).end());
  expect((await send(undefined, { session: watched, method: "GET" })).status).toBe(409);
  clock.advance(BRIDGE_TIMES.idle);
  expect((await send(call(1, "ls"), { session: idle })).status).toBe(404);
  expect((await send(call(1, "ls"), { session: watched })).status).toBe(200);
  stream.destroy();
});

test("sessions are bounded", async () => {
  await start();
  for (let n = 0; n < 3; n += 1) await open();
  expect((await send(rpc(0, "initialize"))).status).toBe(503);
  expect((await send(call(1, "pid", STATELESS))).status).toBe(503);
});
