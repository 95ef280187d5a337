/**
 * Reconciler brings every load of a source into force: it compiles the load and gives the result to
 * the rollout. It compiles the same load again when a status changes with time alone.
 */
import type { Compiled } from "../compile/compile.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { formatProblem } from "../resources/problem.ts";
import type { LoadResult } from "../sources/load-result.ts";
import type { Source } from "../sources/source.ts";
import { Recheck } from "./recheck.ts";

export interface ReconcilerOptions {
  readonly source: Source;
  /** @param now milliseconds since the epoch */
  readonly compile: (load: LoadResult, now: number) => Compiled;
  readonly rollout: { apply(compiled: Compiled): void };
  readonly clock: Clock;
  readonly log: Pick<Logger, "warn" | "error">;
}

export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #recheck: Recheck;
  readonly #stop: () => void;
  #problems: readonly string[] = [];

  /** Applies the current load, and every change. @throws if the current load cannot be compiled */
  constructor(options: ReconcilerOptions) {
    const { source, clock } = options;
    this.#options = options;
    this.#recheck = new Recheck(clock, () => this.#guarded(source.current()));
    this.#stop = source.onChange((load) => this.#guarded(load));
    this.#apply(source.current());
  }

  /** Descriptions of the parts of the source that are not in use as written. */
  get problems(): readonly string[] {
    return this.#problems;
  }

  close(): void {
    this.#stop();
    this.#recheck.set(undefined);
  }

  #apply(load: LoadResult): void {
    const { compile, rollout, clock, log } = this.#options;
    const compiled = compile(load, clock.now());
    const known = new Set(this.#problems);
    this.#problems = load.problems.map(formatProblem);
    // Each is logged once, however often the rest of the source changes.
    for (const problem of this.#problems)
      if (!known.has(problem)) log.warn({ problem }, "resource not in use as written");
    rollout.apply(compiled);
    this.#recheck.set(compiled.recheckAt);
  }

  #guarded(load: LoadResult): void {
    try {
      this.#apply(load);
    } catch (error) {
      this.#options.log.error(
        { error: error instanceof Error ? error.stack : String(error) },
        "not applied; the last good state stays in force",
      );
    }
  }
}
