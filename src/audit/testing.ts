/**
 * For tests of the audit chain: a clock that tests move, files that fail on demand, chains in
 * folders of their own.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { FakeClock } from "../platform/testing.ts";
import type { AuditWriterOptions, AuditWriter } from "./contract.ts";
import type { AppendOutcome, AuditEvent } from "./event.ts";
import { type AuditFile, type AuditFiles, systemFiles } from "./chain/files.ts";
import { findChains } from "./chain/layout.ts";
import type { AuditRecord } from "./chain/record.ts";
import { type ChainReport, verifyChain, type VerifyOptions } from "./reader/verify.ts";
import { openAuditWriter } from "./writer/writer.ts";

/** Real files, until a failure is configured; nothing waits for the disk. */
export class FailingFiles implements AuditFiles {
  /** Bytes that the disk still accepts; then ENOSPC, after the bytes that fit. */
  room = Number.POSITIVE_INFINITY;
  /** Error code of every write. */
  writeError: string | undefined;
  openError: string | undefined;
  /** Names of files that fail; undefined for all. */
  only: RegExp | undefined;
  /** Each write waits for this promise. */
  gate: Promise<void> | undefined;
  writes = 0;
  /** Maximum number of bytes that one write accepts. */
  mostBytes = Number.POSITIVE_INFINITY;
  /** Reported size of the volume. */
  space = { free: 100 * 1024 ** 3, total: 200 * 1024 ** 3 };
  spaceError: string | undefined;
  /** Number of measurements of the volume. */
  looks = 0;

  async open(file: string, make: boolean): Promise<AuditFile> {
    if (this.openError !== undefined) throw failure(this.openError);
    const real = await systemFiles.open(file, make, false);
    return {
      ...real,
      sync: () => Promise.resolve(),
      append: async (bytes, offset) => {
        this.writes++;
        await this.gate;
        if (this.only !== undefined && !this.only.test(file)) return real.append(bytes, offset);
        if (this.writeError !== undefined) throw failure(this.writeError);
        if (this.room <= 0) throw failure("ENOSPC");
        const taken = await real.append(
          bytes.subarray(0, Math.min(bytes.length, offset + this.room, offset + this.mostBytes)),
          offset,
        );
        this.room -= taken;
        return taken;
      },
    };
  }

  syncDir(): Promise<void> {
    return Promise.resolve();
  }

  volume(): Promise<{ readonly free: number; readonly total: number }> {
    this.looks++;
    if (this.spaceError !== undefined) return Promise.reject(failure(this.spaceError));
    return Promise.resolve(this.space);
  }

  used(dir: string): Promise<number> {
    return systemFiles.used(dir);
  }
}

const failure = (code: string): Error => Object.assign(new Error(code), { code });

/** A folder of chains, and writers of it. */
export class AuditWorld {
  readonly root = mkdtempSync(path.join(os.tmpdir(), "svc-audit-"));
  readonly dir = path.join(this.root, "audit");
  readonly keyFile = path.join(this.root, "audit.key");
  readonly clock = new FakeClock(Date.UTC(2026, 0, 31, 12));
  readonly files = new FailingFiles();
  readonly logged: { readonly [key: string]: unknown }[] = [];
  registry = new Registry();

  async open(more: Partial<AuditWriterOptions> = {}): Promise<AuditWriter> {
    this.registry = new Registry();
    const log = pino(
      { level: "debug" },
      {
        write: (line: string) =>
          void this.logged.push(JSON.parse(line) as { [key: string]: unknown }),
      },
    );
    return openAuditWriter({
      dir: this.dir,
      writer: "gw",
      keyFile: this.keyFile,
      onFailure: "refuse",
      sync: "none",
      commitMs: 0,
      clock: this.clock,
      log,
      registry: this.registry,
      files: this.files,
      ...more,
    });
  }

  /** A chain of `count` calls, closed. */
  async write(count: number, more: Partial<AuditWriterOptions> = {}): Promise<void> {
    const writer = await this.open(more);
    for (let i = 0; i < count; i++) await append(writer, call(i));
    await writer.close();
  }

  path(file: string, writer = "gw"): string {
    return path.join(this.dir, writer, file);
  }

  /** All records of a chain. Lines that are not records are skipped. */
  records(writer = "gw"): AuditRecord[] {
    return readdirSync(path.join(this.dir, writer))
      .filter((name) => /^\d+\.jsonl$/.test(name))
      .sort()
      .flatMap((name) => readFileSync(this.path(name, writer), "utf8").split("\n"))
      .flatMap((line) => {
        try {
          return [JSON.parse(line) as AuditRecord];
        } catch {
          return [];
        }
      });
  }

  types(writer = "gw"): string[] {
    return this.records(writer).map(({ type }) => type);
  }

  verify(more: Partial<VerifyOptions> = {}, dir = this.dir): ChainReport {
    const found = findChains(dir);
    if (found[0] === undefined || found.length > 1) throw new Error(`${found.length} chains`);
    return verifyChain(found[0], {
      keys: [],
      witnesses: [],
      from: undefined,
      maxUnsigned: 10_000,
      ...more,
    });
  }

  async metric(name: string): Promise<number> {
    const metric = await this.registry.getSingleMetric(name)?.get();
    return metric?.values.reduce((sum, { value }) => sum + value, 0) ?? Number.NaN;
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Lines of the writers' logs with this message. */
export const logged = (
  world: AuditWorld,
  msg: string,
): readonly { readonly [key: string]: unknown }[] =>
  world.logged.filter((line) => line["msg"] === msg);

export const call = (i: number): AuditEvent => ({
  type: "LLM_CALL",
  fields: { workload: "default/hello", i },
});

/** Appends and waits for the outcome. */
export const append = (writer: AuditWriter, event: AuditEvent): Promise<AppendOutcome> =>
  new Promise((resolve) => writer.append(event, resolve));

/** Waits until a condition holds, because the files are real. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise(setImmediate);
}
