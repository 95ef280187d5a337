/**
 * A plugin of Stryker that tries a random sample of the mutants. Its reporter, in Stryker's own
 * process, picks them once the plan is known; its checker, in another process, turns the others
 * away. Stryker then counts those as errors of compilation, which no score contains.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Checker, type CheckResult, CheckStatus } from "@stryker-mutator/api/check";
import { type Mutant, type MutantRunPlan, PlanKind } from "@stryker-mutator/api/core";
import { declareClassPlugin, PluginKind } from "@stryker-mutator/api/plugin";
import type { MutationTestingPlanReadyEvent, Reporter } from "@stryker-mutator/api/report";

export const SAMPLE_FILE = "reports/mutation/sample.json";

export interface Sample {
  readonly picked: readonly string[];
  /** Number of mutants that there were to pick from: those that a test covers. */
  readonly of: number;
  /** Mutants that no test covers. Stryker runs nothing for them. */
  readonly uncovered: readonly string[];
}

class SampleReporter implements Reporter {
  onMutationTestingPlanReady({ mutantPlans }: MutationTestingPlanReadyEvent): void {
    const plans = mutantPlans.filter((each) => each.plan === PlanKind.Run);
    const isCovered = (plan: MutantRunPlan): boolean => plan.runOptions.testFilter?.length !== 0;
    const ranked = plans
      .filter(isCovered)
      .map(({ mutant }) => ({ id: mutant.id, rank: rankOf(mutant) }));
    ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1));
    const sample: Sample = {
      picked: ranked.slice(0, Number(process.env["SAMPLE"])).map(({ id }) => id),
      of: ranked.length,
      uncovered: plans.filter((plan) => !isCovered(plan)).map(({ mutant }) => mutant.id),
    };
    mkdirSync(path.dirname(SAMPLE_FILE), { recursive: true });
    writeFileSync(SAMPLE_FILE, JSON.stringify(sample));
    // The checker is sent all mutants in one message, and V8 limits the length of a text.
    const picked = new Set(sample.picked);
    for (const { mutant } of plans) if (!picked.has(mutant.id)) delete mutant.coveredBy;
  }
}

/** The same seed picks the same mutants of code that did not change. */
function rankOf({ fileName, location, replacement }: Mutant): string {
  const { start, end } = location;
  const place = [path.relative(process.cwd(), fileName), start.line, start.column, end.line];
  const text = [process.env["SEED"] ?? "1", ...place, end.column, replacement].join(":");
  return createHash("sha256").update(text).digest("hex");
}

class SampleChecker implements Checker {
  #picked: ReadonlySet<string> | undefined;

  init(): Promise<void> {
    return Promise.resolve();
  }

  check(mutants: Mutant[]): Promise<Record<string, CheckResult>> {
    this.#picked ??= readSample();
    const results = mutants.map(({ id }): [string, CheckResult] => [
      id,
      this.#picked?.has(id) === true
        ? { status: CheckStatus.Passed }
        : { status: CheckStatus.CompileError, reason: "It is not in the sample." },
    ]);
    return Promise.resolve(Object.fromEntries(results));
  }
}

function readSample(): ReadonlySet<string> {
  const { picked, uncovered } = JSON.parse(readFileSync(SAMPLE_FILE, "utf8")) as Sample;
  return new Set([...picked, ...uncovered]);
}

export const strykerPlugins = [
  declareClassPlugin(PluginKind.Reporter, "sample", SampleReporter),
  declareClassPlugin(PluginKind.Checker, "sample", SampleChecker),
];
