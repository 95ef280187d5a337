/** The server with a real gRPC client; the client plays Envoy's part. */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import * as grpc from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeClock } from "../../platform/testing.ts";
import type { StreamServer } from "../grpc/serve.ts";
import { type Exchange, type Processor, serveExtProc } from "./server.ts";
import { eventually } from "../../../e2e/support/wait.ts";

const same = (bytes: Buffer): Buffer => bytes;
/** ProcessingRequest { request_headers {} }: the smallest valid phase. */
const REQUEST_HEADERS = Buffer.from([(2 << 3) | 2, 0]);

let dir: string;
let server: StreamServer;
let client: grpc.Client;
let clock: FakeClock;
let defects: unknown[];
let processor: (exchange: Exchange) => Processor;
let closings: number;

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-extproc-"));
  clock = new FakeClock();
  defects = [];
  closings = 0;
  const socket = path.join(dir, "s.sock");
  server = await serveExtProc({
    path: socket,
    maxMessageBytes: 1024,
    clock,
    createProcessor: (exchange) => processor(exchange),
    onDefect: (error) => defects.push(error),
  });
  client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure());
});

afterEach(async () => {
  client.close();
  await server.close();
  rmSync(dir, { recursive: true, force: true });
});

interface Sent {
  readonly status: Promise<grpc.status>;
  /** Resolves when the processor has seen the phase. */
  readonly seen: Promise<void>;
}

/** Sends one phase to a processor, which then runs `act`. */
function send(act: (exchange: Exchange) => void, closed = (): void => undefined): Sent {
  const seen = Promise.withResolvers<void>();
  processor = (exchange) => ({
    phase: () => {
      seen.resolve();
      act(exchange);
    },
    closed: () => {
      closings += 1;
      closed();
    },
  });
  const call = client.makeBidiStreamRequest("/test/Process", same, same);
  const status = new Promise<grpc.status>((resolve) => {
    call.on("status", ({ code }) => resolve(code));
  });
  call.on("data", () => call.end());
  call.on("error", () => undefined);
  call.write(REQUEST_HEADERS);
  return { status, seen: seen.promise };
}

async function serves(): Promise<void> {
  const { status } = send((exchange) => exchange.pass("request_headers"));
  expect(await status).toBe(grpc.status.OK);
}

const boom = (): never => {
  throw new RangeError("boom");
};

test("a request that goes well is closed once", async () => {
  await serves();
  expect(closings).toBe(1);
  expect(defects).toEqual([]);
});

/** Places where an error can occur on behalf of a request; `later` makes it occur. */
const PLACES: readonly {
  readonly place: string;
  readonly act: (exchange: Exchange) => void;
  readonly later?: () => void;
}[] = [
  { place: "a phase", act: boom },
  {
    place: "a timer",
    act: (exchange) => void exchange.after(100, boom),
    later: () => clock.advance(100),
  },
  { place: "a promise's callback", act: (exchange) => exchange.when(Promise.resolve(1), boom) },
  {
    place: "a promise that rejects",
    act: (exchange) => exchange.when(Promise.reject(new RangeError("boom")), () => undefined),
  },
  {
    place: "an event's callback",
    act: (exchange) => void setImmediate(exchange.guard(boom)),
  },
];

test.each(PLACES)("an error in $place fails its request and no other", async ({ act, later }) => {
  const { status, seen } = send(act);
  await seen;
  later?.();
  expect(await status).toBe(grpc.status.INTERNAL);
  expect(defects.map(String)).toEqual(["RangeError: boom"]);
  expect(closings).toBe(1);
  await serves();
});

test("an error while a processor is made fails its request and no other", async () => {
  const { status } = send(boom);
  processor = boom;
  expect(await status).toBe(grpc.status.INTERNAL);
  expect(defects.map(String)).toEqual(["RangeError: boom"]);
  await serves();
});

test("an error in closed() is reported, and closed() is not called again", async () => {
  const { status } = send(boom, () => {
    throw new Error("closing failed");
  });
  expect(await status).toBe(grpc.status.INTERNAL);
  expect(defects.map(String)).toEqual(["RangeError: boom", "Error: closing failed"]);
  expect(closings).toBe(1);
  await serves();
});

test("bytes that are no message fail their request and no other", async () => {
  processor = () => ({ phase: () => undefined, closed: () => undefined });
  const call = client.makeBidiStreamRequest("/test/Process", same, same);
  call.on("error", () => undefined);
  call.on("data", () => undefined);
  const status = new Promise<grpc.status>((resolve) => {
    call.on("status", ({ code }) => resolve(code));
  });
  call.write(Buffer.from([0x12, 0x7f, 1]));
  expect(await status).toBe(grpc.status.INTERNAL);
  expect(defects).toHaveLength(1);
  await serves();
});

test("round trips to the peer are measured again and again", async () => {
  const { seen } = send((exchange) => exchange.pass("request_headers"));
  await seen;
  expect(server.roundTripMs()).toBe(0);
  clock.advance(25);
  // The ping is in transit, and by this clock it stays so until it is answered.
  clock.advance(30);
  expect(server.roundTripMs()).toBe(30);
  await eventually(() => expect(clock.pending).toEqual([25]));
  expect(server.roundTripMs()).toBe(30);
  clock.advance(25);
  await eventually(() => expect(server.roundTripMs()).toBe(0));
});
