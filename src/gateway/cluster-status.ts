/**
 * Writes statuses to the Kubernetes API: those of what is in force for ModelProviders and
 * AccessKeys, and today's usage of every kind that has one. The controller writes the rest. Only
 * the replica that holds the Lease writes, and only what differs from the object: a restart, or
 * another writer, writes nothing again.
 */
import { isDeepStrictEqual } from "node:util";
import type { KubeClient } from "../kubernetes/client.ts";
import { isNotFound } from "../kubernetes/connection.ts";
import type { Informer } from "../kubernetes/informer.ts";
import { type KubeObject, nameOf } from "../kubernetes/objects.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import {
  type ObjectStatus,
  type PublishedCondition,
  withTransitionTimes,
} from "../policy/status.ts";
import { isResourceKind, resourceId, type ResourceKind } from "../resources/kinds.ts";
import { kubeKindOf } from "../sources/kubernetes/own-informers.ts";
import type { ClosableSink } from "./backing.ts";
import type { UsageOf } from "./objects.ts";

export interface ClusterStatusOptions {
  readonly client: KubeClient;
  /** Informers of the kinds whose statuses are written. */
  readonly informers: readonly Informer[];
  readonly usage: UsageOf;
  /** Returns whether this replica writes. */
  readonly isWriter: () => boolean;
  /** Interval of writing usage, in milliseconds. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn">;
}

/** Kinds whose readiness is the gateway's to judge. */
const JUDGED: ReadonlySet<ResourceKind> = new Set(["ModelProvider", "AccessKey"]);
/** The fields of usage that the kinds' schemas have. */
const USAGE_FIELDS = ["tokensToday", "requestsToday", "costTodayUSD"] as const;
/** Requests to the API server at once. */
const PARALLEL = 8;
/** Quiet time before changed statuses are written, in milliseconds. */
const QUIET_MS = 200;

export class ClusterStatusSink implements ClosableSink {
  readonly #options: ClusterStatusOptions;
  #statuses: readonly ObjectStatus[] = [];
  #cancel: () => void;
  #soon: (() => void) | undefined;
  #writing: Promise<void> | undefined;
  #again = false;
  #closed = false;

  constructor(options: ClusterStatusOptions) {
    this.#options = options;
    this.#cancel = options.clock.after(options.intervalMs, () => this.#tick());
  }

  publish(statuses: readonly ObjectStatus[]): void {
    this.#statuses = statuses;
    this.#soon ??= this.#options.clock.after(QUIET_MS, () => {
      this.#soon = undefined;
      this.write();
    });
  }

  /** Writes what differs, now or after the writing under way. */
  write(): void {
    if (this.#closed || !this.#options.isWriter()) return;
    this.#again = true;
    this.#writing ??= this.#run().finally(() => (this.#writing = undefined));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    this.#soon?.();
    await this.#writing;
  }

  #tick(): void {
    this.write();
    this.#cancel = this.#options.clock.after(this.#options.intervalMs, () => this.#tick());
  }

  async #run(): Promise<void> {
    while (this.#again && !this.#closed) {
      this.#again = false;
      await this.#writeAll().catch((error: unknown) => {
        this.#options.log.warn({ error: String(error) }, "statuses were not written");
      });
    }
  }

  async #writeAll(): Promise<void> {
    const { informers, usage, clock } = this.#options;
    const usages = await usage(this.#statuses);
    const byId = new Map(this.#statuses.map((status) => [resourceId(status), status]));
    const due: { readonly object: KubeObject; readonly status: Record<string, unknown> }[] = [];
    for (const object of informers.flatMap(({ objects }) => [...objects.values()])) {
      const id = `${object.kind}/${nameOf(object)}`;
      const judged = byId.get(id);
      if (judged === undefined || !isResourceKind(object.kind)) continue;
      const found = (object["status"] ?? {}) as Record<string, unknown>;
      const status = {
        ...(JUDGED.has(object.kind) ? conditionsOf(judged, found, clock.now()) : {}),
        ...pick(usages.get(id) ?? {}, found),
      };
      if (Object.entries(status).some(([name, value]) => !isDeepStrictEqual(found[name], value)))
        due.push({ object, status });
    }
    for (let start = 0; start < due.length && !this.#closed; start += PARALLEL)
      await Promise.all(
        due
          .slice(start, start + PARALLEL)
          .map(async ({ object, status }) => this.#apply(object, status)),
      );
  }

  async #apply(
    { apiVersion, kind, metadata: { name, namespace = "" } }: KubeObject,
    status: Record<string, unknown>,
  ): Promise<void> {
    const { client, log } = this.#options;
    try {
      await client.apply(
        kubeKindOf(kind as ResourceKind),
        { apiVersion, kind, metadata: { name, namespace }, status },
        "status",
      );
    } catch (error) {
      if (!isNotFound(error))
        log.warn({ kind, namespace, name, error: String(error) }, "a status was not written");
    }
  }
}

/** A condition that has not changed keeps the time that the object has, whoever wrote it. */
function conditionsOf(
  status: ObjectStatus,
  found: Record<string, unknown>,
  now: number,
): Record<string, unknown> {
  const known = (found["conditions"] ?? []) as readonly PublishedCondition[];
  const [published] = withTransitionTimes([status], [{ ...status, conditions: known }], now);
  const { ready, reason, message, observedGeneration, conditions } = published ?? status;
  return {
    ready,
    reason,
    message,
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    conditions,
  };
}

/** Returns the fields of usage; a zero is not written where there is nothing yet. */
function pick(usage: object, found: Record<string, unknown>): Record<string, unknown> {
  const known = usage as Readonly<Record<string, number | undefined>>;
  return Object.fromEntries(
    USAGE_FIELDS.flatMap((name) => {
      const value = known[name];
      return value === undefined || (value === 0 && found[name] === undefined)
        ? []
        : [[name, value]];
    }),
  );
}
