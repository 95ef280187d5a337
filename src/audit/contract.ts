/** The contract of an audit writer. */
import type { Registry } from "prom-client";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { AuditFiles } from "./files.ts";
import type { AuditSink } from "./sink.ts";
import type { SpaceOptions, SpaceStatus } from "./volume.ts";

export interface AuditWriter extends AuditSink {
  /**
   * @param done called once, when the record's fate is known and never before append returns; for
   * what is committed in the order of the calls. Without it the record is committed with the next
   * one that has it, or within 250 ms.
   */
  append: AuditSink["append"];
  /**
   * While true new work should be refused: the record of it could not be kept. Always false with
   * onFailure "continue".
   */
  readonly refusing: boolean;
  readonly space: SpaceStatus;
  /** Commits what is pending, signs it, and lets the chain go. */
  close(): Promise<void>;
}

export interface AuditWriterOptions {
  /** Holds a folder for each writer. */
  readonly dir: string;
  /** Name of the writer and its chain; one living process each. */
  readonly writer: string;
  /** Ed25519 private key, PEM; made when it is missing. Not in `dir`. */
  readonly keyFile: string;
  /** Root may sign with the key of its folder's owner (default: no). */
  readonly keyOfFolderOwner?: boolean;
  readonly onFailure: "refuse" | "continue";
  /**
   * `group`: committed is on the disk. `none`: committed is with the kernel; survives kill -9, not
   * a power cut.
   */
  readonly sync: "group" | "none";
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** A checkpoint after this many records (default 1,000) ... */
  readonly checkpointRecords?: number;
  /** ... or this many milliseconds after the first that is not signed (default 10,000). */
  readonly checkpointMs?: number;
  /**
   * Least milliseconds between the beginnings of two commits (default 5; 0: as soon as the one
   * before is done). A record that comes alone never waits; under load a commit costs the same for
   * one record as for fifty.
   */
  readonly commitMs?: number;
  /** A segment's size, about (default 64 MiB). */
  readonly segmentBytes?: number;
  readonly files?: AuditFiles;
  /** When space for the chain is short. */
  readonly space?: SpaceOptions;
}
