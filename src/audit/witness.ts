/**
 * What someone else remembers of a chain: that record `seq` had `hash`. Only this finds a chain
 * whose segments and checkpoints were both cut back to an older checkpoint.
 */
import { statSync } from "node:fs";
import { AuditError } from "./errors.ts";
import { readLines } from "./lines.ts";

export interface Witness {
  /** Undefined: the only chain there is. */
  readonly chain: string | undefined;
  readonly seq: number;
  readonly hash: string;
  /** Where it was said. */
  readonly source: string;
}

const INLINE = /^(?:([A-Za-z0-9._-]+):)?(\d+):([0-9a-f]{64})$/;

/** `[<writer>:]<seq>:<hash>`; undefined when it is not of that form. */
export function parseWitness(text: string, source: string): Witness | undefined {
  const match = INLINE.exec(text.trim());
  if (match === null) return undefined;
  return { chain: match[1], seq: Number(match[2]), hash: match[3] as string, source };
}

/**
 * An argument of that form, or a file of such lines or of the service's log lines ("audit
 * checkpoint").
 * @throws AuditError when the file cannot be read or remembers nothing
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
      `The witness file ${argument} holds no line of the form <writer>:<seq>:<hash> and no "audit checkpoint" of a log.`,
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
