/**
 * Our server against a real gRPC client: grpc-js speaks HTTP/2 by nghttp2, as Envoy does by its
 * own.
 */
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import * as grpc from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Connection, type GrpcStream, MESSAGE_OFFSET, type StreamListener } from "./connection.ts";

const METHOD = "/test.Echo/Process";
const same = (bytes: Buffer): Buffer => bytes;

let dir: string;
let server: net.Server;
let client: grpc.Client;
let connections: Connection[];
let onStream: (stream: GrpcStream) => StreamListener;
let defects: unknown[];

const framed = (bytes: Buffer): Buffer => Buffer.concat([Buffer.alloc(MESSAGE_OFFSET), bytes]);

const echo = (stream: GrpcStream): StreamListener => ({
  message: (bytes) => stream.send(framed(bytes)),
  end: () => undefined,
  reset: () => undefined,
});

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-h2-"));
  connections = [];
  defects = [];
  onStream = echo;
  server = net.createServer((socket) => {
    connections.push(
      new Connection(socket, {
        onStream: (stream) => onStream(stream),
        maxMessageBytes: 64 * 1024 * 1024,
        onDefect: (error) => defects.push(error),
      }),
    );
  });
  const socket = path.join(dir, "s.sock");
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure(), {
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
});

afterEach(async () => {
  client.close();
  await new Promise((resolve) => server.close(resolve));
  rmSync(dir, { recursive: true, force: true });
});

interface Result {
  readonly messages: Buffer[];
  readonly code: grpc.status;
}

function exchange(messages: readonly Buffer[]): Promise<Result> {
  return new Promise((resolve) => {
    const call = client.makeBidiStreamRequest(METHOD, same, same);
    const received: Buffer[] = [];
    call.on("data", (bytes: Buffer) => received.push(bytes));
    call.on("error", () => undefined);
    call.on("status", (status) => resolve({ messages: received, code: status.code }));
    for (const message of messages) call.write(message);
    call.end();
  });
}

test("messages come back in order, and the stream ends with OK", async () => {
  const messages = [Buffer.from("one"), Buffer.alloc(0), Buffer.from("three")];
  const result = await exchange(messages);
  expect(result).toEqual({ messages, code: grpc.status.OK });
});

test("a message larger than every window crosses whole, both ways", async () => {
  const large = Buffer.alloc(20 * 1024 * 1024, "0123456789abcdef");
  const result = await exchange([large]);
  expect(result.code).toBe(grpc.status.OK);
  expect(result.messages[0]?.equals(large)).toBe(true);
});

test("many streams at once on one connection do not mix", async () => {
  const results = await Promise.all(
    Array.from({ length: 500 }, (_, i) =>
      exchange([Buffer.from(`stream ${i}`), Buffer.alloc(i * 10, i % 256)]),
    ),
  );
  results.forEach((result, i) => {
    expect(result.messages.map(String)[0]).toBe(`stream ${i}`);
    expect(result.messages[1]?.length).toBe(i * 10);
  });
  expect(connections).toHaveLength(1);
});

test("the connection outlives more resets than an HTTP/2 server's rapid-reset guard allows", async () => {
  let over = 0;
  const done = new Promise<void>((resolve) => {
    // grpc-js half-closes just before it resets: either one is the end.
    const count = (): void => {
      if (++over === 2000) resolve();
    };
    onStream = (stream) => ({
      message: (bytes) => stream.send(framed(bytes)),
      end: count,
      reset: count,
    });
  });
  for (let i = 0; i < 2000; i++) {
    const call = client.makeBidiStreamRequest(METHOD, same, same);
    call.on("error", () => undefined);
    call.on("data", () => call.cancel());
    call.write(Buffer.from("x"));
  }
  await done;
  onStream = echo;
  expect((await exchange([Buffer.from("still here")])).messages.map(String)).toEqual([
    "still here",
  ]);
  expect(connections).toHaveLength(1);
});

test("a stream that fails says so, and its peer's other streams go on", async () => {
  onStream = (stream) => ({
    message: () => stream.fail(grpc.status.INTERNAL),
    end: () => undefined,
    reset: () => undefined,
  });
  const failed = await exchange([Buffer.from("x")]);
  expect(failed.code).toBe(grpc.status.INTERNAL);
  onStream = echo;
  expect((await exchange([Buffer.from("y")])).code).toBe(grpc.status.OK);
});

test("a message above the maximum is refused", async () => {
  let seen = 0;
  onStream = () => ({ message: () => seen++, end: () => undefined, reset: () => undefined });
  const result = await exchange([Buffer.alloc(65 * 1024 * 1024)]);
  expect(result.code).not.toBe(grpc.status.OK);
  expect(seen).toBe(0);
});

test("streams end when their connection does", async () => {
  const socket = net.connect(path.join(dir, "s.sock"));
  socket.resume();
  const opened = new Promise<void>((resolve) => {
    onStream = () => {
      resolve();
      return { message: () => undefined, end: () => undefined, reset: () => ended() };
    };
  });
  let ended = (): void => undefined;
  const reset = new Promise<void>((resolve) => {
    ended = resolve;
  });
  // Preface, then an empty HEADERS frame that opens stream 1.
  socket.write(
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      Buffer.from([0, 0, 0, 1, 4, 0, 0, 0, 1]),
    ]),
  );
  await opened;
  expect(connections[0]?.streamCount).toBe(1);
  socket.destroy();
  await reset;
  expect(connections[0]?.streamCount).toBe(0);
});

test.each([
  ["no preface", Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n")],
  [
    "an even stream id",
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      Buffer.from([0, 0, 0, 1, 4, 0, 0, 0, 2]),
    ]),
  ],
  [
    "an enormous frame",
    Buffer.concat([
      Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1]),
    ]),
  ],
])("a peer that breaks the protocol is cut off: %s", async (_name, bytes) => {
  const socket = net.connect(path.join(dir, "s.sock"));
  const closed = new Promise((resolve) => socket.on("close", resolve));
  socket.on("error", () => undefined);
  socket.resume();
  socket.write(bytes);
  await closed;
});

test("an error that escapes a listener closes its connection and not the process", async () => {
  onStream = (stream) => ({
    message: () => {
      throw new Error("a listener must not throw");
    },
    end: () => stream.finish(),
    reset: () => undefined,
  });
  const failed = await exchange([Buffer.from("x")]);
  expect(failed.code).toBe(grpc.status.UNAVAILABLE);
  expect(defects.map(String)).toEqual(["Error: a listener must not throw"]);
  onStream = echo;
  expect((await exchange([Buffer.from("y")])).code).toBe(grpc.status.OK);
});
