/**
 * ChainWriter writes an audit chain. Events are chained at once and committed in groups: events
 * that arrive during one commit form the next. Outcomes are reported in order, after the commit.
 * The caller of a record that cannot be written is told; the loss is counted, and recorded in the
 * chain itself as soon as the disk allows.
 */
import type { Batch, Chain, ChainPoint, Done, ChainEntry } from "./chain.ts";
import { hashOfCheckpoint, signCheckpoint } from "./checkpoint.ts";
import type { AuditWriter, AuditWriterOptions } from "../contract.ts";
import { AuditError, reasonOf } from "../errors.ts";
import type { AppendOutcome, AuditEvent } from "../event.ts";
import { gapFields, LossTally } from "../writer/losses.ts";
import { AuditMetrics } from "../writer/metrics.ts";
import { CHAIN, isChainType } from "./record.ts";
import type { AuditState } from "../sink.ts";
import type { SigningKey } from "./signing-key.ts";
import type { Storage } from "../writer/storage.ts";
import type { SpaceState, SpaceStatus, VolumeWatch } from "../writer/volume.ts";

/** Parts and initial state of a writer; created by openAuditWriter. */
export interface WriterParts {
  readonly options: AuditWriterOptions;
  readonly key: SigningKey;
  readonly chain: Chain;
  readonly storage: Storage;
  readonly point: ChainPoint;
  readonly checkpoint: { readonly n: number; readonly hash: string; readonly seq: number };
  readonly unlock: () => void;
  readonly volume: VolumeWatch;
}

const CHECKPOINT_RECORDS = 1000;
const CHECKPOINT_MS = 10_000;

const COMMIT_MS = 5;
/**
 * Maximum time until a record without a waiter is committed; it is committed earlier with a record
 * that has one.
 */
const UNAWAITED_MS = 250;

/** Characters of pending records at which a commit starts at once. */
const FULL_BATCH = 64 * 1024;

/** Maximum characters of records that wait for a hanging disk; further ones are refused or lost. */
const MAX_BACKLOG = 32 * 1024 * 1024;

const FIRST_RETRY_MS = 100;
const LAST_RETRY_MS = 10_000;

/**
 * In the state `proving` the files could be reopened; the record of the gap shows whether they can
 * be written.
 */
type Health = "up" | "proving" | "down" | "closed";

export class ChainWriter implements AuditWriter {
  readonly #options: AuditWriterOptions;
  readonly #key: SigningKey;
  readonly #chain: Chain;
  readonly #storage: Storage;
  readonly #unlock: () => void;
  readonly #volume: VolumeWatch;
  readonly #metrics: AuditMetrics;
  readonly #lost = new LossTally();
  #health: Health = "up";
  #reason = "";
  #committed: ChainPoint;
  #checkpoint: WriterParts["checkpoint"];
  #checkpointDue = false;
  #cancelCheckpoint: (() => void) | undefined;
  #cancelRetry: (() => void) | undefined;
  #retryMs = FIRST_RETRY_MS;
  #gapPending = false;
  #inFlight: readonly ChainEntry[] = [];
  #running: Promise<void> | undefined;
  #lastCommit = Number.NEGATIVE_INFINITY;
  /** True when a record without a waiter has waited long enough. */
  #overdue = false;
  #cancelOverdue: (() => void) | undefined;
  /** Ends the pause between two commits. */
  #hurry: (() => void) | undefined;
  #closing = false;
  /** Space state at the last measurement. */
  #seen: SpaceState = "ok";
  #repairing: Promise<void> | undefined;
  #time = { ms: 0, text: new Date(0).toISOString() };

  constructor(parts: WriterParts) {
    this.#options = parts.options;
    this.#key = parts.key;
    this.#chain = parts.chain;
    this.#storage = parts.storage;
    this.#unlock = parts.unlock;
    this.#volume = parts.volume;
    this.#committed = parts.point;
    this.#checkpoint = parts.checkpoint;
    this.#metrics = new AuditMetrics(parts.options.registry);
    this.#metrics.up.set(1);
    this.#metrics.checkpoint.set(parts.checkpoint.seq);
  }

  get state(): AuditState {
    if (this.#health !== "up" || this.#chain.backlog > MAX_BACKLOG) return "failing";
    return this.#volume.state;
  }

  get space(): SpaceStatus {
    return this.#volume.status;
  }

  get refusing(): boolean {
    const { state } = this;
    return this.#options.onFailure === "refuse" && (state === "failing" || state === "full");
  }

  append(event: AuditEvent, done?: Done): void {
    if (isChainType(event.type))
      throw new AuditError(`The event type ${event.type} is reserved for the chain.`);
    if (this.#health === "down" || this.#health === "closed" || this.#chain.backlog > MAX_BACKLOG) {
      if (this.#chain.backlog > MAX_BACKLOG && this.#health === "up") this.#reason = "backlog";
      // Queued after the entries whose outcome is reported in this turn.
      queueMicrotask(() => this.#lose({ type: event.type, done }));
      return;
    }
    this.#chain.add(event.type, event.fields, this.#now(), done);
    if (this.#chain.backlog > FULL_BATCH) this.#hurry?.();
    this.#goOn();
  }

  /** Writes the records of a start and signs them. @throws if that fails */
  async begin(records: readonly AuditEvent[]): Promise<void> {
    for (const { type, fields } of records) this.#chain.add(type, fields, this.#now(), undefined);
    try {
      for (let batch = this.#chain.take(); batch !== undefined; batch = this.#chain.take())
        await this.#commit(batch);
      await this.#sign(false);
    } finally {
      this.#cancelCheckpoint?.();
      this.#cancelCheckpoint = undefined;
    }
    await this.#volume.start((state) => this.#looked(state));
  }

  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    this.#volume.stop();
    this.#cancelRetry?.();
    this.#cancelOverdue?.();
    this.#hurry?.();
    await this.#running;
    if (this.#health === "down") await this.#repair();
    await this.#running;
    const broken = this.#health !== "up";
    this.#health = "closed";
    this.#cancelRetry?.();
    try {
      if (broken) throw new AuditError(this.#reason);
      this.#chain.add(CHAIN.closed, {}, this.#now(), undefined);
      await this.#drain(true);
    } catch (error) {
      this.#fail(error);
    }
    this.#metrics.up.set(0);
    this.#cancelCheckpoint?.();
    await this.#storage.close();
    this.#unlock();
  }

  #now(): string {
    const ms = this.#options.clock.now();
    if (ms !== this.#time.ms) this.#time = { ms, text: new Date(ms).toISOString() };
    return this.#time.text;
  }

  #kick(): void {
    if (this.#running !== undefined || this.#health === "down" || this.#health === "closed") return;
    // Other events of this turn belong to the same commit.
    this.#running = Promise.resolve()
      .then(() => this.#drain(false))
      .catch((error: unknown) => this.#fail(error))
      .finally(() => {
        this.#running = undefined;
        // Bytes written since the last measurement.
        this.#goOn();
      });
  }

  /** Commits urgent records at once, and the rest later. */
  #goOn(): void {
    if (this.#isUrgent) return this.#kick();
    if (this.#chain.backlog === 0) return;
    this.#cancelOverdue ??= this.#options.clock.after(UNAWAITED_MS, () => {
      this.#overdue = true;
      this.#kick();
    });
  }

  get #isUrgent(): boolean {
    return (
      this.#chain.awaited > 0 ||
      this.#chain.backlog > FULL_BATCH ||
      this.#overdue ||
      this.#checkpointDue
    );
  }

  #take(): Batch | undefined {
    this.#overdue = false;
    this.#cancelOverdue?.();
    this.#cancelOverdue = undefined;
    return this.#chain.take();
  }

  async #drain(final: boolean): Promise<void> {
    for (;;) {
      await this.#pause();
      const batch = this.#take();
      if (batch !== undefined) {
        await this.#commit(batch);
        this.#tellGap();
      }
      if (final ? batch === undefined : this.#isCheckpointDue()) await this.#sign(final);
      if (batch === undefined || !(final || this.#isUrgent)) return;
    }
  }

  #pause(): Promise<void> | undefined {
    const { clock, commitMs } = this.#options;
    const ms = (commitMs ?? COMMIT_MS) - (clock.monotonic() - this.#lastCommit);
    if (ms <= 0 || this.#closing || this.#chain.backlog === 0 || this.#chain.backlog > FULL_BATCH)
      return undefined;
    return new Promise((resolve) => {
      const cancel = clock.after(Math.ceil(ms), () => this.#hurry?.());
      this.#hurry = () => {
        this.#hurry = undefined;
        cancel();
        resolve();
      };
    });
  }

  #isCheckpointDue(): boolean {
    const unsigned = this.#committed.last.seq - this.#checkpoint.seq;
    if (unsigned === 0) this.#checkpointDue = false;
    return (
      this.#checkpointDue || unsigned >= (this.#options.checkpointRecords ?? CHECKPOINT_RECORDS)
    );
  }

  async #commit(batch: Batch): Promise<void> {
    const { clock } = this.#options;
    const started = clock.monotonic();
    this.#lastCommit = started;
    this.#inFlight = batch.entries;
    if (batch.segment !== this.#storage.segment) {
      // The end of a segment is signed, so that archived segments can be distinguished from deleted
      // ones.
      if (this.#checkpoint.seq < this.#committed.last.seq) await this.#sign(false);
      await this.#storage.rotate();
    }
    const bytes = Buffer.from(batch.text);
    await this.#storage.append(bytes);
    this.#volume.wrote(bytes.length);
    this.#inFlight = [];
    this.#committed = batch.end;
    this.#metrics.commit.observe((clock.monotonic() - started) / 1000);
    if (this.#health === "proving") this.#recovered();
    else if (!this.#gapPending) this.#retryMs = FIRST_RETRY_MS;
    this.#count(batch.entries);
    for (const { done } of batch.entries) this.#tell(done, "committed");
    if (this.#cancelCheckpoint === undefined) {
      this.#cancelCheckpoint = clock.after(this.#options.checkpointMs ?? CHECKPOINT_MS, () => {
        this.#cancelCheckpoint = undefined;
        this.#checkpointDue = true;
        this.#kick();
      });
    }
  }

  async #sign(final: boolean): Promise<void> {
    const { last, segment } = this.#committed;
    const n = this.#checkpoint.n + 1;
    const line = signCheckpoint(
      {
        v: 1,
        chain: this.#options.writer,
        n,
        prev: this.#checkpoint.hash,
        seq: last.seq,
        hash: last.hash,
        time: this.#now(),
        segments: segment,
        final,
        key: this.#key.publicKey.fingerprint,
      },
      this.#key.privateKey,
    );
    await this.#storage.appendCheckpoint(line);
    this.#checkpoint = { n, hash: hashOfCheckpoint(line), seq: last.seq };
    this.#checkpointDue = false;
    this.#cancelCheckpoint?.();
    this.#cancelCheckpoint = undefined;
    this.#metrics.checkpoint.set(last.seq);
    // The log line is the witness: it leaves this machine and states the position of the chain.
    this.#options.log.info(
      {
        chain: this.#options.writer,
        seq: last.seq,
        hash: last.hash,
        checkpoint: n,
        segments: segment,
      },
      "audit checkpoint",
    );
  }

  /**
   * Drops everything pending: the callers are told, and the chain continues from the last commit.
   */
  #fail(error: unknown): void {
    const { log, clock, writer, onFailure } = this.#options;
    this.#reason = reasonOf(error);
    if (this.#health !== "closed") this.#health = "down";
    this.#metrics.up.set(0);
    if (this.#storage.segment > this.#committed.segment) {
      // The next segment was created, but is empty.
      const { last } = this.#committed;
      this.#committed = {
        last,
        segment: this.#storage.segment,
        size: 0,
        tied: false,
        before: last,
      };
    }
    const all = [...this.#inFlight, ...this.#chain.reset(this.#committed)];
    this.#inFlight = [];
    log.error(
      {
        chain: writer,
        reason: this.#reason,
        records: all.length,
        onFailure,
        retryMs: this.#retryMs,
      },
      "audit chain cannot be written",
    );
    for (const entry of all) this.#lose(entry);
    if (this.#health === "closed") return;
    this.#cancelRetry?.();
    this.#cancelRetry = clock.after(this.#retryMs, () => {
      void this.#repair();
    });
    this.#retryMs = Math.min(this.#retryMs * 2, LAST_RETRY_MS);
  }

  /** A volume that has space again is used at once, without waiting for the next retry. */
  #looked(state: SpaceState): void {
    const roomAgain = this.#seen === "full" && state !== "full";
    this.#seen = state;
    if (roomAgain && this.#health === "down" && !this.#closing) void this.#repair();
  }

  #repair(): Promise<void> {
    this.#cancelRetry?.();
    this.#repairing ??= this.#tryRepair().finally(() => {
      this.#repairing = undefined;
    });
    return this.#repairing;
  }

  async #tryRepair(): Promise<void> {
    try {
      await this.#storage.repair();
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#health !== "down") return;
    if (this.#lost.empty) {
      // Only a checkpoint failed.
      this.#recovered();
      this.#checkpointDue = true;
      this.#kick();
      return;
    }
    this.#health = "proving";
    this.#tellGap();
  }

  #recovered(): void {
    this.#health = "up";
    this.#metrics.up.set(1);
    this.#options.log.info({ chain: this.#options.writer }, "audit chain can be written again");
  }

  #tellGap(): void {
    if (this.#lost.empty || this.#gapPending || this.#health === "closed") return;
    const losses = this.#lost.take();
    this.#gapPending = true;
    this.#chain.add(
      CHAIN.gap,
      gapFields(losses, this.#now(), this.#reason),
      this.#now(),
      (outcome) => {
        this.#gapPending = false;
        if (outcome !== "committed") this.#lost.putBack(losses);
      },
    );
    this.#kick();
  }

  #lose({ type, done }: ChainEntry): void {
    if (!isChainType(type)) {
      this.#metrics.lost.inc();
      this.#lost.add(type, this.#now());
    }
    this.#tell(done, this.#options.onFailure === "refuse" ? "failed" : "lost");
  }

  #tell(done: Done | undefined, outcome: AppendOutcome): void {
    try {
      done?.(outcome);
    } catch (error) {
      this.#options.log.error({ error: String(error) }, "a caller of the audit chain failed");
    }
  }

  #count(entries: readonly ChainEntry[]): void {
    const counts = new Map<string, number>();
    for (const { type } of entries) counts.set(type, (counts.get(type) ?? 0) + 1);
    for (const [type, count] of counts) this.#metrics.records.inc({ type }, count);
  }
}
