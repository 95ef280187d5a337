/**
 * A witness's memory of a chain: record `seq` had `hash`. Only a witness detects a chain whose
 * segments and checkpoints were both truncated to an older checkpoint.
 */
import { statSync } from "node:fs";
import { AuditError } from "../errors.ts";
import { readLines } from "../chain/lines.ts";

export interface Witness {
  /** undefined: the only chain. */
  readonly chain: string | undefined;
  readonly seq: number;
  readonly hash: string;
  /** Source of the statement. */
  readonly source: string;
}

const INLINE = /^(?:([A-Za-z0-9._-]+):)?(\d+):([0-9a-f]{64})$/;

/** Parses `[<writer>:]<seq>:<hash>`; returns undefined if the text does not have that form. */
export function parseWitness(text: string, source: string): Witness | undefined {
  const match = INLINE.exec(text.trim());
  if (match === null) return undefined;
  return { chain: match[1], seq: Number(match[2]), hash: match[3] as string, source };
}

/**
 * Reads an argument of that form, or a file of such lines or of the service's log lines ("audit
 * checkpoint").
 * @throws AuditError if the file cannot be read or contains no such line
 */
export function readWitness(argument: string): readonly Witness[] {
  const inline = parseWitness(argument, "--witness");
  if (inline !== undefined) return [inline];
  if (statSync(argument, { throwIfNoEntry: false })?.isFile() !== true) {
    throw new AuditError(
      `The witness ${JSON.stringify(argument)} is neither [<writer>:]<seq>:<hash> nor a file.`,
    );
  }
  const found: Witness[] = [];
  for (const line of readLines(argument)) {
    const witness =
      parseWitness(line.text, `${argument} line ${line.number}`) ??
      fromLog(line.text, `${argument} line ${line.number}`);
    if (witness !== undefined) found.push(witness);
  }
  if (found.length === 0)
    throw new AuditError(
      `The witness file ${argument} contains no line of the form <writer>:<seq>:<hash> and ` +
        `no "audit checkpoint" of a log.`,
    );
  return found;
}

function fromLog(text: string, source: string): Witness | undefined {
  if (!text.includes("audit checkpoint")) return undefined;
  try {
    const { chain, seq, hash, msg } = JSON.parse(text) as { [key: string]: unknown };
    if (msg !== "audit checkpoint" || typeof chain !== "string") return undefined;
    return parseWitness(`${chain}:${String(seq)}:${String(hash)}`, source);
  } catch {
    return undefined;
  }
}
