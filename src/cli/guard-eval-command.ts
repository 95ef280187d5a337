/** `svc guard eval`: measures a classifier on a team's own data. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { Argument, Command, Option } from "commander";
import type { Example } from "../guard/eval/dataset.ts";
import type { Evaluation, Observation } from "../guard/eval/evaluate.ts";
import type { Classifier } from "../guard/service/classifier.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import {
  type ClassifierFlags,
  classifierSettings,
  classifierSurroundings,
  setupError,
  withClassifier,
} from "./guard-flags.ts";
import { parseAtLeast, parseFraction } from "./options.ts";

interface Flags extends ClassifierFlags {
  readonly injectionThreshold: number;
  readonly jailbreakThreshold: number;
  readonly concurrency: number;
  readonly minRecall?: number;
  readonly maxFalsePositives?: number;
  readonly output: "table" | "json";
}

export function guardEvalCommand(context: Context): Command {
  return withClassifier(
    new Command("eval")
      .description("Measure a classifier: recall, false positives and latency on labelled texts.")
      .addArgument(
        new Argument(
          "<dataset>",
          'file of lines {"text": "...", "label": "benign|injection|jailbreak"}',
        ),
      ),
    "classifier to run in this process (default: custom, which asks the one at --endpoint)",
  )
    .option(
      "--injection-threshold <score>",
      "score from which a text counts as an injection",
      parseFraction,
      0.5,
    )
    .option(
      "--jailbreak-threshold <score>",
      "score from which a text counts as a jailbreak",
      parseFraction,
      0.5,
    )
    .option("--concurrency <number>", "texts that are classified at once", parseAtLeast(1), 4)
    .option(
      "--min-recall <rate>",
      "exit code 1 if a lower part of all attacks is flagged",
      parseFraction,
    )
    .option(
      "--max-false-positives <rate>",
      "exit code 1 if a higher part of the benign texts is flagged",
      parseFraction,
    )
    .addOption(
      new Option("-o, --output <format>", "form of the output")
        .choices(["table", "json"])
        .default("table"),
    )
    .addHelpText(
      "after",
      `
Examples:
  svc guard eval dataset.jsonl --endpoint http://127.0.0.1:8200
  svc guard eval dataset.jsonl --type promptGuard --model ./model --min-recall 0.9`,
    )
    .action((dataset: string, flags: Flags) => evaluateFile(dataset, flags, context));
}

async function evaluateFile(dataset: string, flags: Flags, context: Context): Promise<void> {
  const settings = classifierSettings(flags, flags.type ?? "custom", context.env);
  // Loaded when it is used, as the service is.
  const { startClassifier } = await import("../guard/service/settings.ts");
  const { DatasetError, parseDataset } = await import("../guard/eval/dataset.ts");
  const { evaluate, missedBounds } = await import("../guard/eval/evaluate.ts");
  const { renderEvaluation } = await import("./guard-eval-table.ts");
  try {
    const examples = parseDataset(read(dataset), path.basename(dataset));
    const classifier = await startClassifier(settings, {
      ...classifierSurroundings(context),
      report: { batch: () => undefined },
      onLost: () => undefined,
    });
    const observations = await observeAll(classifier, examples, flags);
    const evaluation: Evaluation = evaluate(observations, {
      injection: flags.injectionThreshold,
      jailbreak: flags.jailbreakThreshold,
    });
    context.stdout(
      flags.output === "json"
        ? `${JSON.stringify(evaluation, undefined, 2)}\n`
        : renderEvaluation(evaluation),
    );
    const { minRecall, maxFalsePositives } = flags;
    const missed = missedBounds(evaluation, { minRecall, maxFalsePositives });
    for (const sentence of missed) context.stderr(`svc: ${sentence}\n`);
    if (missed.length > 0) context.setExitCode(1);
  } catch (error) {
    throw error instanceof DatasetError ? new CliError(error.message) : setupError(error);
  }
}

/** Classifies the texts, and closes the classifier. */
async function observeAll(
  classifier: Classifier,
  examples: readonly Example[],
  { concurrency }: Flags,
): Promise<readonly Observation[]> {
  const { observe } = await import("../guard/eval/evaluate.ts");
  const never = new AbortController().signal;
  try {
    return await observe(examples, {
      classify: (text) => classifier.classify(text, never),
      concurrency,
      monotonic: () => performance.now(),
    });
  } finally {
    await classifier.close();
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CliError(
      `${file} cannot be read (${(error as NodeJS.ErrnoException).code}): name a file of ` +
        `labelled texts`,
    );
  }
}
