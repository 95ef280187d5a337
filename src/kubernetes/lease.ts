/**
 * Leader election by a Lease, as in client-go: a holder renews it, and another candidate takes it
 * when it has not changed for its duration, measured by the candidate's own clock. Each write
 * carries the version that was read, so that of two writers one fails. A holder gives up before its
 * Lease can be taken, also while the API server does not answer. Two holders may exist for a moment
 * if a process was suspended: what a leader does has to be safe to repeat.
 * https://kubernetes.io/docs/concepts/architecture/leases/
 */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { KubeClient } from "./client.ts";
import { isConflict } from "./connection.ts";
import { pause } from "./informer.ts";
import { CORE, type KubeObject } from "./objects.ts";

export interface ElectionOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly leaseName: string;
  /** Unique for each candidate: the name of its pod. */
  readonly identity: string;
  /** Time after which a Lease that is not renewed is free, in seconds. */
  readonly leaseSeconds: number;
  /** Time after which a holder that cannot renew it gives up, in seconds; less than the lease's. */
  readonly renewSeconds: number;
  /** Interval between attempts, in seconds. */
  readonly retrySeconds: number;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly onStarted: () => void;
  /** The Lease was lost, or given back. */
  readonly onStopped: () => void;
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

/** The result of an attempt to acquire or renew the Lease. */
type Attempt = "held" | "taken" | "unknown";

export class LeaderElection {
  readonly #options: ElectionOptions;
  readonly #abort = new AbortController();
  #isLeader = false;
  /** The state of the Lease that was seen last, and when it was first seen. */
  #seen: { readonly state: string; readonly at: number } | undefined;
  #done: Promise<void> = Promise.resolve();

  constructor(options: ElectionOptions) {
    this.#options = options;
  }

  get isLeader(): boolean {
    return this.#isLeader;
  }

  start(): this {
    this.#done = this.#run();
    return this;
  }

  /** Gives the Lease back, so that the next candidate need not wait. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
    if (!this.#isLeader) return;
    this.#lost("the Lease was given back");
    await this.#release().catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { clock, log, renewSeconds, retrySeconds, leaseName } = this.#options;
    const { signal } = this.#abort;
    let renewedAt = clock.monotonic();
    while (!signal.aborted) {
      // Counted from before the request: when the server has written it is not known.
      const startedAt = clock.monotonic();
      const leftMs = this.#isLeader
        ? Math.max(0, renewedAt + renewSeconds * 1_000 - startedAt)
        : renewSeconds * 1_000;
      try {
        const attempt = await this.#within(leftMs);
        if (attempt === "held") renewedAt = startedAt;
        if (attempt === "held" && !this.#isLeader) {
          this.#isLeader = true;
          log.info({ lease: leaseName }, "this process leads");
          this.#options.onStarted();
        } else if (attempt === "taken" && this.#isLeader) this.#lost("another process leads");
      } catch (error) {
        if (!signal.aborted)
          log.warn({ lease: leaseName, error: (error as Error).message }, "the Lease failed");
      }
      const untilLate = renewedAt + renewSeconds * 1_000 - clock.monotonic();
      if (this.#isLeader && untilLate <= 0) this.#lost("the Lease could not be renewed in time");
      const pauseMs = retrySeconds * 1_000;
      await pause(clock, this.#isLeader ? Math.min(pauseMs, untilLate) : pauseMs, signal);
    }
  }

  /** Ends an attempt after a time, and when the election is stopped. @throws ApiError */
  async #within(ms: number): Promise<Attempt> {
    const attempt = new AbortController();
    const cancel = this.#options.clock.after(ms, () => attempt.abort());
    try {
      return await this.#tryAcquire(AbortSignal.any([this.#abort.signal, attempt.signal]));
    } finally {
      cancel();
    }
  }

  #lost(reason: string): void {
    this.#isLeader = false;
    this.#options.log.warn({ lease: this.#options.leaseName, reason }, "no longer the leader");
    this.#options.onStopped();
  }

  /** @throws ApiError */
  async #tryAcquire(signal: AbortSignal): Promise<Attempt> {
    const { client, namespace, leaseName: name, identity, leaseSeconds, clock } = this.#options;
    const found = await client.get(CORE.lease, { namespace, name }, signal);
    const now = microTime(clock.now());
    if (found === undefined) {
      return written(
        client.create(
          CORE.lease,
          {
            apiVersion: CORE.lease.apiVersion,
            kind: CORE.lease.kind,
            metadata: { name, namespace },
            spec: {
              holderIdentity: identity,
              leaseDurationSeconds: leaseSeconds,
              acquireTime: now,
              renewTime: now,
              leaseTransitions: 0,
            },
          },
          signal,
        ),
      );
    }
    const spec = (found["spec"] ?? {}) as LeaseSpec;
    const isOwn = spec.holderIdentity === identity;
    const isFree = spec.holderIdentity === undefined || spec.holderIdentity === "";
    if (!isOwn && !isFree && !this.#isExpired(spec)) return "taken";
    return written(
      client.replace(
        CORE.lease,
        {
          ...found,
          spec: {
            holderIdentity: identity,
            leaseDurationSeconds: leaseSeconds,
            acquireTime: isOwn ? (spec.acquireTime ?? now) : now,
            renewTime: now,
            leaseTransitions: (spec.leaseTransitions ?? 0) + (isOwn ? 0 : 1),
          },
        },
        signal,
      ),
    );
  }

  /** The clocks of two machines may differ: only the time since the last change is compared. */
  #isExpired(spec: LeaseSpec): boolean {
    const { clock, leaseSeconds } = this.#options;
    const state = JSON.stringify([spec.holderIdentity, spec.renewTime]);
    const now = clock.monotonic();
    if (this.#seen?.state !== state) this.#seen = { state, at: now };
    return now - this.#seen.at > (spec.leaseDurationSeconds ?? leaseSeconds) * 1_000;
  }

  async #release(): Promise<void> {
    const { client, namespace, leaseName: name, identity } = this.#options;
    const found = await client.get(CORE.lease, { namespace, name });
    const spec = (found?.["spec"] ?? {}) as LeaseSpec;
    if (found === undefined || spec.holderIdentity !== identity) return;
    await client.replace(CORE.lease, {
      ...found,
      spec: { ...spec, holderIdentity: "", leaseDurationSeconds: 1 },
    });
  }
}

/** A conflict does not tell who has written: the next attempt does. */
async function written(write: Promise<KubeObject>): Promise<Attempt> {
  try {
    await write;
    return "held";
  } catch (error) {
    if (isConflict(error)) return "unknown";
    throw error;
  }
}

/** `metav1.MicroTime`: RFC 3339 with microseconds. */
function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}
