/**
 * Compares a chain's checkpoints with its records: each checkpoint must be signed by the writer and
 * match its record.
 */
import { statSync } from "node:fs";
import path from "node:path";
import {
  hashOfCheckpoint,
  isSignedBy,
  parseCheckpoint,
  type SignedCheckpoint,
} from "./checkpoint.ts";
import { Fault } from "./fault.ts";
import { CHECKPOINTS } from "./layout.ts";
import { type Line, readLines } from "./lines.ts";
import { GENESIS } from "./record.ts";
import type { PublicKey } from "./signing-key.ts";
import type { Position } from "../reader/walk.ts";

interface Read {
  readonly checkpoint: SignedCheckpoint;
  readonly line: number;
}

export class SignedPoints {
  /** The newest checkpoint whose record was found. */
  met: SignedCheckpoint | undefined;
  count = 0;
  readonly #lines: Iterator<Line, void, void>;
  readonly #chain: string | undefined;
  readonly #keys: readonly PublicKey[];
  readonly #live: boolean;
  #next: Read | undefined;
  #prev = GENESIS;
  #seq = 0;

  /**
   * Reads the current content of the file, so that later records cannot lack their checkpoint.
   * @param live an unfinished last line may still be in the process of being written
   * @throws Fault
   */
  constructor(dir: string, chain: string | undefined, keys: readonly PublicKey[], live: boolean) {
    const file = path.join(dir, CHECKPOINTS);
    const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
    this.#lines = size > 0 ? readLines(file, 0, size) : [][Symbol.iterator]();
    this.#chain = chain;
    this.#keys = keys;
    this.#live = live;
    this.#advance();
  }

  /**
   * Records up to `seq` are missing: there must be a checkpoint of exactly that record. @throws
   * Fault
   */
  skipTo(seq: number): SignedCheckpoint {
    while (this.#next !== undefined && this.#next.checkpoint.seq < seq) this.#advance();
    if (this.#next?.checkpoint.seq !== seq)
      throw new Fault({ file: CHECKPOINTS, seq }, "there is no checkpoint of this record");
    this.met = this.#next.checkpoint;
    this.#advance();
    return this.met;
  }

  /** @throws Fault if the record is not the signed one */
  pass({ seq, hash }: Position, place: { readonly file: string; readonly line: number }): void {
    if (this.#next?.checkpoint.seq !== seq) return;
    const { checkpoint, line } = this.#next;
    if (checkpoint.hash !== hash) {
      const from = (this.met?.seq ?? 0) + 1;
      throw new Fault(
        { ...place, seq },
        `its hash differs from the signed one (${CHECKPOINTS} line ${line}): records from ` +
          `${from} on were rewritten`,
      );
    }
    this.met = checkpoint;
    this.#advance();
  }

  /** The first signed record that is missing. */
  get missing(): Read | undefined {
    return this.#next;
  }

  #advance(): void {
    const line = this.#lines.next().value ?? undefined;
    this.#next = undefined;
    if (line === undefined) return;
    const at = { file: CHECKPOINTS, line: line.number };
    if (!line.ended) {
      if (this.#live) return;
      throw new Fault(
        at,
        `the file ends in the middle of a checkpoint (${line.bytes.length} bytes): the ` +
          "writer was killed and not started since, or the end was cut off",
      );
    }
    const checkpoint = parseCheckpoint(line.text);
    if (checkpoint === undefined) throw new Fault(at, "it is not a checkpoint");
    const key = this.#keys.find(({ fingerprint }) => fingerprint === checkpoint.key);
    if (key === undefined)
      throw new Fault(
        { ...at, seq: checkpoint.seq },
        `it is signed with a key that is not trusted (${checkpoint.key})`,
      );
    if (!isSignedBy(checkpoint, key.key))
      throw new Fault(
        { ...at, seq: checkpoint.seq },
        "its signature is wrong: it was forged or edited",
      );
    if (this.#chain !== undefined && checkpoint.chain !== this.#chain)
      throw new Fault(at, `it belongs to the chain ${JSON.stringify(checkpoint.chain)}`);
    if (checkpoint.seq === this.#seq)
      throw new Fault(
        { ...at, seq: checkpoint.seq },
        "it signs the same record as the previous checkpoint: a duplicate, or the chain was forked",
      );
    if (
      checkpoint.n !== this.count + 1 ||
      checkpoint.prev !== this.#prev ||
      checkpoint.seq < this.#seq
    ) {
      throw new Fault(
        { ...at, seq: checkpoint.seq },
        `it does not follow the previous checkpoint: number ${this.count + 1} was ` +
          `expected, this is ${checkpoint.n}; checkpoints were deleted, inserted or moved`,
      );
    }
    this.count++;
    this.#prev = hashOfCheckpoint(line.text);
    this.#seq = checkpoint.seq;
    this.#next = { checkpoint, line: line.number };
  }
}
