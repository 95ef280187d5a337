/**
 * A checkpoint is the writer's signature of a record's hash, and thereby of every record before it.
 * Checkpoints live beside the segments, one line of canonical JSON each, linked like records: a
 * truncated tail leaves a checkpoint without its record.
 */
import { hash as digest, sign, verify, type KeyObject } from "node:crypto";
import canonicalize from "canonicalize";

export interface Checkpoint {
  readonly v: 1;
  readonly chain: string;
  /** Number of the checkpoint, from 1. */
  readonly n: number;
  /** SHA-256 of the line of the previous checkpoint. */
  readonly prev: string;
  /** The signed record. */
  readonly seq: number;
  readonly hash: string;
  readonly time: string;
  /** Number of segments of the chain. */
  readonly segments: number;
  /** The writer ended in an orderly way: only a new start may follow. */
  readonly final: boolean;
  /** Fingerprint of the key. */
  readonly key: string;
}

export interface SignedCheckpoint extends Checkpoint {
  /** Ed25519, base64. */
  readonly sig: string;
}

/** Prefix of the signed text, so that the signature is valid only in this context. */
const DOMAIN = "svc audit checkpoint v1\n";

const message = (checkpoint: Checkpoint): Buffer => Buffer.from(DOMAIN + canonicalize(checkpoint));

/** Returns the line, without its newline. */
export function signCheckpoint(checkpoint: Checkpoint, privateKey: KeyObject): string {
  const sig = sign(null, message(checkpoint), privateKey).toString("base64");
  return canonicalize({ ...checkpoint, sig }) as string;
}

export const isSignedBy = (
  { sig, ...checkpoint }: SignedCheckpoint,
  publicKey: KeyObject,
): boolean => verify(null, message(checkpoint), publicKey, Buffer.from(sig, "base64"));

export const hashOfCheckpoint = (line: string): string => digest("sha256", line, "hex");

/** Returns undefined if the line is not exactly a checkpoint. Does not verify its signature. */
export function parseCheckpoint(line: string): SignedCheckpoint | undefined {
  try {
    const value = JSON.parse(line) as SignedCheckpoint;
    return canonicalize(value) === line && isCheckpoint(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const MEMBERS = "chain,final,hash,key,n,prev,segments,seq,sig,time,v";

function isCheckpoint(value: SignedCheckpoint): boolean {
  return (
    Object.keys(value).sort().join() === MEMBERS &&
    value.v === 1 &&
    [value.chain, value.hash, value.key, value.prev, value.sig, value.time].every(
      (member) => typeof member === "string",
    ) &&
    [value.n, value.seq, value.segments].every(
      (member) => Number.isSafeInteger(member) && member >= 1,
    ) &&
    typeof value.final === "boolean"
  );
}
