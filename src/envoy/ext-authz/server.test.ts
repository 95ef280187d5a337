/**
 * The authorization server against a real gRPC client: grpc-js speaks HTTP/2 by nghttp2, as Envoy
 * does by its own.
 */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import * as grpc from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { StreamServer } from "../grpc/serve.ts";
import { serveAuthorization } from "./server.ts";
import { bytesField } from "../protobuf/writer.ts";
import type { AuthzReply, AuthzRequest } from "./wire.ts";

const METHOD = "/envoy.service.auth.v3.Authorization/Check";
const MAX_BYTES = 1024 * 1024;
const same = (buffer: Buffer): Buffer => buffer;

let dir: string;
let server: StreamServer;
let client: grpc.Client;
let check: (request: AuthzRequest) => Promise<AuthzReply>;
let defects: unknown[];

/**
 * CheckRequest of a path and a body: attributes = 1, request = 4, http = 2 (path = 4, raw_body =
 * 12).
 */
function question(url: string, body = Buffer.alloc(0)): Buffer {
  return bytesField(
    1,
    bytesField(
      4,
      bytesField(2, Buffer.concat([bytesField(4, Buffer.from(url)), bytesField(12, body)])),
    ),
  );
}

function ask(message: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(METHOD, same, same, message, (error, reply) =>
      error === null && reply !== undefined ? resolve(reply) : reject(error as Error),
    );
  });
}

/** Returns the gRPC status of a call with the given messages. */
function statusOf(...messages: readonly Buffer[]): Promise<number> {
  const stream = client.makeBidiStreamRequest(METHOD, same, same);
  for (const message of messages) stream.write(message);
  stream.end();
  stream.on("data", () => undefined);
  stream.on("error", () => undefined);
  return new Promise((resolve) => stream.on("status", ({ code }) => resolve(code)));
}

const denied = (body: string): AuthzReply => ({
  kind: "denied",
  status: 403,
  headers: [],
  body,
  metadata: {},
});

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-authz-"));
  defects = [];
  check = async (request) => denied(request.path);
  server = await serveAuthorization({
    path: path.join(dir, "authz.sock"),
    maxMessageBytes: MAX_BYTES,
    check: async (request) => check(request),
    onDefect: (error) => defects.push(error),
  });
  client = new grpc.Client(
    `unix:${path.join(dir, "authz.sock")}`,
    grpc.credentials.createInsecure(),
  );
});

afterEach(async () => {
  client.close();
  await server.close();
  rmSync(dir, { recursive: true });
});

test("each question gets its own answer, in whatever order they are found", async () => {
  const waiting: (() => void)[] = [];
  check = async (request) => {
    await new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 50) for (const go of waiting.toReversed()) go();
    });
    return denied(`answer to ${request.path}.`);
  };
  const answers = await Promise.all(Array.from({ length: 50 }, (_, i) => ask(question(`/${i}`))));
  expect(answers.map((answer, i) => answer.includes(`answer to /${i}.`))).toEqual(
    Array.from({ length: 50 }, () => true),
  );
});

test("a body stays what it was while others arrive", async () => {
  const bodies = new Map<string, Buffer>();
  let all: () => void = () => undefined;
  const arrived = new Promise<void>((resolve) => (all = resolve));
  check = async (request) => {
    bodies.set(request.path, request.body);
    if (bodies.size === 20) all();
    await arrived;
    return denied(request.path);
  };
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => ask(question(`/${i}`, Buffer.alloc(20_000, i)))),
  );
  for (const [url, body] of bodies)
    expect(body.equals(Buffer.alloc(20_000, Number(url.slice(1))))).toBe(true);
});

test.each<[string, () => Buffer]>([
  ["a check that throws", () => question("/throws")],
  ["a question that is none", () => Buffer.from([0x0a, 0xff])],
])("%s fails the call, and is told", async (_name, message) => {
  check = () => Promise.reject(new Error("a defect"));
  await expect(ask(message())).rejects.toMatchObject({ code: grpc.status.INTERNAL });
  expect(defects).toHaveLength(1);
});

test("a question that is too large is not asked", async () => {
  let asked = 0;
  check = async () => {
    asked++;
    return denied("");
  };
  await expect(ask(question("/", Buffer.alloc(MAX_BYTES)))).rejects.toThrow();
  expect(asked).toBe(0);
  await expect(ask(question("/next"))).resolves.toBeInstanceOf(Buffer);
});

test("a call has one question, no more and no less", async () => {
  check = () => new Promise(() => undefined);
  expect(await statusOf(question("/1"), question("/2"))).toBe(grpc.status.INTERNAL);
  expect(await statusOf()).toBe(grpc.status.INTERNAL);
});
