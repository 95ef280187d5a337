/**
 * A record of the chain: one line of canonical JSON (RFC 8785). Its hash is SHA-256 over the
 * canonical JSON of the record without `hash`. Only `fields` has a variable form and is
 * canonicalised; the other members are written around it in the order of the specification, once
 * for the hash and once for the line.
 */
import { hash as digest } from "node:crypto";
import canonicalize from "canonicalize";
import type { AuditEvent, AuditValue } from "../event.ts";

export const RECORD_VERSION = 1;

/** Hash that the first record names as that of its predecessor. */
export const GENESIS = "0".repeat(64);

/**
 * Maximum size of canonical fields in characters. Larger fields are replaced by their size and
 * hash. Callers bound each text (platform/client-text.ts), so only a defect can reach this limit.
 */
export const MAX_FIELDS = 1024 * 1024;

/** The writer's own records. */
export const CHAIN = {
  /** First record of a chain: contains the public key. */
  start: "CHAIN.START",
  /** First record of a later segment: names the last record of the previous one. */
  segment: "CHAIN.SEGMENT",
  /** A start after an orderly end. */
  opened: "CHAIN.OPENED",
  /** A start after a process that was killed. */
  resumed: "CHAIN.RESUMED",
  /** An orderly end. */
  closed: "CHAIN.CLOSED",
  /** The bytes before this record are an unfinished write. */
  torn: "CHAIN.TORN",
  /** Number of records that could not be written. */
  gap: "CHAIN.GAP",
} as const;

const PREFIX = "CHAIN.";

export const isChainType = (type: string): boolean => type.startsWith(PREFIX);

export interface AuditRecord {
  readonly v: number;
  readonly chain: string;
  readonly seq: number;
  /** RFC 3339 with milliseconds, UTC. */
  readonly time: string;
  readonly type: string;
  readonly fields: { readonly [key: string]: unknown };
  readonly prev: string;
  readonly hash: string;
}

export interface RecordHeader {
  readonly chain: string;
  readonly seq: number;
  readonly time: string;
  readonly type: string;
  readonly prev: string;
}

export interface SealedRecord {
  readonly hash: string;
  /** The line, without its newline. */
  readonly line: string;
}

/** @param fields canonical JSON of the record's fields */
export function sealRecord(header: RecordHeader, fields: string): SealedRecord {
  const head = `{"chain":${JSON.stringify(header.chain)},"fields":${fields}`;
  const tail =
    `"prev":"${header.prev}","seq":${header.seq},"time":"${header.time}","type":` +
    `${JSON.stringify(header.type)},"v":${RECORD_VERSION}}`;
  const hash = digest("sha256", `${head},${tail}`, "hex");
  return { hash, line: `${head},"hash":"${hash}",${tail}` };
}

/**
 * Returns the canonical JSON of fields. Never throws: values that JSON cannot represent are
 * replaced, so that the rest of the record is kept.
 */
export function encodeFields(fields: AuditEvent["fields"]): string {
  let text: string;
  try {
    text = canonical(fields);
  } catch {
    text = canonicalize(sayable(fields, 0)) ?? "{}";
  }
  if (text.length <= MAX_FIELDS) return text;
  const workload =
    typeof fields["workload"] === "string"
      ? fields["workload"].slice(0, 512).toWellFormed()
      : undefined;
  return (
    canonicalize({
      oversize: { characters: text.length, sha256: digest("sha256", text, "hex") },
      workload,
    }) ?? "{}"
  );
}

/**
 * RFC 8785. If the members are already in its order, JSON.stringify writes the same text at a
 * quarter of the cost.
 */
function canonical(fields: { readonly [key: string]: unknown }): string {
  if (ordered(fields)) {
    const text = JSON.stringify(fields);
    // An escaped surrogate is a lone one, which is not valid Unicode.
    if (!text.includes("\\ud")) return text;
  }
  return canonicalize(fields) ?? "{}";
}

/**
 * Returns whether members are ordered by UTF-16 code units (section 3.2.3), and all numbers are
 * valid in JSON.
 */
function ordered(value: unknown): boolean {
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(ordered);
  let before = "";
  for (const [name, member] of Object.entries(value)) {
    if (name < before || !ordered(member)) return false;
    before = name;
  }
  return true;
}

/** Deeper than any legitimate record; also terminates cycles. */
const MAX_DEPTH = 32;

function sayable(value: AuditValue, depth: number): AuditValue {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") return String(value);
  if (value === null || typeof value !== "object") return value;
  if (depth >= MAX_DEPTH) return "[too deep]";
  if (Array.isArray(value)) return value.map((item: AuditValue) => sayable(item, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key.toWellFormed(), sayable(item, depth + 1)]),
  );
}

export type ParsedLine =
  | { readonly kind: "record"; readonly record: AuditRecord }
  | { readonly kind: "bad"; readonly seq: number | undefined; readonly message: string };

const HEX = /^[0-9a-f]{64}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/**
 * Parses a line as a record in canonical form that matches its own hash. Does not check that it
 * follows another record.
 */
export function parseRecord(line: string): ParsedLine {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { kind: "bad", seq: undefined, message: "it is not JSON" };
  }
  if (!isRecord(value))
    return {
      kind: "bad",
      seq: seqOf(value),
      message: "it is not a record of an audit chain: members are missing or of the wrong type",
    };
  let sealed: SealedRecord;
  try {
    sealed = sealRecord(value, canonical(value.fields));
  } catch {
    return { kind: "bad", seq: value.seq, message: "it holds text that is not Unicode" };
  }
  if (sealed.hash !== value.hash)
    return {
      kind: "bad",
      seq: value.seq,
      message: "its content does not match its hash: it was edited",
    };
  if (sealed.line !== line)
    return {
      kind: "bad",
      seq: value.seq,
      message: "it is not canonical JSON (RFC 8785): another program rewrote it",
    };
  return { kind: "record", record: value };
}

function seqOf(value: unknown): number | undefined {
  const seq = (value as { seq?: unknown } | null)?.seq;
  return typeof seq === "number" ? seq : undefined;
}

function isRecord(value: unknown): value is AuditRecord {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
  const record = value as Partial<AuditRecord>;
  return (
    record.v === RECORD_VERSION &&
    typeof record.chain === "string" &&
    Number.isSafeInteger(record.seq) &&
    typeof record.time === "string" &&
    TIME.test(record.time) &&
    typeof record.type === "string" &&
    record.fields !== null &&
    typeof record.fields === "object" &&
    !Array.isArray(record.fields) &&
    typeof record.prev === "string" &&
    HEX.test(record.prev) &&
    typeof record.hash === "string"
  );
}
