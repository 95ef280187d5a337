/**
 * The files of a chain: `<dir>/<writer>/000001.jsonl ...`, `checkpoints.jsonl`, `audit.pub`, and a
 * lock while it is being written.
 */
import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import { AuditError, reasonOf } from "../errors.ts";

export const CHECKPOINTS = "checkpoints.jsonl";
export const PUBLIC_KEY = "audit.pub";
export const LOCK = "writer.lock";

const SEGMENT = /^(\d{6,})\.jsonl$/;
const WRITER = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export const segmentName = (number: number): string => `${String(number).padStart(6, "0")}.jsonl`;

/** @throws AuditError if the name is not valid for a folder */
export function chainDir(dir: string, writer: string): string {
  if (!WRITER.test(writer)) {
    throw new AuditError(
      `The audit writer's name ${JSON.stringify(writer)} is not valid as a folder name: ` +
        `use letters, digits, ".", "_" and "-", 128 at most.`,
    );
  }
  return path.join(dir, writer);
}

export interface ChainFiles {
  /** Numbers of the segments, ascending. */
  readonly segments: readonly number[];
  /** Other names that look like records but do not belong to a chain. */
  readonly strangers: readonly string[];
}

/** @throws AuditError if the folder cannot be read */
export function listChain(dir: string): ChainFiles {
  const names = namesIn(dir);
  const segments: number[] = [];
  const strangers: string[] = [];
  for (const name of names) {
    const number = Number(SEGMENT.exec(name)?.[1]);
    if (number >= 1 && segmentName(number) === name) segments.push(number);
    else if (name !== CHECKPOINTS && /\.jsonl/i.test(name)) strangers.push(name);
  }
  return { segments: segments.sort((a, b) => a - b), strangers: strangers.sort() };
}

export interface FoundChain {
  readonly name: string;
  readonly dir: string;
  /** The chain's own folder was given, not its parent: the folder's name proves nothing. */
  readonly named: boolean;
}

/**
 * Finds the chains in a folder of chains, by name, or the single chain of its own folder.
 * @throws AuditError if the folder cannot be read
 */
export function findChains(dir: string): readonly FoundChain[] {
  const names = namesIn(dir);
  if (names.some((name) => SEGMENT.test(name) || name === CHECKPOINTS))
    return [{ name: path.basename(path.resolve(dir)), dir, named: true }];
  return names
    .map((name) => ({ name, dir: path.join(dir, name), named: false }))
    .filter(({ dir }) => isChain(dir))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function isChain(dir: string): boolean {
  if (statSync(dir, { throwIfNoEntry: false })?.isDirectory() !== true) return false;
  return namesIn(dir).some(
    (name) => SEGMENT.test(name) || name === CHECKPOINTS || name === PUBLIC_KEY,
  );
}

function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    throw new AuditError(
      `The audit folder ${dir} cannot be read (${reasonOf(error)}). Name another with ` +
        "--audit-dir or --state-dir.",
    );
  }
}
