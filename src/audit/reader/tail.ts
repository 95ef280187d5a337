/**
 * Reads a chain as it grows, across its segments. Reading does not verify: lines that are not
 * records are counted and skipped.
 */
import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { type FoundChain, findChains, listChain, segmentName } from "../chain/layout.ts";
import { readLines } from "../chain/lines.ts";
import type { AuditRecord } from "../chain/record.ts";

export interface Found {
  readonly record: AuditRecord;
  /** The line as in the file. */
  readonly line: string;
}

export interface Filter {
  /**
   * Texts of which a line must contain at least one to be parsed; an empty list accepts every line.
   */
  readonly holds: readonly string[];
  matches(record: AuditRecord): boolean;
}

/** Clocks are sometimes set back by an hour: reading begins this much earlier. */
const SLACK_MS = 3_600_000;

export class ChainTail {
  /** Lines that could not be read. */
  unreadable = 0;
  readonly #dir: string;
  readonly #filter: Filter;
  #segment: number;
  #offset = 0;

  /** @param since milliseconds since the epoch: older segments are not opened */
  constructor({ dir }: FoundChain, filter: Filter, since: number | undefined) {
    this.#dir = dir;
    this.#filter = filter;
    const { segments } = listChain(dir);
    this.#segment = segments[0] ?? 1;
    if (since === undefined) return;
    for (const number of segments.toReversed()) {
      this.#segment = number;
      const first = firstTime(path.join(dir, segmentName(number)));
      if (first !== undefined && first <= since - SLACK_MS) return;
    }
  }

  /** Yields the records since the last call. */
  *read(): Generator<Found, void, void> {
    // A chain that was moved away has no more records; the others go on.
    while (existsSync(this.#dir)) {
      // Checked first: a segment that has a successor is complete.
      const next = listChain(this.#dir).segments.find((number) => number > this.#segment);
      const file = path.join(this.#dir, segmentName(this.#segment));
      const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
      for (const { text, bytes, offset, ended } of size > this.#offset
        ? readLines(file, this.#offset, size)
        : []) {
        // This line is still being written.
        if (!ended) break;
        this.#offset = offset + bytes.length + 1;
        const { holds } = this.#filter;
        if (holds.length > 0 && !holds.some((part) => text.includes(part))) continue;
        const record = parse(text);
        if (record === undefined) this.unreadable++;
        else if (this.#filter.matches(record)) yield { record, line: text };
      }
      if (next === undefined) return;
      this.#segment = next;
      this.#offset = 0;
    }
  }
}

function firstTime(file: string): number | undefined {
  for (const { text, ended } of readLines(file)) {
    const record = ended ? parse(text) : undefined;
    if (record !== undefined) return Date.parse(record.time);
  }
  return undefined;
}

function parse(text: string): AuditRecord | undefined {
  try {
    const record = JSON.parse(text) as Partial<AuditRecord> | null;
    const whole =
      typeof record?.time === "string" &&
      typeof record.type === "string" &&
      typeof record.chain === "string" &&
      typeof record.fields === "object";
    return whole && record.fields !== null ? (record as AuditRecord) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * AuditLog merges all chains of some folders by time; the records of one chain keep their order
 * whatever its clock did.
 */
export class AuditLog {
  readonly #dirs: readonly string[];
  readonly #filter: Filter;
  readonly #since: number | undefined;
  /** By the chain's folder. */
  readonly #tails = new Map<string, ChainTail>();

  /** @throws AuditError if a folder cannot be read */
  constructor(dirs: readonly string[], filter: Filter, since: number | undefined) {
    this.#dirs = dirs;
    this.#filter = filter;
    this.#since = since;
    this.#discover();
  }

  get chains(): number {
    return this.#tails.size;
  }

  get unreadable(): number {
    return [...this.#tails.values()].reduce((sum, tail) => sum + tail.unreadable, 0);
  }

  /** Yields the records since the last call, including those of new writers. */
  *read(): Generator<Found, void, void> {
    this.#discover();
    const heads: { next: Found; readonly rest: Generator<Found, void, void> }[] = [];
    for (const tail of this.#tails.values()) {
      const rest = tail.read();
      const first = rest.next();
      if (first.done !== true) heads.push({ next: first.value, rest });
    }
    while (heads.length > 0) {
      const head = heads.reduce((a, b) => (b.next.record.time < a.next.record.time ? b : a));
      yield head.next;
      const following = head.rest.next();
      if (following.done === true) heads.splice(heads.indexOf(head), 1);
      else head.next = following.value;
    }
  }

  #discover(): void {
    for (const dir of this.#dirs) {
      if (!existsSync(dir) && this.#tails.size > 0) continue;
      for (const chain of findChains(dir)) {
        if (!this.#tails.has(chain.dir))
          this.#tails.set(chain.dir, new ChainTail(chain, this.#filter, this.#since));
      }
    }
  }
}
