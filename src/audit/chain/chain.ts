/**
 * The growing end of a chain, in memory: events become records at once, in batches that each belong
 * to one segment.
 */
import type { AppendOutcome, AuditEvent } from "../event.ts";
import { segmentName } from "./layout.ts";
import { CHAIN, encodeFields, type SealedRecord, sealRecord } from "./record.ts";
import type { Position } from "../reader/walk.ts";

export type Done = (outcome: AppendOutcome) => void;

export interface ChainEntry {
  readonly type: string;
  readonly done: Done | undefined;
}

/** Content of one commit. */
export interface Batch {
  readonly segment: number;
  /** Kept as one string, which V8 flattens once, when it is written. */
  text: string;
  readonly entries: ChainEntry[];
  /** Number of entries with a waiter. */
  awaited: number;
  /** End of the chain after this commit. */
  end: ChainPoint;
}

export interface ChainPoint {
  readonly last: Position;
  readonly segment: number;
  /** Bytes of the segment. */
  readonly size: number;
  /** Whether the segment's first record exists. */
  readonly tied: boolean;
  /** The last record of the previous segment. */
  readonly before: Position;
}

export class Chain {
  /** Characters of chained records that no batch has taken yet. */
  backlog = 0;
  /** Number of those records that have a waiter. */
  awaited = 0;
  #point: ChainPoint;
  #queue: Batch[] = [];
  readonly #name: string;
  readonly #segmentBytes: number;
  readonly #start: AuditEvent["fields"];

  /** @param start fields of the first record of a new chain */
  constructor(name: string, segmentBytes: number, start: AuditEvent["fields"], point: ChainPoint) {
    this.#name = name;
    this.#segmentBytes = segmentBytes;
    this.#start = start;
    this.#point = point;
  }

  add(type: string, fields: AuditEvent["fields"], time: string, done: Done | undefined): void {
    const encoded = encodeFields(fields);
    if (!this.#point.tied && type !== CHAIN.torn) this.#tie(time);
    let sealed = this.#seal(type, encoded, time);
    let bytes = Buffer.byteLength(sealed.line) + 1;
    if (this.#point.size + bytes > this.#segmentBytes && this.#point.size > 0 && this.#point.tied) {
      this.#point = {
        ...this.#point,
        segment: this.#point.segment + 1,
        size: 0,
        tied: false,
        before: this.#point.last,
      };
      this.#tie(time);
      sealed = this.#seal(type, encoded, time);
      bytes = Buffer.byteLength(sealed.line) + 1;
    }
    this.#push(sealed, bytes, { type, done });
  }

  take(): Batch | undefined {
    const batch = this.#queue.shift();
    if (batch !== undefined) {
      this.backlog -= batch.text.length;
      this.awaited -= batch.awaited;
    }
    return batch;
  }

  /** Drops uncommitted records and continues from the committed ones. */
  reset(point: ChainPoint): readonly ChainEntry[] {
    const entries = this.#queue.flatMap((batch) => batch.entries);
    this.#queue = [];
    this.backlog = 0;
    this.awaited = 0;
    this.#point = point;
    return entries;
  }

  /** A segment begins with a record that names its predecessor. */
  #tie(time: string): void {
    const { segment, before } = this.#point;
    const first = segment <= 1;
    const type = first ? CHAIN.start : CHAIN.segment;
    const fields = first
      ? this.#start
      : { previous: segmentName(segment - 1), lastSeq: before.seq, lastHash: before.hash };
    this.#point = { ...this.#point, segment: Math.max(segment, 1), tied: true };
    const sealed = this.#seal(type, encodeFields(fields), time);
    this.#push(sealed, Buffer.byteLength(sealed.line) + 1, { type, done: undefined });
  }

  #seal(type: string, fields: string, time: string): SealedRecord {
    const { last } = this.#point;
    return sealRecord(
      { chain: this.#name, seq: last.seq + 1, time, type, prev: last.hash },
      fields,
    );
  }

  #push(sealed: SealedRecord, bytes: number, entry: ChainEntry): void {
    const { last, segment, tied, before, size } = this.#point;
    this.#point = {
      last: { seq: last.seq + 1, hash: sealed.hash },
      segment,
      tied,
      before,
      size: size + bytes,
    };
    let batch = this.#queue.at(-1);
    if (batch === undefined || batch.segment !== segment) {
      batch = { segment, text: "", entries: [], awaited: 0, end: this.#point };
      this.#queue.push(batch);
    }
    batch.text += `${sealed.line}\n`;
    batch.entries.push(entry);
    batch.end = this.#point;
    this.backlog += sealed.line.length + 1;
    if (entry.done !== undefined) {
      batch.awaited++;
      this.awaited++;
    }
  }
}
