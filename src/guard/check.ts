/**
 * Judges the texts of one call by one guard: every piece, the newest text first, a few at a
 * time, until all are judged or the guard's time is over. Pieces without a verdict are counted, and
 * never taken for benign.
 */
import type { Clock } from "../platform/clock.ts";
import type { GuardPolicy } from "../policy/snapshot.ts";
import type { ClassifierFailure, ClassifierVerdict } from "./classifier-client.ts";
import type { Classifiers } from "./classifiers.ts";
import type { Piece } from "./pieces.ts";
import type { Label, Scores } from "./protocol.ts";
import { TURN_MS } from "./turn.ts";

/** Requests of one call at a time, so that one with a large text leaves room for others. */
const CONCURRENCY = 4;

export type FlagLabel = Exclude<Label, "benign">;

/** A piece that reaches a threshold. */
export interface Flagged {
  readonly piece: Piece;
  readonly label: FlagLabel;
  readonly score: number;
}

export interface GuardCheckResult {
  /** The flagged piece with the highest score; undefined if none is. */
  readonly flagged: Flagged | undefined;
  /** Number of flagged pieces among those that were judged. */
  readonly count: number;
  /** Pieces without a verdict, and why the first of them has none. */
  readonly unjudged: { readonly count: number; readonly failure: ClassifierFailure } | undefined;
}

export interface CheckOptions {
  readonly classifiers: Pick<Classifiers, "ask">;
  readonly clock: Clock;
  readonly guard: GuardPolicy;
  readonly pieces: readonly Piece[];
  /** Whether one flagged piece decides, so that no other is asked about. */
  readonly firstDecides: boolean;
}

export async function check(options: CheckOptions): Promise<GuardCheckResult> {
  const run = new CheckRun(options);
  await run.done;
  return run.result;
}

/** Returns the label whose threshold a text reaches; of two, the one with the higher score. */
export function flagOf(
  { injection, jailbreak }: Scores,
  thresholds: GuardPolicy["thresholds"],
): { readonly label: FlagLabel; readonly score: number } | undefined {
  const isInjection = injection >= thresholds.injection;
  const isJailbreak = jailbreak >= thresholds.jailbreak;
  if (isInjection && (!isJailbreak || injection >= jailbreak))
    return { label: "injection", score: injection };
  return isJailbreak ? { label: "jailbreak", score: jailbreak } : undefined;
}

class CheckRun {
  readonly #options: CheckOptions;
  readonly #queue: Piece[];
  readonly #finish: () => void;
  readonly #cancelDeadline: () => void;
  readonly done: Promise<void>;
  #over = false;
  #underWay = 0;
  #flagged: Flagged | undefined;
  #count = 0;
  #judged = 0;
  #failure: ClassifierFailure | undefined;

  constructor(options: CheckOptions) {
    this.#options = options;
    // Taken from its end: the newest text is the one that is not known.
    this.#queue = [...options.pieces];
    const { promise, resolve } = Promise.withResolvers<void>();
    this.done = promise;
    this.#finish = () => {
      this.#over = true;
      this.#cancelDeadline();
      resolve();
    };
    this.#cancelDeadline = options.clock.after(options.guard.timeoutMs, () => {
      this.#failure ??= "timeout";
      this.#finish();
    });
    this.#next();
  }

  get result(): GuardCheckResult {
    const left = this.#options.pieces.length - this.#judged;
    const decided = this.#options.firstDecides && this.#flagged !== undefined;
    return {
      flagged: this.#flagged,
      count: this.#count,
      unjudged:
        left === 0 || decided ? undefined : { count: left, failure: this.#failure ?? "timeout" },
    };
  }

  /** Asks about pieces until as many are under way as may be. */
  #next(): void {
    const { classifiers, clock, guard } = this.#options;
    const startedAt = clock.monotonic();
    while (!this.#over && this.#underWay < CONCURRENCY) {
      // To look up what is remembered of a large body takes its time too.
      if (clock.monotonic() - startedAt > TURN_MS) {
        setImmediate(() => this.#next());
        return;
      }
      const piece = this.#queue.pop();
      if (piece === undefined) {
        if (this.#underWay === 0) this.#finish();
        return;
      }
      const verdict = classifiers.ask(guard.classifier, piece.text, guard.timeoutMs);
      if (verdict instanceof Promise) {
        this.#underWay += 1;
        void this.#wait(verdict, piece);
      } else {
        this.#take(verdict, piece);
      }
    }
  }

  async #wait(answer: Promise<ClassifierVerdict>, piece: Piece): Promise<void> {
    const verdict = await answer;
    this.#underWay -= 1;
    if (this.#over) return;
    this.#take(verdict, piece);
    this.#next();
  }

  #take(verdict: ClassifierVerdict, piece: Piece): void {
    if (verdict.kind === "unavailable") {
      this.#failure ??= verdict.failure;
      return;
    }
    this.#judged += 1;
    const flag = flagOf(verdict.scores, this.#options.guard.thresholds);
    if (flag === undefined) return;
    this.#count += 1;
    if (this.#flagged === undefined || flag.score > this.#flagged.score) {
      this.#flagged = { piece, ...flag };
    }
    if (this.#options.firstDecides) this.#finish();
  }
}
