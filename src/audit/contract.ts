/** The contract of an audit writer. */
import type { Registry } from "prom-client";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { AuditFiles } from "./chain/files.ts";
import type { AuditSink } from "./sink.ts";
import type { SpaceOptions, SpaceStatus } from "./writer/volume.ts";

export interface AuditWriter extends AuditSink {
  /**
   * @param done called once, when the outcome of the record is known, and never before append
   * returns; for committed records in the order of the calls. Without it, the record is committed
   * with the next one that has it, or within 250 ms.
   */
  append: AuditSink["append"];
  /**
   * While true, new work should be refused, because its record could not be written. Always false
   * with onFailure "continue".
   */
  readonly refusing: boolean;
  readonly space: SpaceStatus;
  /** Commits pending records, signs the chain, and releases it. */
  close(): Promise<void>;
}

export interface AuditWriterOptions {
  /** Folder that holds a folder for each writer. */
  readonly dir: string;
  /** Name of the writer and its chain; at most one living process may use it. */
  readonly writer: string;
  /** Ed25519 private key, PEM; created if it is missing. Must not be in `dir`. */
  readonly keyFile: string;
  /** Root may sign with the key of its folder's owner (default: no). */
  readonly keyOfFolderOwner?: boolean;
  readonly onFailure: "refuse" | "continue";
  /**
   * `group`: committed means on the disk. `none`: committed means in the kernel; survives kill -9,
   * but not a power failure.
   */
  readonly sync: "group" | "none";
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Number of records after which a checkpoint is written (default 1,000). */
  readonly checkpointRecords?: number;
  /**
   * Milliseconds after the first unsigned record until a checkpoint is written (default 10,000).
   */
  readonly checkpointMs?: number;
  /**
   * Minimum milliseconds between the beginnings of two commits (default 5; 0: as soon as the
   * previous one is done). A single record never waits; under load, a commit costs the same for one
   * record as for fifty.
   */
  readonly commitMs?: number;
  /** Approximate size of a segment (default 64 MiB). */
  readonly segmentBytes?: number;
  readonly files?: AuditFiles;
  /** Thresholds of free space for the chain. */
  readonly space?: SpaceOptions;
}
