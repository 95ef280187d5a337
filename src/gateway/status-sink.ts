/**
 * Sinks of statuses. A sink receives all statuses whenever they have changed, and only those of
 * what is in force.
 */
import type { TimeSource } from "../platform/clock.ts";
import { type ObjectStatus, type PublishedStatus, withTransitionTimes } from "../policy/status.ts";

/** StatusSink publishes statuses: to the control API, or to the Kubernetes API. */
export interface StatusSink {
  /**
   * Replaces all published statuses. It neither waits nor throws: a sink that writes elsewhere
   * writes later, only the newest of several, and reports its own failures.
   */
  publish(statuses: readonly ObjectStatus[]): void;
}

/** StatusTable keeps the newest statuses in memory, for the control API. */
export class StatusTable implements StatusSink {
  readonly #clock: TimeSource;
  #current: readonly PublishedStatus[] = [];

  constructor(clock: TimeSource) {
    this.#clock = clock;
  }

  get current(): readonly PublishedStatus[] {
    return this.#current;
  }

  publish(statuses: readonly ObjectStatus[]): void {
    this.#current = withTransitionTimes(statuses, this.#current, this.#clock.now());
  }
}
