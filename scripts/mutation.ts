/**
 * Runs Stryker over the code that decides, and sums its report up. Run: `make mutation`.
 *
 * - `FILES="src/audit/reader/verify.ts src/audit/chain/chain.ts:10-20"` mutates only these, with or
 *   without a range of lines.
 * - `CHANGED=1` mutates only lines that differ from the branch `BASE`, main by default.
 * - `SAMPLE=300` tries as many mutants, picked at random; `SEED=2` picks others.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import type { PartialStrykerOptions, schema } from "@stryker-mutator/api/core";
import { Stryker } from "@stryker-mutator/core";
import config from "../stryker.config.json" with { type: "json" };
import { SAMPLE_FILE, type Sample } from "./mutation-sample.ts";

/** More files than these are summed up by folder. */
const MOST_FILES = 30;

const { FILES = "", CHANGED = "", BASE = "main", SAMPLE = "" } = process.env;
const excluded = config.mutate.filter((pattern) => pattern.startsWith("!"));

/** Returns files with ranges of lines that differ from the branch, as Stryker takes them. */
function changedLines(): readonly string[] {
  const git = (...args: readonly string[]): readonly string[] =>
    execFileSync("git", args, { encoding: "utf8" }).split("\n");
  const [base = ""] = git("merge-base", BASE, "HEAD");
  const added = git("ls-files", "--others", "--exclude-standard", "src");
  const found = added.filter((file) => file !== "");
  let file = "";
  for (const line of git("diff", "--unified=0", "--no-ext-diff", "--no-color", base, "--", "src")) {
    if (line.startsWith("+++ ")) file = line.slice("+++ b/".length);
    const [, first, count = "1"] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (first === undefined || count === "0") continue;
    found.push(`${file}:${first}-${Number(first) + Number(count) - 1}`);
  }
  return found.filter((range) => isMutated(range.split(":")[0] ?? ""));
}

function isMutated(file: string): boolean {
  const matches = (pattern: string): boolean => path.matchesGlob(file, pattern);
  return (
    config.mutate.some((pattern) => !pattern.startsWith("!") && matches(pattern)) &&
    !excluded.some((pattern) => matches(pattern.slice(1)))
  );
}

interface Row {
  killed: number;
  survived: number;
  uncovered: number;
  /** Mutants that a test covers; more than were tried when there was a sample. */
  covered: number;
}

function summary(): string {
  const report = JSON.parse(
    readFileSync(config.jsonReporter.fileName, "utf8"),
  ) as schema.MutationTestResult;
  const files = Object.entries(report.files).filter(([, { mutants }]) => mutants.length > 0);
  const rows = new Map<string, Row>();
  const total: Row = { killed: 0, survived: 0, uncovered: 0, covered: 0 };
  for (const [file, { mutants }] of files) {
    const name = files.length > MOST_FILES ? file.split("/").slice(0, 2).join("/") : file;
    const row = rows.get(name) ?? { killed: 0, survived: 0, uncovered: 0, covered: 0 };
    rows.set(name, row);
    for (const { status } of mutants)
      for (const each of [row, total]) {
        if (status === "NoCoverage") each.uncovered++;
        else if (status !== "Ignored") each.covered++;
        if (status === "Killed" || status === "Timeout") each.killed++;
        else if (status === "Survived") each.survived++;
      }
  }
  const lines = [...rows, ["Total", total] as const].map(
    ([name, row]) =>
      `| ${name} | ${row.killed} | ${row.survived} | ${row.uncovered} | ${score(row)} |`,
  );
  return [
    "| Of | Killed | Survived | Not covered | Score |",
    "| --- | ---: | ---: | ---: | ---: |",
    ...lines,
  ].join("\n");
}

/** The share that is killed; where a sample was tried, that of the sample stands for all. */
function score({ killed, survived, uncovered, covered }: Row): string {
  if (killed + survived === 0) return uncovered > 0 ? "0%" : "–";
  const ratio = ((killed / (killed + survived)) * covered) / (covered + uncovered);
  return `${(ratio * 100).toFixed(0)}%`;
}

const only = CHANGED === "" ? FILES.split(/\s+/).filter(Boolean) : changedLines();
if (CHANGED !== "" && only.length === 0) {
  console.log(`Nothing that is mutated differs from ${BASE}.`);
  process.exit(0);
}
const options: PartialStrykerOptions = {
  configFile: "stryker.config.json",
  ...(only.length > 0 && { mutate: [...only, ...excluded] }),
  ...(SAMPLE !== "" && {
    plugins: [...config.plugins, "./scripts/mutation-sample.ts"],
    reporters: [...config.reporters, "sample"],
    checkers: ["sample"],
  }),
};
await new Stryker(options).runMutationTest();
console.log(`\n${summary()}`);
if (SAMPLE !== "") {
  const { picked, of } = JSON.parse(readFileSync(SAMPLE_FILE, "utf8")) as Sample;
  console.log(`\nTried ${picked.length} of ${of} mutants that tests cover.`);
}
