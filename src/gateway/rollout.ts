/**
 * Brings a policy into force without a gap: first every Envoy receives the clusters that it names,
 * then requests use it, its statuses are published, and clusters that only its predecessor names
 * are removed last. Rollouts run one at a time; of several waiting ones, only the newest is used.
 */
import type { Compiled } from "../compile/compile.ts";
import { compileEnvoy, type EnvoyOptions } from "../envoy/config/resources.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { PolicySnapshot } from "../policy/snapshot.ts";
import type { PolicyStore } from "../policy/store.ts";
import type { EnvoyResources, SnapshotEncoder, XdsSnapshot } from "../envoy/xds/snapshot.ts";

/** The part of the discovery service that a rollout needs. */
export interface Discovery {
  setSnapshot(snapshot: XdsSnapshot): void;
  settled(timeoutMs: number, clock: Clock): Promise<boolean>;
}

export interface RolloutOptions {
  readonly ads: Discovery;
  readonly encoder: SnapshotEncoder;
  readonly policy: PolicyStore;
  /** Called when a result is in force, after requests use its policy. */
  readonly inForce: (compiled: Compiled) => void;
  readonly envoy: EnvoyOptions;
  readonly clock: Clock;
  readonly log: Logger;
}

/** An Envoy that does not answer must not delay a change for the others. */
const ACK_TIMEOUT_MS = 2_000;

/** Calls that began before a change may still retry at their old provider. */
const RETIRE_AFTER_MS = 600_000;

type Cluster = EnvoyResources["cluster"][number];

export class Rollout {
  readonly #options: RolloutOptions;
  #current: EnvoyResources = { cluster: [], listener: [], route: [] };
  /** Clusters that no current policy names, by name, until they are removed. */
  readonly #retiring = new Map<string, Cluster>();
  #next: Compiled | undefined;
  #running = false;
  #idle: Promise<void> = Promise.resolve();

  constructor(options: RolloutOptions) {
    this.#options = options;
  }

  apply(compiled: Compiled): void {
    this.#next = compiled;
    if (this.#running) return;
    this.#running = true;
    this.#idle = this.#run();
  }

  /**
   * Resolves when everything passed to {@link apply} so far is in force, or has failed and been
   * logged.
   */
  idle(): Promise<void> {
    return this.#idle;
  }

  async #run(): Promise<void> {
    const { ads, policy, inForce, clock, log } = this.#options;
    for (let compiled = this.#next; compiled !== undefined; compiled = this.#next) {
      this.#next = undefined;
      const { policy: snapshot } = compiled;
      try {
        this.#stage(snapshot);
        const settled = await ads.settled(ACK_TIMEOUT_MS, clock);
        if (!settled)
          log.warn({ version: snapshot.version }, "not every Envoy has answered; continuing");
        policy.swap(snapshot);
        inForce(compiled);
        log.info({ version: snapshot.version }, "policy in force");
      } catch (error) {
        log.error(
          { error: error instanceof Error ? error.stack : String(error) },
          "not applied; the last good state stays in force",
        );
      }
    }
    // In the same turn as the last check of waiting policies, so that none can be added in between.
    this.#running = false;
  }

  /** The new configuration, with the clusters of the old one. */
  #stage(snapshot: PolicySnapshot): void {
    const config = compileEnvoy(snapshot, this.#options.envoy);
    const named = new Set(config.cluster.map(nameOf));
    for (const name of named) this.#retiring.delete(name);
    const left = this.#current.cluster.filter((cluster) => !named.has(nameOf(cluster)));
    this.#push(config, [...this.#retiring.values(), ...left]);
    this.#current = config;
    if (left.length === 0) return;
    for (const cluster of left) this.#retiring.set(nameOf(cluster), cluster);
    this.#options.clock.after(RETIRE_AFTER_MS, () => this.#retire(left));
  }

  #retire(clusters: readonly Cluster[]): void {
    for (const cluster of clusters) {
      if (this.#retiring.get(nameOf(cluster)) === cluster) this.#retiring.delete(nameOf(cluster));
    }
    this.#push(this.#current, [...this.#retiring.values()]);
  }

  #push(config: EnvoyResources, retiring: readonly Cluster[]): void {
    const { ads, encoder } = this.#options;
    ads.setSnapshot(encoder.encode({ ...config, cluster: [...config.cluster, ...retiring] }));
  }
}

function nameOf(cluster: Cluster): string {
  const { name } = cluster;
  if (name === undefined) throw new Error("a cluster without a name");
  return name;
}
