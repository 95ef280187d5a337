/**
 * Classifiers are all classifiers that are in use, with what is known of them: verdicts, requests
 * under way, and whether they answer. A text is asked about once, however many calls contain it.
 */
import type { SecureContext } from "node:tls";
import type { TimeSource } from "../platform/clock.ts";
import type { ClassifierPolicy } from "../policy/snapshot.ts";
import { Breaker } from "./breaker.ts";
import {
  ClassifierClient,
  type ClassifierFailure,
  type ClassifierVerdict,
} from "./classifier-client.ts";
import type { GuardMetrics } from "./metrics.ts";
import { VerdictCache } from "./verdict-cache.ts";

/** Requests to one classifier that may wait for a connection. */
const MAX_UNDER_WAY = 2_048;

export interface ClassifiersOptions {
  readonly clock: TimeSource;
  readonly metrics: GuardMetrics;
  /** Certificates against which classifiers with TLS are verified. */
  readonly trust: () => SecureContext;
  readonly cache?: VerdictCache;
}

interface Known {
  readonly policy: ClassifierPolicy;
  readonly client: ClassifierClient;
  readonly breaker: Breaker;
  /** Requests under way, by key of the cache. */
  readonly underWay: Map<string, Promise<ClassifierVerdict>>;
}

export class Classifiers {
  readonly #options: ClassifiersOptions;
  readonly #cache: VerdictCache;
  /** By id of the classifier. */
  readonly #known = new Map<string, Known>();

  constructor(options: ClassifiersOptions) {
    this.#options = options;
    this.#cache = options.cache ?? new VerdictCache();
    options.metrics.watch(() => [...this.#known.values()].map(stateOf));
  }

  /**
   * Asks for the verdict of a text.
   *
   * @param timeoutMs of the request; a caller that waits for several texts has a deadline of its
   * own
   * @returns a promise only if the classifier has to be asked; it never rejects
   */
  ask(
    policy: ClassifierPolicy,
    text: string,
    timeoutMs: number,
  ): ClassifierVerdict | Promise<ClassifierVerdict> {
    const { metrics } = this.#options;
    const key = this.#cache.keyOf(policy.id, text);
    const scores = this.#cache.get(key);
    if (scores !== undefined) {
      metrics.remembered(policy.type);
      return { kind: "scores", scores };
    }
    if (policy.url === undefined) return unavailable("misconfigured");
    const known = this.#of(policy, policy.url);
    const same = known.underWay.get(key);
    if (same !== undefined) return same;
    switch (known.breaker.enter()) {
      case "open":
        return unavailable("breaker_open");
      case "trial":
        void this.#start(known, key, text, timeoutMs);
        return unavailable("breaker_open");
      case "closed":
        return known.underWay.size < MAX_UNDER_WAY
          ? this.#start(known, key, text, timeoutMs)
          : unavailable("overloaded");
    }
  }

  /** Forgets the classifiers that are not in use any more. */
  retain(ids: ReadonlySet<string>): void {
    for (const [id, { client }] of this.#known) {
      if (ids.has(id)) continue;
      client.close();
      this.#known.delete(id);
    }
  }

  close(): void {
    this.retain(new Set());
  }

  #start(known: Known, key: string, text: string, timeoutMs: number): Promise<ClassifierVerdict> {
    this.#options.metrics.asked(known.policy.type, text.length);
    const answer = this.#settle(known, key, known.client.classify(text, timeoutMs));
    known.underWay.set(key, answer);
    return answer;
  }

  async #settle(
    known: Known,
    key: string,
    answer: Promise<ClassifierVerdict>,
  ): Promise<ClassifierVerdict> {
    const verdict = await answer;
    known.underWay.delete(key);
    if (verdict.kind === "scores") {
      known.breaker.succeeded();
      this.#cache.set(key, verdict.scores);
    } else {
      known.breaker.failed();
      this.#options.metrics.failed(known.policy.type, verdict.failure);
    }
    return verdict;
  }

  #of(policy: ClassifierPolicy, url: string): Known {
    const found = this.#known.get(policy.id);
    if (found !== undefined) return found;
    const known: Known = {
      policy,
      client: new ClassifierClient(policy, url, this.#options.trust),
      breaker: new Breaker(this.#options.clock),
      underWay: new Map(),
    };
    this.#known.set(policy.id, known);
    return known;
  }
}

function stateOf({ policy, breaker }: Known): { readonly scanner: string; readonly open: boolean } {
  return { scanner: policy.type, open: breaker.isOpen };
}

function unavailable(failure: ClassifierFailure): ClassifierVerdict {
  return { kind: "unavailable", failure };
}
