/**
 * Verifies a chain from its files alone, in a stream with constant memory, up to the first error.
 */
import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { Fault, type FaultPlace } from "../chain/fault.ts";
import {
  CHECKPOINTS,
  type FoundChain,
  listChain,
  PUBLIC_KEY,
  segmentName,
} from "../chain/layout.ts";
import { type Line, readLines } from "../chain/lines.ts";
import { livingWriter } from "../writer/lock.ts";
import { type AuditRecord, CHAIN, GENESIS, isChainType } from "../chain/record.ts";
import { SignedPoints } from "../chain/signed.ts";
import { loadPublicKey, type PublicKey } from "../chain/signing-key.ts";
import { ChainWalk, type Position } from "./walk.ts";
import type { Witness } from "./witness.ts";

export interface VerifyOptions {
  /** Trusted public keys; if empty, the one in the chain's folder, which proves less. */
  readonly keys: readonly PublicKey[];
  readonly witnesses: readonly Witness[];
  /** Records up to this one, which a checkpoint signs, were archived. */
  readonly from: Position | { readonly seq: number } | undefined;
  /** Maximum number of unsigned records after the last checkpoint. */
  readonly maxUnsigned: number;
}

export interface ChainReport {
  readonly chain: string;
  readonly dir: string;
  records: number;
  segments: number;
  first: number;
  last: Position;
  checkpoints: number;
  /** Number of the last signed record; 0 if there is none. */
  signed: number;
  /** Records after that one. */
  unsigned: number;
  /** The writer ended in an orderly way. */
  closed: boolean;
  /** The writer is running. */
  live: boolean;
  /** Fingerprints of the trusted keys. */
  readonly keys: readonly string[];
  /** The key comes only from the chain's folder. */
  readonly keyFromFolder: boolean;
  gaps: number;
  lost: number;
  torn: number;
  starts: number;
  clockBack: number;
  fault: { readonly place: FaultPlace; readonly message: string } | undefined;
}

/** @throws AuditError if the chain cannot be verified: no key, no permission to read */
export function verifyChain(found: FoundChain, options: VerifyOptions): ChainReport {
  const keyFromFolder = options.keys.length === 0;
  const keys = keyFromFolder ? [loadPublicKey(path.join(found.dir, PUBLIC_KEY))] : options.keys;
  const report: ChainReport = {
    chain: found.name,
    dir: found.dir,
    records: 0,
    segments: 0,
    first: 0,
    last: { seq: 0, hash: GENESIS },
    checkpoints: 0,
    signed: 0,
    unsigned: 0,
    closed: false,
    live: livingWriter(found.dir) !== undefined,
    keys: keys.map(({ fingerprint }) => fingerprint),
    keyFromFolder,
    gaps: 0,
    lost: 0,
    torn: 0,
    starts: 0,
    clockBack: 0,
    fault: undefined,
  };
  try {
    new Verification(found, options, keys, report).run();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    report.fault = { place: error.place, message: error.message };
  }
  return report;
}

class Verification {
  readonly #found: FoundChain;
  readonly #options: VerifyOptions;
  readonly #keys: readonly PublicKey[];
  readonly #report: ChainReport;
  readonly #signed: SignedPoints;
  readonly #walk: ChainWalk;
  readonly #witnesses: Map<number, Witness[]>;
  #time = "";
  /** Number of the last record of a start, until the checkpoint that every start writes. */
  #start: number | undefined;
  /** The last checkpoint was the end of a chain. */
  #ended = false;

  constructor(
    found: FoundChain,
    options: VerifyOptions,
    keys: readonly PublicKey[],
    report: ChainReport,
  ) {
    this.#found = found;
    this.#options = options;
    this.#keys = keys;
    this.#report = report;
    const name = found.named ? undefined : found.name;
    // Read before the segments are listed: everything signed by now has already been written.
    this.#signed = new SignedPoints(found.dir, name, keys, report.live);
    const last =
      options.from === undefined
        ? { seq: 0, hash: GENESIS }
        : this.#signed.skipTo(options.from.seq);
    if (options.from !== undefined && "hash" in options.from && options.from.hash !== last.hash) {
      throw new Fault(
        { file: CHECKPOINTS, seq: last.seq },
        "its checkpoint has another hash than the given one",
      );
    }
    this.#walk = new ChainWalk(name, { seq: last.seq, hash: last.hash });
    report.first = last.seq + 1;
    report.last = { seq: last.seq, hash: last.hash };
    this.#witnesses = Map.groupBy(options.witnesses, ({ seq }) => seq);
  }

  run(): void {
    const { segments, strangers } = listChain(this.#found.dir);
    const first = segments[0];
    if (this.#options.from === undefined && first !== undefined && first !== 1) {
      throw new Fault(
        { file: segmentName(1) },
        `the segment is missing, and the first existing one is ${segmentName(first)}: if ` +
          "the older ones were archived, name the last archived record with --from-checkpoint",
      );
    }
    // Listed at once, and soon after the checkpoints: records that a running writer appends later
    // are not verified.
    const sizes = segments.map(
      (number) => statSync(path.join(this.#found.dir, segmentName(number))).size,
    );
    for (const [i, number] of segments.entries()) {
      const expected = (segments[i - 1] ?? number - 1) + 1;
      if (number !== expected)
        throw new Fault({ file: segmentName(expected) }, "the segment is missing: it was deleted");
      this.#segment(number, sizes[i] ?? 0, i === segments.length - 1);
    }
    if (strangers[0] !== undefined)
      throw new Fault(
        { file: strangers[0] },
        "the file has no place in the chain: it was inserted or renamed, or the chain was forked",
      );
    this.#end();
  }

  #segment(number: number, size: number, last: boolean): void {
    const file = segmentName(number);
    const before = this.#walk.last;
    let tied = false;
    const full = path.join(this.#found.dir, file);
    for (const line of readLines(full, 0, size)) {
      const record = this.#walk.take(line);
      if (record === undefined) continue;
      if (!line.ended && !(last && this.#report.live))
        throw new Fault(
          { file, line: line.number, seq: record.seq },
          "its line is incomplete: the end of the file was cut off, or the writer was " +
            "killed and not started since",
        );
      if (!tied && record.type !== CHAIN.torn) {
        this.#tie(record, number, before, { file, line: line.number });
        tied = true;
      } else if (tied && (record.type === CHAIN.segment || record.type === CHAIN.start)) {
        throw new Fault(
          { file, line: line.number, seq: record.seq },
          `a ${record.type} record stands in the middle of a segment`,
        );
      }
      this.#record(record, line, file);
    }
    this.#unfinished(file, last);
    this.#report.segments++;
  }

  /** Each segment names its predecessor. */
  #tie(
    { type, fields, seq }: AuditRecord,
    number: number,
    before: Position | undefined,
    place: { readonly file: string; readonly line: number },
  ): void {
    const at = { ...place, seq };
    if (number === 1) {
      if (type !== CHAIN.start)
        throw new Fault(
          at,
          `the chain does not begin with ${CHAIN.start}: its first records were deleted`,
        );
      if (!this.#keys.some(({ pem }) => pem === fields["publicKey"]))
        throw new Fault(
          at,
          "the chain begins with another public key than the one that is trusted",
        );
      return;
    }
    if (type !== CHAIN.segment)
      throw new Fault(
        at,
        `the segment does not begin with ${CHAIN.segment}: its first records were deleted, ` +
          "or it was inserted",
      );
    if (
      fields["previous"] !== segmentName(number - 1) ||
      fields["lastSeq"] !== before?.seq ||
      fields["lastHash"] !== before?.hash
    ) {
      throw new Fault(
        at,
        `the segment says that it follows ${String(fields["previous"])} (record ` +
          `${String(fields["lastSeq"])}), not ${segmentName(number - 1)} (record ` +
          `${before?.seq}): segments were moved, or the chain was forked`,
      );
    }
  }

  #record(record: AuditRecord, line: Line, file: string): void {
    const report = this.#report;
    const { seq, hash, type, time } = record;
    const at = { file, line: line.number, seq };
    if (time < this.#time) report.clockBack++;
    this.#time = time;
    if (this.#ended && type !== CHAIN.opened && type !== CHAIN.segment)
      throw new Fault(
        at,
        `the chain was closed and signed before it, and no ${CHAIN.opened} record ` +
          "continues it: it was appended by someone else",
      );
    if (type !== CHAIN.segment) this.#ended = false;
    if (isChainType(type)) this.#event(record);
    else if (this.#start !== undefined)
      throw new Fault(
        at,
        `a writer signs when it starts, before any other record; record ${this.#start} was ` +
          "not signed: what follows it was appended by someone else",
      );
    this.#signed.pass({ seq, hash }, { file, line: line.number });
    if (this.#signed.met?.seq === seq) {
      report.signed = seq;
      this.#start = undefined;
      this.#ended = this.#signed.met.final;
    }
    for (const witness of this.#witnesses.get(seq) ?? []) {
      if (witness.hash !== hash)
        throw new Fault(
          at,
          `its hash differs from the one in ${witness.source}: the chain was rewritten`,
        );
    }
    report.records++;
    report.last = { seq, hash };
  }

  #event({ type, fields, seq }: AuditRecord): void {
    const report = this.#report;
    if (type === CHAIN.opened || type === CHAIN.resumed) {
      report.starts++;
      this.#start = seq;
    } else if (type === CHAIN.torn) report.torn++;
    else if (type === CHAIN.gap) {
      report.gaps++;
      report.lost += Number(fields["lost"]);
    }
  }

  #unfinished(file: string, last: boolean): void {
    const { broken } = this.#walk;
    if (broken === undefined) return;
    const { unfinished } = broken;
    if (unfinished && last && this.#report.live) {
      this.#walk.broken = undefined;
      return;
    }
    throw new Fault(
      { file, line: broken.line, seq: broken.seq },
      unfinished
        ? `${broken.message}: the end was cut off, or the writer was killed and not started since`
        : broken.message,
    );
  }

  #end(): void {
    const report = this.#report;
    const { missing, met, count } = this.#signed;
    if (missing !== undefined) {
      const { seq } = missing.checkpoint;
      throw new Fault(
        { file: CHECKPOINTS, line: missing.line, seq },
        "the record was signed, but is missing: the chain ends at record " +
          `${report.last.seq}, its end was cut off`,
      );
    }
    report.checkpoints = count;
    report.signed = met?.seq ?? 0;
    report.unsigned = report.last.seq - report.signed;
    report.closed = met?.final === true && report.unsigned === 0;
    if (count === 0 && !existsSync(path.join(this.#found.dir, CHECKPOINTS)))
      throw new Fault(
        { file: CHECKPOINTS },
        "the file is missing: nothing is signed, so nothing is proven",
      );
    if (report.unsigned > this.#options.maxUnsigned) {
      throw new Fault(
        { file: CHECKPOINTS },
        `the last ${report.unsigned} records are not signed, more than a writer leaves ` +
          `(${this.#options.maxUnsigned}): checkpoints were cut off`,
      );
    }
    for (const { seq, source } of this.#options.witnesses) {
      if (seq > report.last.seq)
        throw new Fault(
          { file: CHECKPOINTS, seq },
          `the record is in ${source}, but not in the chain: the chain and its checkpoints ` +
            `were truncated to record ${report.last.seq}`,
        );
    }
  }
}
