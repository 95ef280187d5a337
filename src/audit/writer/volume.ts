/**
 * Tracks the space that the audit chain has left. The last of it is reserved for calls that are
 * allowed: below one threshold refusals are only counted, below another no new calls are allowed.
 * Space is measured once a second, and bytes written in between are subtracted, so that freed space
 * is used as soon as it is available.
 */
import { Gauge, type Registry } from "prom-client";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import { reasonOf } from "../errors.ts";
import type { AuditFiles } from "../chain/files.ts";
import type { AuditState } from "../sink.ts";

/** Free space, in bytes or as a fraction of the volume. */
export type SpaceThreshold =
  | { readonly kind: "bytes"; readonly bytes: number }
  | { readonly kind: "fraction"; readonly fraction: number };

export interface SpaceOptions {
  /**
   * Free space below which refusals are only counted. Default: 10 % of the volume, 1 GiB at most.
   */
  readonly low?: SpaceThreshold | undefined;
  /**
   * Free space below which no new calls are allowed. Default: 2 % of the volume, 256 MiB at most.
   */
  readonly full?: SpaceThreshold | undefined;
  /**
   * Maximum size of all chains in the folder. At 90 % of it space is low, at 98 % it is full.
   * Default: only the size of the volume.
   */
  readonly maxBytes?: number | undefined;
}

export type SpaceState = Exclude<AuditState, "failing">;

export interface SpaceStatus {
  /** Free bytes on the volume, for unprivileged users; undefined if they cannot be measured. */
  readonly freeBytes: number | undefined;
  /** Bytes of all chains in the folder; undefined if not measured. */
  readonly chainsBytes: number | undefined;
}

const MIB = 1024 * 1024;
const DEFAULT_LOW = { fraction: 0.1, bytes: 1024 * MIB };
const DEFAULT_FULL = { fraction: 0.02, bytes: 256 * MIB };
const CAP_LOW = 0.9;
const CAP_FULL = 0.98;

const LOOK_MS = 1_000;
/**
 * Number of measurements of the volume between two of the folder's size; near its bound, both are
 * measured every time.
 */
const LOOKS_BETWEEN_SIZES = 60;

const STATES: readonly SpaceState[] = ["ok", "low", "full"];

const MEANING: Readonly<Record<SpaceState, string>> = {
  ok: "the audit chain has space again",
  low: "space for the audit chain is low: refusals are only counted",
  full: "the audit chain has only space left for calls under way: free space, or archive segments",
};

export interface VolumeWatchOptions {
  /** The folder of all chains. */
  readonly dir: string;
  readonly space: SpaceOptions;
  readonly files: AuditFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
}

interface Measured {
  readonly free: number;
  readonly total: number;
}

export class VolumeWatch {
  readonly #options: VolumeWatchOptions;
  #volume: Measured | undefined;
  #chainsBytes: number | undefined;
  /** Bytes written since the last measurement of the volume, and of the folder. */
  #sinceVolume = 0;
  #sinceChains = 0;
  #looks = 0;
  #told: SpaceState = "ok";
  #failed = false;
  #cancel: (() => void) | undefined;
  #stopped = false;

  constructor(options: VolumeWatchOptions) {
    this.#options = options;
    this.#registerMetrics();
  }

  get state(): SpaceState {
    const states = [this.#volumeState(), this.#capState()];
    return states.includes("full") ? "full" : states.includes("low") ? "low" : "ok";
  }

  get status(): SpaceStatus {
    return {
      freeBytes: this.#free,
      chainsBytes: this.#chainsBytes === undefined ? undefined : this.#chains,
    };
  }

  /** Adds bytes that were written since the last measurement. */
  wrote(bytes: number): void {
    this.#sinceVolume += bytes;
    this.#sinceChains += bytes;
  }

  /** Measures now, and then once a second; calls back after each measurement. */
  async start(looked: (state: SpaceState) => void): Promise<void> {
    await this.look();
    looked(this.state);
    if (this.#stopped) return;
    this.#cancel = this.#options.clock.after(LOOK_MS, () => void this.start(looked));
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel?.();
  }

  async look(): Promise<void> {
    const { dir, files, log } = this.#options;
    try {
      const before = this.#sinceVolume;
      this.#volume = await files.volume(dir);
      this.#sinceVolume -= before;
      if (this.#looks++ % LOOKS_BETWEEN_SIZES === 0 || this.#capState() !== "ok")
        await this.#measureChains();
      this.#failed = false;
    } catch (error) {
      if (!this.#failed) log.warn({ dir, reason: reasonOf(error) }, "space cannot be measured");
      this.#failed = true;
      this.#volume = undefined;
    }
    this.#tell();
  }

  async #measureChains(): Promise<void> {
    const before = this.#sinceChains;
    this.#chainsBytes = await this.#options.files.used(this.#options.dir);
    this.#sinceChains -= before;
  }

  get #free(): number | undefined {
    return this.#volume && Math.max(0, this.#volume.free - this.#sinceVolume);
  }

  get #chains(): number {
    return (this.#chainsBytes ?? 0) + this.#sinceChains;
  }

  #volumeState(): SpaceState {
    const free = this.#free;
    const total = this.#volume?.total ?? 0;
    // A volume that reports size 0 has no bound.
    if (free === undefined || total === 0) return "ok";
    const { low, full } = this.#options.space;
    if (free < bytesOf(full, DEFAULT_FULL, total)) return "full";
    return free < bytesOf(low, DEFAULT_LOW, total) ? "low" : "ok";
  }

  #capState(): SpaceState {
    const { maxBytes } = this.#options.space;
    if (maxBytes === undefined || this.#chains < CAP_LOW * maxBytes) return "ok";
    return this.#chains < CAP_FULL * maxBytes ? "low" : "full";
  }

  #tell(): void {
    const { state } = this;
    if (state === this.#told) return;
    this.#told = state;
    const { log, dir } = this.#options;
    log[state === "ok" ? "info" : "warn"]({ dir, state, ...this.status }, MEANING[state]);
  }

  #registerMetrics(): void {
    const registers = [this.#options.registry];
    const gauge: Gauge = new Gauge({
      name: "svc_audit_space",
      help: "1 for the current space state of the audit chain (ok, low, full), 0 for the others.",
      labelNames: ["state"],
      registers,
      collect: () => {
        for (const state of STATES) gauge.set({ state }, state === this.state ? 1 : 0);
      },
    });
    const free: Gauge = new Gauge({
      name: "svc_audit_free_bytes",
      help: "Free bytes of the audit chain's volume.",
      registers,
      collect: () => free.set(this.#free ?? Number.NaN),
    });
    const chains: Gauge = new Gauge({
      name: "svc_audit_chains_bytes",
      help:
        "Bytes of all chains in the audit folder, measured once a minute and counted in " +
        "between.",
      registers,
      collect: () => chains.set(this.#chainsBytes === undefined ? Number.NaN : this.#chains),
    });
  }
}

function bytesOf(
  threshold: SpaceThreshold | undefined,
  otherwise: { readonly fraction: number; readonly bytes: number },
  total: number,
): number {
  if (threshold === undefined) return Math.min(otherwise.bytes, otherwise.fraction * total);
  return threshold.kind === "bytes" ? threshold.bytes : threshold.fraction * total;
}
