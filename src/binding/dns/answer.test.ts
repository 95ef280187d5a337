/** Every answer is decoded by another implementation, and every attempt is one message. */
import packet from "dns-packet";
import { describe, expect, test, vi } from "vitest";
import { FakeClock } from "../../platform/testing.ts";
import { type Binding, compileSnapshot } from "../binding.ts";
import { answerDns } from "./answer.ts";
import { readQuery } from "./message.ts";
import { compileDnsNames, dnsNameSchema, type DnsName } from "./names.ts";

const binding = (...hosts: readonly string[]): Binding => ({ hosts }) as unknown as Binding;

const LONGEST = [63, 63, 63, 45].map((length) => "x".repeat(length)).join(".");
const NAMES: readonly DnsName[] = [
  { name: "svc-gateway", addresses: ["10.0.0.7", "fd00::7"] },
  { name: "db.default.svc.cluster.local" },
  { name: "gone.default.svc.cluster.local" },
  { name: LONGEST, addresses: Array.from({ length: 8 }, (_, i) => `fd00::${i}`) },
];
const asked: string[] = [];
const clock = new FakeClock();
const snapshot = compileSnapshot("1", "default/tester", [
  binding("api.github.com", "github.com"),
  binding("*.amazonaws.com", "*.s3.amazonaws.com"),
]);
const find = compileDnsNames({
  snapshot: () => snapshot,
  names: NAMES,
  clock,
  lookUp: async (name) => {
    asked.push(name);
    return name.startsWith("db.") ? ["10.1.1.1", "fd00::1"] : [];
  },
});

type QueryType = packet.RecordType | "ANY" | `UNKNOWN_${number}`;

const question = (name: string, type: QueryType = "A"): packet.Packet => ({
  type: "query",
  id: 4711,
  flags: packet.RECURSION_DESIRED,
  questions: [{ name, type: type as packet.RecordType, class: "IN" }],
});
const OPT = { type: "OPT", name: ".", udpPayloadSize: 4_096, flags: 0, options: [] };
const opt = (ednsVersion = 0): packet.Answer =>
  ({ ...OPT, extendedRcode: 0, ednsVersion, flag_do: false }) as unknown as packet.Answer;

interface Told {
  readonly rcode: string;
  readonly addresses: readonly string[];
}

async function ask(name: string, type: QueryType = "A"): Promise<Told> {
  const query = packet.encode(question(name, type));
  const { reply } = await answerDns(query, find);
  const decoded = packet.decode(reply as Buffer) as packet.DecodedPacket & { rcode: string };
  expect(packet.decode.bytes).toBe(reply?.length);
  expect(decoded).toMatchObject({ id: 4711, type: "response", flag_ra: true, flag_rd: true });
  expect(reply?.length).toBeLessThanOrEqual(512);
  // The question as it was sent, every byte.
  expect(reply?.subarray(12, query.length)).toEqual(query.subarray(12));
  const answers = (decoded.answers ?? []) as packet.StringAnswer[];
  for (const answer of answers) expect(answer).toMatchObject({ name, ttl: 5 });
  return { rcode: decoded.rcode, addresses: answers.map(({ data }) => data) };
}

const FOUND: Told = { rcode: "NOERROR", addresses: ["127.0.0.1"] };
const EMPTY: Told = { rcode: "NOERROR", addresses: [] };
const NXDOMAIN: Told = { rcode: "NXDOMAIN", addresses: [] };

describe("bound names", () => {
  test.each([
    "api.github.com",
    "API.GitHub.COM",
    "aPi.gItHuB.cOm",
    "x.amazonaws.com",
    "reports.s3.eu-west-1.amazonaws.com",
    "a.b.c.d.e.amazonaws.com",
    "under_score.s3.amazonaws.com",
  ])("%s has the sidecar's address, and no other", async (name) => {
    expect(await ask(name)).toEqual(FOUND);
    expect(await ask(name, "ANY")).toEqual(FOUND);
    for (const type of ["AAAA", "CNAME", "TXT", "MX", "NS", "SOA", "AXFR", "PTR", "OPT"] as const)
      expect([type, await ask(name, type)]).toEqual([type, EMPTY]);
    for (const type of ["UNKNOWN_65", "UNKNOWN_64", "UNKNOWN_0", "UNKNOWN_65535"] as const)
      expect([type, await ask(name, type)]).toEqual([type, EMPTY]);
  });

  test("are exactly those that requests are routed by", async () => {
    for (const name of ["github.com", "api.github.com", "a.amazonaws.com", "amazonaws.com", "x.y"])
      expect((await find(name)).kind === "bound").toBe(snapshot.bindingsOf(name).length > 0);
  });

  test("change with the policy", async () => {
    let current = snapshot;
    const changing = compileDnsNames({
      snapshot: () => current,
      names: [],
      clock,
      lookUp: async () => [],
    });
    expect(await changing("api.github.com")).toMatchObject({ kind: "bound" });
    current = compileSnapshot("2", "default/tester", []);
    expect(await changing("api.github.com")).toEqual({ kind: "unknown" });
  });
});

describe("names that do not exist", () => {
  test.each([
    "example.com",
    "com",
    ".",
    "localhost",
    "amazonaws.com",
    "xamazonaws.com",
    "uploads.github.com",
    "api.github.com.evil.example",
    "api.github.com.default.svc.cluster.local",
    "github.com.github.com",
    "evil.example.api.github.com",
    "kubernetes.default.svc.cluster.local",
    "other.default.svc.cluster.local",
    "x.svc-gateway",
    "*.github.com",
    "*",
    "-x.amazonaws.com",
    "x-.amazonaws.com",
    "a b.amazonaws.com",
    "a:443",
    "api.github.com:443",
    "api.githu\u212a.com",
    "\u0441.amazonaws.com",
    "1.0.0.127.in-addr.arpa",
    "c2VjcmV0LXZhbHVl.attacker.example",
  ])("%j", async (name) => {
    for (const type of ["A", "AAAA", "TXT", "ANY"] as const)
      expect(await ask(name, type)).toEqual(NXDOMAIN);
  });

  test("so are labels that contain a dot, a backslash, a zero or a byte above 127", async () => {
    for (const label of ["api.github", "api\\", "api\0", "\xff", "\xe9\x00."]) {
      const bytes = Buffer.from(label, "latin1");
      const name = Buffer.concat([
        Buffer.from([bytes.length]),
        bytes,
        Buffer.from("\x06github\x03com\0\0\x01\0\x01", "latin1"),
      ]);
      const { reply, outcome } = await answerDns(message({ rest: name }), find);
      expect([outcome, reply?.readUInt8(3)]).toEqual(["unknown", 0x83]);
      expect(reply?.subarray(12)).toEqual(name);
    }
  });

  test("so is the longest name, and one that is too long for a host", async () => {
    const label = "a".repeat(63);
    expect(await ask(`${label}.${label}.${label}.amazonaws.com`)).toEqual(FOUND);
    expect(await ask([label, label, label, "a".repeat(61)].join("."))).toEqual(NXDOMAIN);
  });
});

describe("listed names", () => {
  test("have the addresses of their list", async () => {
    expect((await ask("svc-gateway")).addresses).toEqual(["10.0.0.7"]);
    expect((await ask("SVC-Gateway", "AAAA")).addresses).toEqual(["fd00::7"]);
    expect(await ask("svc-gateway", "TXT")).toEqual(EMPTY);
    expect((await ask(LONGEST, "AAAA")).addresses).toHaveLength(8);
  });

  test("or those that the sidecar's own DNS has, which is asked for nothing else", async () => {
    asked.length = 0;
    expect((await ask("DB.default.svc.cluster.local")).addresses).toEqual(["10.1.1.1"]);
    expect(await ask("gone.default.svc.cluster.local")).toEqual({
      rcode: "SERVFAIL",
      addresses: [],
    });
    await ask("data.db.default.svc.cluster.local");
    expect(asked).toEqual(["db.default.svc.cluster.local", "gone.default.svc.cluster.local"]);
  });

  test("asked for once in 5 seconds, however often the agent asks", async () => {
    clock.advance(5_000);
    asked.length = 0;
    for (let i = 0; i < 100; i++)
      await Promise.all([
        ask("db.default.svc.cluster.local"),
        ask("gone.default.svc.cluster.local"),
      ]);
    expect(asked).toHaveLength(2);
    clock.advance(5_000);
    await ask("gone.default.svc.cluster.local");
    expect(asked).toHaveLength(3);
  });

  test.each<[string, object]>([
    ["a pattern", { name: "*.cluster.local" }],
    ["capitals", { name: "Db.local" }],
    ["a trailing dot", { name: "db." }],
    ["no name", { name: "" }],
    ["no address", { name: "db", addresses: [] }],
    ["a name for an address", { name: "db", addresses: ["db2"] }],
    ["too many addresses", { name: "db", addresses: Array.from({ length: 9 }, () => "10.0.0.1") }],
  ])("are not %s", (_name, value) => {
    expect(dnsNameSchema.safeParse(value).success).toBe(false);
  });
});

/** A message from its parts: by default a question for A of the root. */
function message({
  bits = 0x01_00,
  counts = [1, 0, 0, 0],
  rest = Buffer.from([0, 0, 1, 0, 1]),
}: {
  bits?: number;
  counts?: readonly number[];
  rest?: Buffer;
}): Buffer {
  const head = Buffer.alloc(12);
  [4711, bits, ...counts].forEach((value, index) => head.writeUInt16BE(value, index * 2));
  return Buffer.concat([head, rest]);
}

const NAME = packet.encode(question("api.github.com")).subarray(12);

describe("messages that are no plain query", () => {
  const FORMERR = 1;
  test.each<[string, Buffer, number]>([
    ["no question", message({ counts: [0, 0, 0, 0], rest: Buffer.alloc(0) }), FORMERR],
    [
      "two questions",
      message({ counts: [2, 0, 0, 0], rest: Buffer.concat([NAME, NAME]) }),
      FORMERR,
    ],
    ["counts without records", message({ counts: [65_535, 65_535, 65_535, 65_535] }), FORMERR],
    ["an additional record that is missing", message({ counts: [1, 0, 0, 1] }), FORMERR],
    ["an answer", message({ counts: [1, 1, 0, 0] }), FORMERR],
    ["an authority", message({ counts: [1, 0, 1, 0] }), FORMERR],
    ["bytes behind it", message({ rest: Buffer.concat([NAME, Buffer.from("secret")]) }), FORMERR],
    ["a name that is cut off", message({ rest: NAME.subarray(0, 9) }), FORMERR],
    ["a name without an end", message({ rest: Buffer.from([1, 97, 1, 97]) }), FORMERR],
    ["a type that is cut off", message({ rest: NAME.subarray(0, -3) }), FORMERR],
    ["a pointer to itself", message({ rest: Buffer.from([0xc0, 12, 0, 1, 0, 1]) }), FORMERR],
    ["a pointer ahead", message({ rest: Buffer.from([0xc0, 20, 0, 1, 0, 1, 0, 0, 0]) }), FORMERR],
    ["a reserved kind of label", message({ rest: Buffer.from([0x41, 0, 0, 1, 0, 1]) }), FORMERR],
    [
      "a name of 256 bytes",
      message({
        rest: Buffer.concat([
          ...Array.from({ length: 4 }, () =>
            Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 97)]),
          ),
          Buffer.from([0, 0, 1, 0, 1]),
        ]),
      }),
      FORMERR,
    ],
    [
      "two OPT records",
      packet.encode({ ...question("api.github.com"), additionals: [opt(), opt()] }),
      FORMERR,
    ],
    ["opcode IQUERY", message({ bits: 0x08_00, rest: NAME }), 4],
    ["opcode STATUS", message({ bits: 0x10_00, rest: NAME }), 4],
    ["opcode NOTIFY", message({ bits: 0x20_00, rest: NAME }), 4],
    ["opcode UPDATE", message({ bits: 0x28_00, rest: NAME }), 4],
    ["an unknown opcode", message({ bits: 0x78_00, rest: NAME }), 4],
  ])("%s is refused, with the header alone", async (_name, bytes, rcode) => {
    const { reply, outcome } = await answerDns(bytes, find);
    expect(outcome).toBe("malformed");
    expect(reply).toHaveLength(12);
    expect(reply?.readUInt16BE(0)).toBe(4711);
    expect(reply?.readUInt8(2) ?? 0).toBeGreaterThanOrEqual(0x80);
    expect((reply?.readUInt8(3) ?? 0) & 0xf).toBe(rcode);
    expect(reply?.subarray(4)).toEqual(Buffer.alloc(8));
  });

  test.each<[string, Buffer]>([
    ["nothing", Buffer.alloc(0)],
    ["less than a header", Buffer.alloc(11, 1)],
    ["a response", message({ bits: 0x81_80, rest: NAME })],
    ["a response to a response", message({ bits: 0x81_83, counts: [0, 0, 0, 0] })],
  ])("%s gets no reply", async (_name, bytes) => {
    expect(await answerDns(bytes, find)).toEqual({
      reply: undefined,
      outcome: "malformed",
      query: undefined,
    });
  });

  test.each([0, 2, 3, 4, 254, 255, 65_535])("class %i is refused", async (number) => {
    const rest = Buffer.from(NAME);
    rest.writeUInt16BE(number, rest.length - 2);
    const { reply, outcome } = await answerDns(message({ rest }), find);
    expect([outcome, reply?.readUInt8(3)]).toEqual(["refused", 0x85]);
    expect(reply?.subarray(12)).toEqual(rest);
  });

  test("whatever is cut off or changed in one byte: an answer of 512 bytes, or none", async () => {
    const whole = packet.encode({ ...question("api.github.com"), additionals: [opt()] });
    for (let at = 0; at < whole.length; at++)
      for (const byte of [0, 1, 0x3f, 0x40, 0xc0, 0xff]) {
        const changed = Buffer.from(whole);
        changed[at] = byte;
        for (const bytes of [changed, changed.subarray(0, at)]) {
          const { reply } = await answerDns(bytes, find);
          expect(reply?.length ?? 0).toBeLessThanOrEqual(512);
        }
      }
  });
});

describe("EDNS", () => {
  const reply = async (options: packet.Answer): Promise<packet.DecodedPacket> => {
    const bytes = packet.encode({ ...question("api.github.com"), additionals: [options] });
    return packet.decode((await answerDns(bytes, find)).reply as Buffer);
  };

  test("is answered with our own size, and without the client's options", async () => {
    const options = [{ code: 12, data: Buffer.alloc(300) }];
    const { answers, additionals } = await reply({ ...opt(), options } as packet.Answer);
    expect(answers).toMatchObject([{ data: "127.0.0.1" }]);
    expect(additionals).toMatchObject([
      { type: "OPT", udpPayloadSize: 1_232, ednsVersion: 0, extendedRcode: 0, options: [] },
    ]);
  });

  test("of another version is refused (BADVERS)", async () => {
    const { answers, additionals } = await reply(opt(1));
    expect(answers).toEqual([]);
    expect(additionals).toMatchObject([{ ednsVersion: 0, extendedRcode: 1 }]);
  });

  test("of a client that has none is not answered with it", async () => {
    const { reply: plain } = await answerDns(packet.encode(question("api.github.com")), find);
    expect(packet.decode(plain as Buffer).additionals).toEqual([]);
  });
});

test("nothing is decoded before the counts of its records are checked", () => {
  const decode = vi.spyOn(packet, "decode");
  readQuery(message({ counts: [1, 65_535, 65_535, 65_535] }));
  readQuery(message({ counts: [1, 0, 0, 3] }));
  expect(decode).not.toHaveBeenCalled();
  readQuery(message({}));
  expect(decode).toHaveBeenCalledOnce();
  decode.mockRestore();
});
