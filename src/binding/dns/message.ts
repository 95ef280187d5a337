/**
 * DNS messages (RFC 1035, section 4; EDNS: RFC 6891): reads a query, and writes the reply. Replies
 * never exceed 512 bytes, the size that every client accepts over UDP.
 */
import { isIPv4 } from "node:net";
import packet from "dns-packet";

export interface DnsQuery {
  readonly id: number;
  /** Flags that are copied to the reply. */
  readonly flags: number;
  /** Name as it was sent, without the trailing dot. A dot or `\` within a label follows a `\`. */
  readonly name: string;
  /** Number of the type, see {@link Type}. */
  readonly type: number;
  readonly class: number;
  /** Bytes of the question, which the reply repeats: clients vary the case of names (0x20). */
  readonly question: Buffer;
  /** Whether the query has an OPT record (EDNS). */
  readonly edns: boolean;
}

export type ReadQuery =
  | { readonly kind: "query"; readonly query: DnsQuery }
  /** A response, or less than a header: no reply, so that two servers never answer each other. */
  | { readonly kind: "ignored" }
  | { readonly kind: "invalid"; readonly reply: Buffer };

/** Response codes (RFC 1035, section 4.1.1). */
export const Rcode = {
  success: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
} as const;

export type Rcode = (typeof Rcode)[keyof typeof Rcode];

/** Types (RFC 1035, section 3.2.2; RFC 3596; RFC 9460). */
export const Type = { A: 1, AAAA: 28, SVCB: 64, HTTPS: 65, ANY: 255 } as const;

export const CLASS_IN = 1;

/** Time in seconds for which clients may keep an address: short, because a policy may change. */
export const TTL_SECONDS = 5;

/** Maximum number of addresses in a reply: with the longest name, they fit into 512 bytes. */
export const MOST_ADDRESSES = 8;

const HEADER_BYTES = 12;
const MAX_LABEL_BYTES = 63;
/** Bytes of type and class. */
const QUESTION_TAIL_BYTES = 4;
const RESPONSE_BIT = 0x80_00;
const OPCODE_BITS = 0x78_00;
const COPIED_FLAGS = packet.RECURSION_DESIRED | packet.CHECKING_DISABLED;
/** RFC 6891, section 6.2.5; the value that DNS servers agreed on (dnsflagday.net/2020). */
const UDP_PAYLOAD_BYTES = 1_232;
/** Upper 8 bits of the extended response code BADVERS, 16 (RFC 6891, section 6.1.3). */
const BAD_VERSION = 1;

/**
 * Reads a query: exactly one question, at most two additional records (EDNS, a signature), and
 * nothing behind them. The counts are checked before anything is allocated for them.
 */
export function readQuery(message: Buffer): ReadQuery {
  if (message.length < HEADER_BYTES) return { kind: "ignored" };
  const word = (index: number): number => message.readUInt16BE(index * 2);
  const [id, bits] = [word(0), word(1)];
  if ((bits & RESPONSE_BIT) !== 0) return { kind: "ignored" };
  const invalid = (rcode: Rcode): ReadQuery => ({
    kind: "invalid",
    reply: header({ id, flags: bits & (COPIED_FLAGS | OPCODE_BITS) }, rcode, [0, 0, 0]),
  });
  if ((bits & OPCODE_BITS) !== 0) return invalid(Rcode.notImplemented);
  if (word(2) !== 1 || word(3) !== 0 || word(4) !== 0 || word(5) > 2)
    return invalid(Rcode.formatError);
  const name = readName(message);
  if (name === undefined) return invalid(Rcode.formatError);
  const options = readOptions(message);
  if (options === undefined || options.length > 1) return invalid(Rcode.formatError);
  const query = {
    id,
    flags: bits & COPIED_FLAGS,
    name: name.text,
    type: message.readUInt16BE(name.end),
    class: message.readUInt16BE(name.end + 2),
    question: message.subarray(HEADER_BYTES, name.end + QUESTION_TAIL_BYTES),
    edns: options.length === 1,
  };
  if ((options[0] ?? 0) !== 0)
    return { kind: "invalid", reply: write(query, Rcode.success, [], BAD_VERSION) };
  return { kind: "query", query };
}

/** Returns the name of the question; undefined if it is cut off, compressed or too long. */
function readName(message: Buffer): { readonly text: string; readonly end: number } | undefined {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = message[at]; length !== 0; length = message[at]) {
    if (length === undefined || length > MAX_LABEL_BYTES) return undefined;
    const label = message.toString("latin1", at + 1, at + 1 + length);
    labels.push(label.replaceAll(/[.\\]/g, String.raw`\$&`));
    at += 1 + length;
  }
  const end = at + 1;
  return end + QUESTION_TAIL_BYTES > message.length ? undefined : { text: labels.join("."), end };
}

/** Returns the EDNS version of each OPT record; undefined for a message that cannot be decoded. */
function readOptions(message: Buffer): readonly number[] | undefined {
  try {
    const { additionals = [] } = packet.decode(message);
    if (packet.decode.bytes !== message.length) return undefined;
    return additionals.flatMap((each) => (each.type === "OPT" ? [each.ednsVersion] : []));
  } catch {
    return undefined;
  }
}

/** @param addresses at most {@link MOST_ADDRESSES} */
export function writeReply(
  query: DnsQuery,
  rcode: Rcode,
  addresses: readonly string[] = [],
): Buffer {
  return write(query, rcode, addresses, 0);
}

function write(
  query: DnsQuery,
  rcode: Rcode,
  addresses: readonly string[],
  extendedRcode: number,
): Buffer {
  return Buffer.concat([
    header(query, rcode, [1, addresses.length, query.edns ? 1 : 0]),
    query.question,
    ...addresses.map(addressRecord),
    ...(query.edns ? [optRecord(extendedRcode)] : []),
  ]);
}

/** Without "recursion available", Go's resolver takes an answer without records for a failure. */
function header(
  { id, flags }: Pick<DnsQuery, "id" | "flags">,
  rcode: Rcode,
  [questions, answers, additionals]: readonly [number, number, number],
): Buffer {
  const bits = RESPONSE_BIT | flags | packet.RECURSION_AVAILABLE | rcode;
  const bytes = Buffer.alloc(HEADER_BYTES);
  [id, bits, questions, answers, 0, additionals].forEach((value, index) =>
    bytes.writeUInt16BE(value, index * 2),
  );
  return bytes;
}

/** Pointer to the question's name (RFC 1035, section 4.1.4). */
const SAME_NAME = Buffer.from([0xc0, HEADER_BYTES]);

function addressRecord(address: string): Buffer {
  const type = isIPv4(address) ? "A" : "AAAA";
  const record = { type, name: ".", ttl: TTL_SECONDS, data: address } as const;
  const encoded = packet.encode({ answers: [record] });
  // The library does not compress: its record begins with the one byte of the root's name.
  return Buffer.concat([SAME_NAME, encoded.subarray(HEADER_BYTES + 1)]);
}

function optRecord(extendedRcode: number): Buffer {
  const record = {
    type: "OPT",
    name: ".",
    udpPayloadSize: UDP_PAYLOAD_BYTES,
    extendedRcode,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [],
  } as const;
  return packet.encode({ additionals: [{ ...record, options: [] }] }).subarray(HEADER_BYTES);
}
