/**
 * A DNS server on a port of its own, for tests: it answers over UDP what a test has put into it.
 */
import dgram from "node:dgram";
import { once } from "node:events";

export interface DnsRecord {
  /** An IPv4 or IPv6 address. */
  readonly address: string;
  /** Seconds. */
  readonly ttl: number;
}

const TYPES = { A: 1, AAAA: 28 } as const;
const NO_ERROR = 0x8180;
const NOT_FOUND = 0x8183;

export class DnsServer {
  /** By `<type> <host>`. */
  readonly records = new Map<`${keyof typeof TYPES} ${string}`, readonly DnsRecord[]>();
  /** Questions, in order. */
  readonly asked: string[] = [];
  readonly #socket = dgram.createSocket("udp4");

  async listen(): Promise<string> {
    this.#socket.on("message", (query, from) =>
      this.#socket.send(this.#answer(query), from.port, from.address),
    );
    this.#socket.bind(0, "127.0.0.1");
    await once(this.#socket, "listening");
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  close(): void {
    this.#socket.close();
  }

  /** RFC 1035, section 4: a header of 12 bytes, one question, and its answers. */
  #answer(query: Buffer): Buffer {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const type = query.readUInt16BE(at + 1) === TYPES.AAAA ? "AAAA" : "A";
    const name = `${type} ${labels.join(".")}` as const;
    this.asked.push(name);
    const found = this.records.get(name);
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    head.writeUInt16BE(found === undefined ? NOT_FOUND : NO_ERROR, 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(found?.length ?? 0, 6);
    const question = query.subarray(12, at + 5);
    return Buffer.concat([head, question, ...(found ?? []).map((each) => answer(type, each))]);
  }
}

function answer(type: keyof typeof TYPES, { address, ttl }: DnsRecord): Buffer {
  const bytes = type === "A" ? ofIpv4(address) : ofIpv6(address);
  const head = Buffer.alloc(12);
  // The name is that of the question.
  head.writeUInt16BE(0xc00c, 0);
  head.writeUInt16BE(TYPES[type], 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(bytes.length, 10);
  return Buffer.concat([head, bytes]);
}

function ofIpv4(address: string): Buffer {
  return Buffer.from(address.split(".").map(Number));
}

function ofIpv6(address: string): Buffer {
  const [start = "", end = ""] = address.split("::");
  const groups = (text: string): number[] =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const [before, after] = [groups(start), groups(end)];
  const bytes = Buffer.alloc(16);
  for (const [index, group] of before.entries()) bytes.writeUInt16BE(group, index * 2);
  for (const [index, group] of after.entries())
    bytes.writeUInt16BE(group, (8 - after.length + index) * 2);
  return bytes;
}
