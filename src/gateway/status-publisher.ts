/**
 * StatusPublisher publishes the statuses of what is in force, with Envoy's answer for each
 * ModelProvider: a condition `Programmed`.
 */
import type { Compiled } from "../compile/compile.ts";
import { chainCluster, relayedCluster, upstreamCluster } from "../envoy/config/names.ts";
import type { PolicySnapshot } from "../policy/snapshot.ts";
import { type EnvoyAnswer, type ObjectStatus, withProgrammed } from "../policy/status.ts";
import { keyOf } from "../resources/metadata.ts";
import type { StatusSink } from "./status-sink.ts";

/** The part of the discovery service that knows Envoy's answers. */
export interface ClusterAnswers {
  /** Returns the answer of all connected Envoys for some clusters together. */
  answerFor(clusters: readonly string[]): EnvoyAnswer;
}

export interface StatusPublisherOptions {
  readonly sinks: readonly StatusSink[];
  readonly answers: ClusterAnswers;
}

export class StatusPublisher {
  readonly #options: StatusPublisherOptions;
  #statuses: readonly ObjectStatus[] = [];
  /** Names of the clusters of each ModelProvider in use, by `<namespace>/<name>`. */
  #clusters: ReadonlyMap<string, readonly string[]> = new Map();

  constructor(options: StatusPublisherOptions) {
    this.#options = options;
  }

  /** Publishes the statuses of what has come into force. */
  inForce({ policy, statuses }: Pick<Compiled, "policy" | "statuses">): void {
    this.#statuses = statuses;
    this.#clusters = clustersOf(policy);
    this.refresh();
  }

  /** Publishes the same statuses again, because Envoy has answered, connected or gone. */
  refresh(): void {
    const { sinks, answers } = this.#options;
    const statuses = this.#statuses.map((status) => {
      const clusters =
        status.kind === "ModelProvider" ? this.#clusters.get(keyOf(status)) : undefined;
      return clusters === undefined ? status : withProgrammed(status, answers.answerFor(clusters));
    });
    for (const sink of sinks) sink.publish(statuses);
  }
}

function clustersOf({ providers }: PolicySnapshot): ReadonlyMap<string, readonly string[]> {
  return new Map(
    [...providers].map(([key, provider]) => [
      key,
      [
        upstreamCluster(provider),
        chainCluster(provider),
        ...(provider.readsToEnd ? [relayedCluster(provider)] : []),
      ],
    ]),
  );
}
