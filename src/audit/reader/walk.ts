/**
 * Walks a chain line by line and checks that each line follows the previous one. Bytes that do not
 * are an error, unless the next valid record is a CHAIN.TORN with their count and hash: then they
 * are the remains of a write that a killed process did not finish.
 */
import { isUtf8 } from "node:buffer";
import { createHash, type Hash } from "node:crypto";
import type { Line } from "../chain/lines.ts";
import { type AuditRecord, CHAIN, parseRecord } from "../chain/record.ts";

export interface Position {
  readonly seq: number;
  readonly hash: string;
}

/** Bytes that are not part of the chain, from the beginning of a line. */
export interface Broken {
  readonly line: number;
  /** Only the end of the line is missing. */
  readonly unfinished: boolean;
  readonly seq: number | undefined;
  readonly message: string;
  /** Number of bytes, without the newline that the writer added after them. */
  bytes: number;
  readonly digest: Hash;
}

export class ChainWalk {
  last: Position | undefined;
  broken: Broken | undefined;
  readonly #chain: string | undefined;

  /**
   * @param chain name that every record must have; undefined accepts the first record's
   * @param last undefined accepts any first record
   */
  constructor(chain: string | undefined, last: Position | undefined) {
    this.#chain = chain;
    this.last = last;
  }

  /** Returns the record if the line follows the previous one. */
  take(line: Line): AuditRecord | undefined {
    if (this.broken !== undefined && !line.text.includes(CHAIN.torn)) {
      skip(this.broken, line);
      return undefined;
    }
    const parsed = parseRecord(line.text);
    let fault: { readonly seq: number | undefined; readonly message: string } | undefined;
    if (parsed.kind === "bad")
      fault = line.ended
        ? parsed
        : {
            seq: parsed.seq,
            message: `the file ends in the middle of a record (${line.bytes.length} bytes)`,
          };
    // Two different byte sequences that are not UTF-8 could decode to the same text.
    else if (line.text.includes("\uFFFD") && !isUtf8(line.bytes))
      fault = { seq: parsed.record.seq, message: "it is not UTF-8" };
    else fault = this.#misplaced(parsed.record);
    if (fault === undefined && parsed.kind === "record") {
      const { record } = parsed;
      if (this.broken === undefined || this.#explains(record, this.broken)) {
        this.broken = undefined;
        this.last = { seq: record.seq, hash: record.hash };
        return record;
      }
    }
    if (this.broken === undefined) {
      this.broken = {
        line: line.number,
        unfinished: parsed.kind === "bad" && !line.ended,
        seq: fault?.seq,
        message: fault?.message ?? "",
        bytes: line.bytes.length,
        digest: createHash("sha256").update(line.bytes),
      };
    } else skip(this.broken, line);
    return undefined;
  }

  #explains(record: AuditRecord, broken: Broken): boolean {
    return (
      record.type === CHAIN.torn &&
      record.fields["bytes"] === broken.bytes &&
      record.fields["sha256"] === broken.digest.copy().digest("hex")
    );
  }

  #misplaced(record: AuditRecord): { readonly seq: number; readonly message: string } | undefined {
    const { seq } = record;
    if (this.#chain !== undefined && record.chain !== this.#chain)
      return { seq, message: `it belongs to the chain ${JSON.stringify(record.chain)}` };
    if (this.last === undefined) return undefined;
    const wanted = this.last.seq + 1;
    if (seq > wanted)
      return { seq, message: `record ${wanted} was expected here: ${missing(wanted, seq - 1)}` };
    if (seq < wanted)
      return {
        seq,
        message:
          `record ${wanted} was expected here: this one is a duplicate, or was inserted or ` +
          "moved",
      };
    if (record.prev !== this.last.hash) {
      return {
        seq,
        message:
          `it names another hash for its predecessor than record ${this.last.seq} has: one ` +
          "of the two was changed, or the chain was forked",
      };
    }
    return undefined;
  }
}

/** Adds one more line that is not part of the chain, and the end of the previous one. */
function skip(broken: Broken, { bytes }: Line): void {
  broken.digest.update("\n").update(bytes);
  broken.bytes += 1 + bytes.length;
}

const missing = (from: number, to: number): string =>
  from === to
    ? `record ${from} was deleted or moved`
    : `records ${from} to ${to} were deleted or moved`;
