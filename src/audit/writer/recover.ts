/**
 * Determines the state of a chain when a writer opens it: its last record, its last checkpoint, and
 * the remains of an unfinished write.
 */
import { statSync } from "node:fs";
import path from "node:path";
import {
  type SignedCheckpoint,
  hashOfCheckpoint,
  isSignedBy,
  parseCheckpoint,
} from "../chain/checkpoint.ts";
import { AuditError } from "../errors.ts";
import { CHECKPOINTS, listChain, segmentName } from "../chain/layout.ts";
import { readLines } from "../chain/lines.ts";
import { CHAIN, GENESIS } from "../chain/record.ts";
import type { PublicKey } from "../chain/signing-key.ts";
import { ChainWalk, type Position } from "../reader/walk.ts";

export const START: Position = { seq: 0, hash: GENESIS };

export interface SegmentState {
  /** Number of the segment, from 1; 0 if there is none. */
  readonly number: number;
  readonly size: number;
  /** Whether its first record, which links it to the previous segment, is written. */
  readonly tied: boolean;
  /** The last record of the previous segment. */
  readonly before: Position;
}

export interface CheckpointState {
  readonly n: number;
  readonly hash: string;
  readonly seq: number;
  /** Bytes of the complete lines in the file. */
  readonly size: number;
}

export interface ChainState {
  readonly last: Position;
  readonly segment: SegmentState;
  readonly checkpoints: CheckpointState;
  /** The last writer ended in an orderly way, and nothing follows. */
  readonly closed: boolean;
  /** The last line lacks its newline. */
  readonly unended: boolean;
  readonly torn: { readonly bytes: number; readonly sha256: string } | undefined;
  /** Bytes of an unfinished checkpoint. */
  readonly tornCheckpoint: number;
}

/** @throws AuditError if the chain must not be continued */
export function recoverChain(dir: string, chain: string, key: PublicKey): ChainState {
  const signed = lastCheckpoint(dir, chain, key);
  const { segments } = listChain(dir);
  const number = segments.at(-1) ?? 0;
  const before = number > 1 ? tail(dir, chain, number - 1, undefined).last : START;
  const end = number > 0 ? tail(dir, chain, number, before) : { ...EMPTY, last: START };
  const { checkpoint } = signed;
  if (checkpoint !== undefined) confirm(dir, checkpoint, end.last);
  return {
    last: end.last,
    segment: { number, size: end.size, tied: end.tied, before },
    checkpoints: {
      n: checkpoint?.n ?? 0,
      hash: signed.hash,
      seq: checkpoint?.seq ?? 0,
      size: signed.size,
    },
    closed: checkpoint?.final === true && checkpoint.seq === end.last.seq && end.torn === undefined,
    unended: end.unended,
    torn: end.torn,
    tornCheckpoint: signed.torn,
  };
}

/** A checkpoint is only written after its record is on the disk. */
function confirm(dir: string, checkpoint: SignedCheckpoint, last: Position): void {
  const cut = checkpoint.seq > last.seq;
  if (!cut && (checkpoint.seq < last.seq || checkpoint.hash === last.hash)) return;
  throw new AuditError(
    `The audit chain ${dir} ` +
      (cut
        ? `ends at record ${last.seq}, but record ${checkpoint.seq} was signed: its end was cut off`
        : `was rewritten: record ${last.seq} is not the one that was signed`) +
      ". " +
      `It was left unchanged: examine it with "svc audit verify ${dir}", then move the ` +
      "folder away; the next start begins a new chain.",
  );
}

/** Large enough for the longest record, and fast to read. */
const WINDOW = 8 * 1024 * 1024;

const EMPTY = { size: 0, tied: false, unended: false, torn: undefined };

interface Tail {
  readonly last: Position;
  readonly size: number;
  readonly tied: boolean;
  readonly unended: boolean;
  readonly torn: ChainState["torn"];
}

/** Reads the end of a segment: its last part, or all of it if that part is not valid by itself. */
function tail(dir: string, chain: string, number: number, before: Position | undefined): Tail {
  const file = path.join(dir, segmentName(number));
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined)
    throw new AuditError(
      `The audit chain's segment ${file} is missing. Restore it: the newest segments are ` +
        "required to continue the chain.",
    );
  if (size > WINDOW) {
    const quick = scan(file, chain, size, size - WINDOW, undefined);
    if (quick !== undefined && quick.torn === undefined) return quick;
  }
  const whole = scan(file, chain, size, 0, before);
  if (whole === undefined)
    throw new AuditError(
      `The audit chain's segment ${file} contains no record: examine it with "svc audit ` +
        `verify ${dir}", then move the folder away.`,
    );
  return whole;
}

function scan(
  file: string,
  chain: string,
  size: number,
  from: number,
  before: Position | undefined,
): Tail | undefined {
  const walk = new ChainWalk(chain, before);
  let tied = from > 0;
  let unended = false;
  for (const line of readLines(file, from, size)) {
    // The window begins with a partial line.
    if (from > 0 && line.number === 1) continue;
    const record = walk.take(line);
    unended = !line.ended;
    if (record !== undefined && (record.type === CHAIN.segment || record.type === CHAIN.start))
      tied = true;
  }
  if (walk.last === undefined) return undefined;
  const torn = walk.broken && {
    bytes: walk.broken.bytes,
    sha256: walk.broken.digest.digest("hex"),
  };
  return { last: walk.last, size, tied, unended, torn };
}

interface LastCheckpoint {
  readonly checkpoint: SignedCheckpoint | undefined;
  readonly hash: string;
  readonly size: number;
  readonly torn: number;
}

const CHECKPOINT_WINDOW = 64 * 1024;

function lastCheckpoint(dir: string, chain: string, key: PublicKey): LastCheckpoint {
  const file = path.join(dir, CHECKPOINTS);
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  let text: string | undefined;
  let torn = 0;
  for (const line of size > 0 ? readLines(file, Math.max(0, size - CHECKPOINT_WINDOW), size) : []) {
    if (line.ended) text = line.text;
    else torn = line.bytes.length;
  }
  if (text === undefined) return { checkpoint: undefined, hash: GENESIS, size: 0, torn };
  const checkpoint = parseCheckpoint(text);
  if (checkpoint === undefined || checkpoint.chain !== chain) {
    throw new AuditError(
      `${file} does not end with a checkpoint of the chain ${chain}: examine it with "svc ` +
        `audit verify ${dir}", then move the folder away; the next start begins a new chain.`,
    );
  }
  if (checkpoint.key !== key.fingerprint || !isSignedBy(checkpoint, key.key)) {
    throw new AuditError(
      `The audit chain ${dir} was signed with another key (${checkpoint.key}) than the ` +
        `current one (${key.fingerprint}). Restore the key, or move the folder away; the ` +
        "next start begins a new chain.",
    );
  }
  return { checkpoint, hash: hashOfCheckpoint(text), size: size - torn, torn };
}
