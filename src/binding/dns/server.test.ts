/** The server on real sockets of this machine's loopback address. */
import dgram from "node:dgram";
import { once } from "node:events";
import net from "node:net";
import packet from "dns-packet";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../../platform/testing.ts";
import type { FindName } from "./names.ts";
import { DnsReport } from "./report.ts";
import { type AgentDns, QUERY_RATE, serveDns } from "./server.ts";
import { type DnsSockets, openDnsSockets } from "./sockets.ts";

const find: FindName = (name) => {
  if (name === "defect.example") throw new Error("a defect");
  return name === "bound.example"
    ? { kind: "bound", addresses: ["127.0.0.1"] }
    : name === "slow.example"
      ? slow
      : { kind: "unknown" };
};
let slow: Promise<{ kind: "unavailable" }>;
let opened: DnsSockets;
let server: AgentDns;
let registry: Registry;
let lines: { readonly fields: object; readonly message: string }[];
let clock: FakeClock;
let defects: unknown[];

beforeEach(async () => {
  registry = new Registry();
  clock = new FakeClock();
  [lines, defects] = [[], []];
  slow = new Promise(() => undefined);
  opened = await openTogether();
  const log = {
    info: (fields: object, message: string) => lines.push({ fields, message }),
  } as never;
  server = serveDns({
    sockets: opened,
    find,
    report: new DnsReport({ registry, clock, log }),
    clock,
    onDefect: (error) => defects.push(error),
  });
});

afterEach(() => {
  server.close();
  expect(defects).toEqual([]);
});

/** A free port for both transports: one that is free for TCP may not be for UDP. */
async function openTogether(): Promise<DnsSockets> {
  for (;;) {
    const probe = net.createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as net.AddressInfo;
    await new Promise((resolve) => probe.close(resolve));
    const sockets = await openDnsSockets({ address: "127.0.0.1", port }).catch(() => undefined);
    if (sockets !== undefined) return sockets;
  }
}

const port = (): number => opened.udp.address().port;

const query = (name: string, id = 1): Buffer =>
  packet.encode({ type: "query", id, questions: [{ name, type: "A" }] });

const framed = (message: Buffer): Buffer =>
  Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]);

async function overUdp(messages: readonly Buffer[], expected: number): Promise<Buffer[]> {
  const client = dgram.createSocket("udp4");
  const replies: Buffer[] = [];
  const done = new Promise<void>((resolve) =>
    client.on("message", (reply) => replies.push(reply) === expected && resolve()),
  );
  for (const message of messages) client.send(message, port(), "127.0.0.1");
  if (expected > 0) await done;
  client.close();
  return replies;
}

/** Sends bytes, and returns what arrives until the server closes, or so many replies. */
async function overTcp(parts: readonly Buffer[], expected: number): Promise<Buffer[]> {
  const socket = net.connect(port(), "127.0.0.1");
  socket.on("error", () => undefined);
  socket.setNoDelay(true);
  const replies: Buffer[] = [];
  let unread = Buffer.alloc(0);
  for (const part of parts) socket.write(part);
  await new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
    socket.on("data", (data) => {
      unread = Buffer.concat([unread, data]);
      while (unread.length >= 2 && unread.length >= 2 + unread.readUInt16BE(0)) {
        const end = 2 + unread.readUInt16BE(0);
        replies.push(unread.subarray(2, end));
        unread = unread.subarray(end);
      }
      if (replies.length === expected) socket.end();
    });
  });
  return replies;
}

const shown = (reply: Buffer): string => {
  const { id, answers, rcode } = packet.decode(reply) as packet.DecodedPacket & { rcode: string };
  return [id, rcode, ...(answers ?? []).map((each) => (each as packet.StringAnswer).data)].join(
    " ",
  );
};

async function counted(outcome: string): Promise<number> {
  const { values = [] } =
    (await registry.getSingleMetric("svc_binding_dns_queries_total")?.get()) ?? {};
  return values
    .filter(({ labels }) => labels["outcome"] === outcome)
    .reduce((sum, { value }) => sum + value, 0);
}

test("answers over UDP", async () => {
  const replies = await overUdp([query("bound.example"), query("evil.example", 2)], 2);
  expect(replies.map(shown).sort()).toEqual(["1 NOERROR 127.0.0.1", "2 NXDOMAIN"]);
  expect([await counted("bound"), await counted("unknown")]).toEqual([1, 1]);
});

test("a defect fails its query alone, and is reported", async () => {
  const [broken, sound] = [query("defect.example"), query("bound.example", 2)];
  expect((await overUdp([broken, sound], 1)).map(shown)).toEqual(["2 NOERROR 127.0.0.1"]);
  expect(await overTcp([framed(broken)], 1)).toEqual([]);
  expect((await overTcp([framed(sound)], 1)).map(shown)).toEqual(["2 NOERROR 127.0.0.1"]);
  expect(defects.splice(0)).toEqual([new Error("a defect"), new Error("a defect")]);
});

test("an answer that comes after the end is not sent", async () => {
  const { promise, resolve } = Promise.withResolvers<{ kind: "unavailable" }>();
  slow = promise;
  await overUdp([query("slow.example"), query("bound.example")], 1);
  server.close();
  resolve({ kind: "unavailable" });
  await slow;
  await new Promise((resolve) => setImmediate(resolve));
  server = { close: () => undefined };
});

describe("over TCP", () => {
  const three = [1, 2, 3].map((id) => framed(query("bound.example", id)));
  const all = ["1 NOERROR 127.0.0.1", "2 NOERROR 127.0.0.1", "3 NOERROR 127.0.0.1"];

  test.each<[string, readonly Buffer[]]>([
    ["queries one by one", three],
    ["all at once", [Buffer.concat(three)]],
    ["byte by byte", Array.from(Buffer.concat(three), (byte) => Buffer.from([byte]))],
  ])("answers %s", async (_name, parts) => {
    expect((await overTcp(parts, 3)).map(shown)).toEqual(all);
  });

  test.each<[string, Buffer]>([
    ["a query that is too long", Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(5_000)])],
    ["a message without a reply", framed(Buffer.alloc(3))],
    ["a response", framed(packet.encode({ type: "response", questions: [] }))],
    ["something else", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
  ])("closes after %s", async (_name, bytes) => {
    const replies = await overTcp([three[0] as Buffer, bytes, three[1] as Buffer], 3);
    expect(replies.map(shown)).toEqual(all.slice(0, 1));
  });

  test("reads nothing more while an answer is not there, and is closed with the server", async () => {
    const socket = net.connect(port(), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(Buffer.concat([framed(query("slow.example")), ...three]));
    await overTcp(three, 3);
    expect(await counted("bound")).toBe(3);
    const closed = once(socket, "close");
    server.close();
    await closed;
    server = { close: () => undefined };
  });

  test("has so many connections at a time, and no more", async () => {
    const idle = Array.from({ length: 64 }, () => net.connect(port(), "127.0.0.1"));
    await Promise.all(idle.map((socket) => once(socket, "connect")));
    expect((await overTcp([three[0] as Buffer], 1)).map(shown)).toEqual([]);
    for (const socket of idle) socket.destroy();
  });
});

describe("a flood", () => {
  const { perSecond, burst } = QUERY_RATE;

  test("is answered up to the rate, and otherwise dropped, unread and counted", async () => {
    const flood = Array.from({ length: burst + 10 }, () => framed(query("evil.example")));
    // The connection is closed at the first query that is dropped.
    await overTcp([Buffer.concat(flood)], burst + 10);
    expect([await counted("unknown"), await counted("dropped")]).toEqual([burst, 1]);
    await overTcp(flood.slice(0, 1), 1);
    expect([await counted("unknown"), await counted("dropped")]).toEqual([burst, 2]);
    clock.advance(1_000);
    await overTcp([Buffer.concat(flood)], burst + 10);
    expect([await counted("unknown"), await counted("dropped")]).toEqual([burst + perSecond, 3]);
  });

  test("gets 20 lines, then one a second, which names the number of the others", async () => {
    const flood = Array.from({ length: 200 }, () => framed(query("evil.example")));
    await overTcp(flood, 200);
    expect(lines).toHaveLength(20);
    expect(lines[0]).toEqual({
      fields: { name: "evil.example", type: "A", outcome: "unknown" },
      message: "name look-up not answered with an address",
    });
    clock.advance(1_000);
    await overTcp(flood.slice(0, 2), 2);
    expect(lines).toHaveLength(21);
    expect(lines[20]?.fields).toMatchObject({ omitted: 180 });
  });

  test("a line is short and printable, whatever was asked", async () => {
    const label = "\u0007\u001b]0;x".padEnd(60, "\t");
    await overUdp([query([label, label, label].join("."))], 1);
    const name = /"name":"(.*?)","/.exec(JSON.stringify(lines[0]?.fields))?.[1];
    expect(name).toMatch(/^[\x20-\x7e…]{1,400}$/);
  });

  test("bound names get no line", async () => {
    await overUdp([query("bound.example")], 1);
    expect(lines).toEqual([]);
  });
});

test("a port that is in use is an error that names it, and the other transport is closed", async () => {
  const again = openDnsSockets({ address: "127.0.0.1", port: port() });
  await expect(again).rejects.toThrow(`DNS cannot listen on 127.0.0.1, port ${port()}`);
});
