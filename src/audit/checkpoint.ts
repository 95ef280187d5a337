/**
 * A checkpoint: the writer's signature under a record's hash, and so under every record before it.
 * Checkpoints live beside the segments, one line of canonical JSON each, linked like records: a
 * tail that is cut off leaves a checkpoint without its record.
 */
import { hash as digest, sign, verify, type KeyObject } from "node:crypto";
import canonicalize from "canonicalize";

export interface Checkpoint {
  readonly v: 1;
  readonly chain: string;
  /** Number of the checkpoint, from 1. */
  readonly n: number;
  /** SHA-256 of the line of the one before. */
  readonly prev: string;
  /** The record that is signed. */
  readonly seq: number;
  readonly hash: string;
  readonly time: string;
  /** How many segments the chain had. */
  readonly segments: number;
  /** The writer ended in good order: nothing but a new start follows. */
  readonly final: boolean;
  /** Fingerprint of the key. */
  readonly key: string;
}

export interface SignedCheckpoint extends Checkpoint {
  /** Ed25519, base64. */
  readonly sig: string;
}

/** Keeps the signature from meaning anything elsewhere. */
const DOMAIN = "svc audit checkpoint v1\n";

const message = (checkpoint: Checkpoint): Buffer => Buffer.from(DOMAIN + canonicalize(checkpoint));

/** Without the line's end. */
export function signCheckpoint(checkpoint: Checkpoint, privateKey: KeyObject): string {
  const sig = sign(null, message(checkpoint), privateKey).toString("base64");
  return canonicalize({ ...checkpoint, sig }) as string;
}

export const isSignedBy = (
  { sig, ...checkpoint }: SignedCheckpoint,
  publicKey: KeyObject,
): boolean => verify(null, message(checkpoint), publicKey, Buffer.from(sig, "base64"));

export const hashOfCheckpoint = (line: string): string => digest("sha256", line, "hex");

/** Undefined when the line is not exactly a checkpoint. Its signature is not looked at. */
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
