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

/** Failures that a call waits for, of which the breaker spares the next ones. */
const DELAYING: ReadonlySet<ClassifierFailure> = new Set(["timeout", "unreachable"]);

interface Known {
  readonly policy: ClassifierPolicy;
  readonly client: ClassifierClient;
  readonly breaker: Breaker;
  /** Requests under way, by their time and key of the cache. */
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
   * @param timeoutMs of the request; a caller that asks for several texts has its own deadline
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
    const known = this.#of(policy);
    if (known === undefined) return unavailable("misconfigured");
    // A guard that waits longer has a request of its own: nobody shortens the time of another.
    const question = `${timeoutMs} ${key}`;
    const same = known.underWay.get(question);
    // While the breaker is open nobody waits, not even for the trial.
    if (same !== undefined && !known.breaker.isOpen) return same;
    switch (known.breaker.enter()) {
      case "open":
        return unavailable("breaker_open");
      case "trial":
        void this.#start(known, { key, question }, text, timeoutMs);
        return unavailable("breaker_open");
      case "closed":
        return known.underWay.size < MAX_UNDER_WAY
          ? this.#start(known, { key, question }, text, timeoutMs)
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

  #start(
    known: Known,
    { key, question }: { readonly key: string; readonly question: string },
    text: string,
    timeoutMs: number,
  ): Promise<ClassifierVerdict> {
    this.#options.metrics.asked(known.policy.type, text.length);
    const answer = known.client.classify(text, timeoutMs).then((verdict) => {
      known.underWay.delete(question);
      this.#settle(known, key, verdict);
      return verdict;
    });
    known.underWay.set(question, answer);
    return answer;
  }

  #settle(known: Known, key: string, verdict: ClassifierVerdict): void {
    if (verdict.kind === "scores") {
      known.breaker.succeeded();
      this.#cache.set(key, verdict.scores);
      return;
    }
    // An answer that is no verdict delays nobody, and may be due to this text alone.
    if (DELAYING.has(verdict.failure)) known.breaker.failed();
    else known.breaker.succeeded();
    this.#options.metrics.failed(known.policy.type, verdict.failure);
  }

  /** @returns undefined if the classifier cannot be asked */
  #of(policy: ClassifierPolicy): Known | undefined {
    const found = this.#known.get(policy.id);
    if (found !== undefined) return found;
    const client = this.#clientOf(policy);
    if (client === undefined) return undefined;
    const known: Known = {
      policy,
      client,
      breaker: new Breaker(this.#options.clock),
      underWay: new Map(),
    };
    this.#known.set(policy.id, known);
    return known;
  }

  #clientOf(policy: ClassifierPolicy): ClassifierClient | undefined {
    if (policy.url === undefined) return undefined;
    try {
      return new ClassifierClient(policy, policy.url, this.#options.trust);
    } catch {
      // The address cannot be parsed, or the certificates cannot be read.
      return undefined;
    }
  }
}

function stateOf({ policy, breaker }: Known): { readonly scanner: string; readonly open: boolean } {
  return { scanner: policy.type, open: breaker.isOpen };
}

function unavailable(failure: ClassifierFailure): ClassifierVerdict {
  return { kind: "unavailable", failure };
}
