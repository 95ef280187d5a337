/** Flags of `svc guard` and `svc guard eval` that say which classifier runs. */
import { validateHeaderName, validateHeaderValue } from "node:http";
import os from "node:os";
import path from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Label, LABELS } from "../guard/protocol.ts";
import { CLASSIFIER_TYPES, ClassifierSetupError } from "../guard/service/classifier.ts";
import type { ClassifierSettings, ClassifierSurroundings } from "../guard/service/settings.ts";
import type { ClassifierType } from "../policy/snapshot.ts";
import type { Context } from "./context.ts";
import { CliError } from "./errors.ts";
import { parseAtLeast } from "./options.ts";

export interface ClassifierFlags {
  readonly type?: ClassifierType;
  readonly model?: string;
  readonly modelName?: string;
  readonly modelFile?: string;
  readonly endpoint?: string;
  readonly authHeader: string;
  readonly authPrefix: string;
  readonly label?: ReadonlyMap<string, Label>;
  readonly threads?: number;
  readonly window: number;
  readonly overlap: number;
  readonly maxBatch: number;
  readonly batchTokens: number;
  readonly timeoutMs: number;
  readonly pieceChars: number;
}

/** @param type description of `--type`, which the two commands use differently */
export function withClassifier(command: Command, type: string): Command {
  return command
    .addOption(new Option("--type <type>", type).choices(CLASSIFIER_TYPES))
    .option(
      "--model <dir>",
      "promptGuard: folder of the model; llamaGuard: name of the model at the endpoint",
    )
    .option(
      "--model-file <path>",
      "promptGuard: ONNX file in the folder (default: model.onnx or onnx/model.onnx)",
    )
    .option(
      "--model-name <name>",
      "promptGuard: name that answers show (default: from config.json, or the folder's)",
    )
    .addOption(
      new Option(
        "--label <class=label>",
        "label of a class of the model, or of a category of Llama Guard, such as " +
          "LABEL_1=injection; may be repeated",
      ).argParser(collectLabels),
    )
    .option(
      "--threads <number>",
      "promptGuard: threads of a run (default: one per available core)",
      parseAtLeast(1),
    )
    .option(
      "--window <tokens>",
      "promptGuard: tokens that the model sees at once",
      parseAtLeast(16),
      512,
    )
    .option(
      "--overlap <tokens>",
      "promptGuard: tokens that a window has in common with the previous one",
      parseAtLeast(0),
      64,
    )
    .option("--max-batch <number>", "promptGuard: windows of a run", parseAtLeast(1), 16)
    .option(
      "--batch-tokens <tokens>",
      "promptGuard: tokens of a run of several windows, with padding",
      parseAtLeast(1),
      512,
    )
    .option("--endpoint <url>", "llamaGuard: OpenAI-compatible API; custom: another classifier")
    .option("--auth-header <name>", "header that $SVC_GUARD_TOKEN is sent in", "authorization")
    .option("--auth-prefix <text>", "text before $SVC_GUARD_TOKEN in the header", "Bearer ")
    .option("--timeout-ms <ms>", "time for an answer of the endpoint", parseAtLeast(1), 10_000)
    .option(
      "--piece-chars <number>",
      "llamaGuard: characters of a text that are sent at once",
      parseAtLeast(1_000),
      16_000,
    );
}

/** Collects `class=label` pairs; commas separate several. */
function collectLabels(
  text: string,
  before: ReadonlyMap<string, Label> = new Map(),
): ReadonlyMap<string, Label> {
  const labels = new Map(before);
  for (const pair of text.split(",")) {
    const at = pair.lastIndexOf("=");
    const name = pair.slice(0, at).trim().toUpperCase();
    const label = LABELS.find((known) => known === pair.slice(at + 1).trim());
    if (at < 1 || name === "" || label === undefined)
      throw new InvalidArgumentError(`expected <class>=${LABELS.join("|")}`);
    labels.set(name, label);
  }
  return labels;
}

export function classifierSettings(
  flags: ClassifierFlags,
  type: ClassifierType,
  env: NodeJS.ProcessEnv,
): ClassifierSettings {
  const { label, threads, ...rest } = flags;
  return {
    type,
    model: rest.model,
    modelName: rest.modelName,
    modelFile: rest.modelFile,
    endpoint: rest.endpoint,
    auth: authOf(flags, env["SVC_GUARD_TOKEN"]),
    labels: label ?? new Map(),
    // Respects the limit of a container, which onnxruntime's own default does not.
    threads: threads ?? os.availableParallelism(),
    window: rest.window,
    overlap: rest.overlap,
    maxBatch: rest.maxBatch,
    batchTokens: rest.batchTokens,
    timeoutMs: rest.timeoutMs,
    pieceChars: rest.pieceChars,
  };
}

function authOf(
  { authHeader: header, authPrefix }: ClassifierFlags,
  token: string | undefined,
): ClassifierSettings["auth"] {
  if (token === undefined || token === "") return undefined;
  const value = `${authPrefix}${token.trim()}`;
  try {
    validateHeaderName(header);
    validateHeaderValue(header, value);
  } catch {
    throw CliError.usage(
      `--auth-header ${header}: it is not the name of a header, or SVC_GUARD_TOKEN has ` +
        `characters that a header may not have.`,
    );
  }
  return { header, value };
}

export function classifierSurroundings({
  root,
  env,
}: Pick<Context, "root" | "env">): Omit<ClassifierSurroundings, "report" | "onLost"> {
  return {
    root,
    stubSubstrings: env["SVC_GUARD_STUB_INJECTION"],
    runtime: env["SVC_CLASSIFIER_RUNTIME"],
    worker: path.join(root, "dist/guard-model.js"),
  };
}

/** Returns the error to show for one of a classifier's settings or files. */
export function setupError(error: unknown): unknown {
  return error instanceof ClassifierSetupError ? new CliError(error.message) : error;
}
