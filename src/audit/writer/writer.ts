/**
 * Opens a chain for writing, and takes it over from the previous process, however that one ended.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Chain } from "../chain/chain.ts";
import { ChainWriter } from "../chain/chain-writer.ts";
import type { AuditWriter, AuditWriterOptions } from "../contract.ts";
import { AuditError, reasonOf } from "../errors.ts";
import type { AuditEvent } from "../event.ts";
import { systemFiles } from "../chain/files.ts";
import { chainDir, PUBLIC_KEY } from "../chain/layout.ts";
import { takeLock } from "./lock.ts";
import { CHAIN } from "../chain/record.ts";
import { type ChainState, recoverChain } from "./recover.ts";
import { loadSigningKey, type SigningKey } from "../chain/signing-key.ts";
import { Storage } from "./storage.ts";
import { VolumeWatch } from "./volume.ts";

const SEGMENT_BYTES = 64 * 1024 * 1024;

/**
 * @throws AuditError if the chain cannot be written, is written by another process, or must not be
 * continued
 */
export async function openAuditWriter(options: AuditWriterOptions): Promise<AuditWriter> {
  const dir = chainDir(options.dir, options.writer);
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new AuditError(`The audit folder ${dir} cannot be created (${reasonOf(error)}).`);
  }
  const unlock = takeLock(dir);
  try {
    const key = loadSigningKey(options.keyFile, {
      ofFolderOwner: options.keyOfFolderOwner ?? false,
    });
    publish(dir, key);
    return await begin(options, dir, key, unlock);
  } catch (error) {
    unlock();
    if (error instanceof AuditError) throw error;
    throw new AuditError(`The audit chain ${dir} cannot be written (${reasonOf(error)}).`);
  }
}

async function begin(
  options: AuditWriterOptions,
  dir: string,
  key: SigningKey,
  unlock: () => void,
): Promise<AuditWriter> {
  const state = recoverChain(dir, options.writer, key.publicKey);
  const { number, tied, before } = state.segment;
  let { size } = state.segment;
  const files = options.files ?? systemFiles;
  const storage = new Storage(dir, files, options.sync === "group", {
    segment: number,
    size,
    checkpointsSize: state.checkpoints.size,
  });
  await storage.repair();
  // The torn bytes are kept; only their line is terminated.
  if (state.unended) {
    await storage.append(Buffer.from("\n"));
    size += 1;
  }
  const point = { last: state.last, segment: Math.max(number, 1), size, tied, before };
  const start = {
    publicKey: key.publicKey.pem,
    checkpointRecords: options.checkpointRecords,
    checkpointMs: options.checkpointMs,
  };
  const volume = new VolumeWatch({ ...options, files, space: options.space ?? {} });
  const chain = new Chain(options.writer, options.segmentBytes ?? SEGMENT_BYTES, start, point);
  const writer = new ChainWriter({
    options,
    key,
    chain,
    storage,
    point,
    checkpoint: state.checkpoints,
    unlock,
    volume,
  });
  if (state.torn !== undefined)
    options.log.warn(
      { chain: options.writer, bytes: state.torn.bytes },
      "the audit chain's last write was not finished",
    );
  try {
    await writer.begin(startRecords(state));
  } catch (error) {
    await storage.close();
    throw error;
  }
  return writer;
}

function startRecords(state: ChainState): readonly AuditEvent[] {
  const records: AuditEvent[] = [];
  if (state.torn !== undefined) records.push({ type: CHAIN.torn, fields: state.torn });
  if (state.closed || (state.last.seq === 0 && state.torn === undefined))
    records.push({ type: CHAIN.opened, fields: { pid: process.pid } });
  else {
    const unsigned = state.last.seq - state.checkpoints.seq;
    records.push({
      type: CHAIN.resumed,
      fields: {
        pid: process.pid,
        unsigned,
        tornCheckpointBytes: state.tornCheckpoint || undefined,
      },
    });
  }
  return records;
}

/** Publishes the public key beside the chain, for verifiers who trust the folder. */
function publish(dir: string, key: SigningKey): void {
  const file = path.join(dir, PUBLIC_KEY);
  if (!existsSync(file)) {
    writeFileSync(file, key.publicKey.pem, { mode: 0o644, flag: "wx", flush: true });
  } else if (readFileSync(file, "utf8") !== key.publicKey.pem) {
    throw new AuditError(
      `The audit chain ${dir} has another public key in ${file} than the current signing ` +
        "key. Restore the key, or move the folder away; the next start begins a new chain.",
    );
  }
}
