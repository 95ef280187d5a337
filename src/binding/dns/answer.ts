/**
 * Answers one DNS message of the agent. Nothing of a query ever leaves the sidecar: only listed
 * names are looked up, whose text is not the agent's.
 */
import { isIPv4 } from "node:net";
import { CLASS_IN, type DnsQuery, Rcode, readQuery, Type, writeReply } from "./message.ts";
import type { FindName, NameFinding } from "./names.ts";

/**
 * `bound` and `listed`: the name exists; a type without addresses has an empty answer (NODATA).
 * `unknown`: NXDOMAIN. `unavailable`: SERVFAIL. `refused`: another class than IN. `malformed`: not
 * a query that is understood.
 */
export type DnsOutcome = NameFinding["kind"] | "refused" | "malformed";

export interface DnsAnswer {
  /** undefined: no reply is sent. */
  readonly reply: Buffer | undefined;
  readonly outcome: DnsOutcome;
  /** undefined if the message could not be read. */
  readonly query: DnsQuery | undefined;
}

export async function answerDns(message: Buffer, find: FindName): Promise<DnsAnswer> {
  const read = readQuery(message);
  if (read.kind !== "query") {
    const reply = read.kind === "invalid" ? read.reply : undefined;
    return { reply, outcome: "malformed", query: undefined };
  }
  const { query } = read;
  if (query.class !== CLASS_IN)
    return { reply: writeReply(query, Rcode.refused), outcome: "refused", query };
  const finding = await find(query.name);
  return { reply: replyTo(query, finding), outcome: finding.kind, query };
}

function replyTo(query: DnsQuery, finding: NameFinding): Buffer {
  if (finding.kind === "unknown") return writeReply(query, Rcode.nameError);
  if (finding.kind === "unavailable") return writeReply(query, Rcode.serverFailure);
  return writeReply(query, Rcode.success, ofType(query.type, finding.addresses));
}

/**
 * Returns the addresses of a type. Other types of a name (HTTPS, SVCB, CNAME, MX, TXT) have no
 * record, so that no client goes elsewhere. ANY: RFC 8482, section 4.1.
 */
function ofType(type: number, addresses: readonly string[]): readonly string[] {
  if (type === Type.A) return addresses.filter(isIPv4);
  if (type === Type.AAAA) return addresses.filter((address) => !isIPv4(address));
  return type === Type.ANY ? addresses : [];
}
