/**
 * The side of the prompt guard that runs in a worker thread: tokenizer, scheduler and model.
 *
 * It is a thread of its own because `run` of onnxruntime-node computes on the thread that calls it,
 * for 50 to 1000 ms, and tokenising takes some milliseconds for each 1024 characters: on the main
 * thread, neither `/healthz` nor a disconnected client would be noticed meanwhile. Texts are
 * tokenised window by window, so that a long one does not delay the runs of others either.
 */
import type { MessagePort } from "node:worker_threads";
import { setImmediate } from "node:timers/promises";
import type { Label, Scores } from "../protocol.ts";
import { ClassifierError, ClassifierSetupError } from "./classifier.ts";
import { type LabelMap, labelsOfModel, scoresOf } from "./labels.ts";
import { readModelFiles } from "./model-files.ts";
import { type ModelSession, openSession } from "./model-session.ts";
import { firstLine, loadRuntime } from "./runtime.ts";
import { Scheduler, type TokenWindow } from "./scheduler.ts";
import { type TextTokenizer, textTokenizer } from "./text-tokenizer.ts";
import { windowsOf } from "./windows.ts";

/** Options of the worker. */
export interface ModelOptions {
  /** Folder of the packages. */
  readonly runtime: string;
  /** Folder of the model. */
  readonly folder: string;
  /** ONNX file in the folder; undefined for model.onnx or onnx/model.onnx. */
  readonly file: string | undefined;
  readonly labels: LabelMap;
  /** Threads of a run; 0 for one per core. */
  readonly threads: number;
  /** Tokens of a window, with special tokens. */
  readonly window: number;
  /** Tokens that a window has in common with the previous one. */
  readonly overlap: number;
  /** Windows of a run. */
  readonly maxBatch: number;
  /** Tokens of a run with its padding. */
  readonly batchTokens: number;
}

export type ToWorker =
  | { readonly kind: "classify"; readonly id: number; readonly text: string }
  | { readonly kind: "abort"; readonly id: number };

export type FromWorker =
  | { readonly kind: "ready"; readonly name: string | undefined; readonly labels: readonly Label[] }
  | { readonly kind: "unusable"; readonly message: string }
  | { readonly kind: "batch"; readonly windows: number }
  | { readonly kind: "scores"; readonly id: number; readonly scores: Scores }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };

/** Loads the model, and answers the messages of the port until it is closed. */
export async function serveModel(port: MessagePort, options: ModelOptions): Promise<void> {
  const send = (message: FromWorker): void => port.postMessage(message);
  let model: Model;
  try {
    model = await loadModel(options, (windows) => send({ kind: "batch", windows }));
  } catch (error) {
    const message =
      error instanceof ClassifierSetupError || error instanceof ClassifierError
        ? error.message
        : `The model in ${options.folder} cannot be used: ${firstLine(error)}.`;
    send({ kind: "unusable", message });
    return port.close();
  }
  const under = new Map<number, AbortController>();
  port.on("message", (message: ToWorker) => {
    if (message.kind === "abort") return under.get(message.id)?.abort();
    const { id, text } = message;
    const aborter = new AbortController();
    under.set(id, aborter);
    void model
      .classify(text, aborter.signal)
      .then(
        (scores) => send({ kind: "scores", id, scores }),
        (error: unknown) => send({ kind: "failed", id, message: reasonOf(error) }),
      )
      .finally(() => under.delete(id));
  });
  send({ kind: "ready", name: model.name, labels: model.labels });
}

/** Errors of packages may have parts of the text: only our own are told. */
function reasonOf(error: unknown): string {
  return error instanceof ClassifierError ? error.message : "the model failed to run";
}

interface Model {
  readonly name: string | undefined;
  readonly labels: readonly Label[];
  classify(text: string, signal: AbortSignal): Promise<Scores>;
}

/** @param onBatch is called after each run with its number of windows */
export async function loadModel(
  options: ModelOptions,
  onBatch: (windows: number) => void,
): Promise<Model> {
  const files = readModelFiles(options.folder, options.file);
  const labels = labelsOfModel(files.config.id2label, options.labels);
  const runtime = loadRuntime(options.runtime);
  const tokenizer = textTokenizer(files, runtime);
  const session = await openSession({
    onnxRuntime: runtime.onnx,
    file: files.onnx,
    threads: options.threads,
    padding: tokenizer.padding,
  });
  await tryOut(session, tokenizer, labels);
  const scheduler = new Scheduler({
    maxBatch: maxBatchOf(session, options.maxBatch),
    maxTokens: options.batchTokens,
    // Messages are received between two turns of the event loop.
    pause: () => setImmediate(),
    run: async (batch) => {
      const logits = await session.run(batch);
      onBatch(batch.length);
      return logits.map((row) => scoresOf(row, labels));
    },
  });
  const window = windowTokens(
    options.window,
    files.tokenizerConfig.model_max_length,
    files.config.max_position_embeddings,
    session.fixedTokens,
  );
  const size = window - tokenizer.before.length - tokenizer.after.length;
  if (options.overlap >= size / 2)
    throw new ClassifierSetupError(
      `An overlap of ${options.overlap} tokens is too much for windows of ${size} tokens: it ` +
        `must be less than half. Use a smaller --overlap.`,
    );
  return {
    name: files.config["_name_or_path"],
    labels,
    classify: (text, signal) =>
      scheduler.classify(
        withSpecial(
          windowsOf(text, { tokensOf: tokenizer.tokensOf, size, overlap: options.overlap }),
          tokenizer,
        ),
        signal,
      ),
  };
}

/** Runs an empty text, so that a model that does not fit its files fails at the start. */
async function tryOut(
  session: ModelSession,
  { before, after }: TextTokenizer,
  labels: readonly Label[],
): Promise<void> {
  const [logits] = await session.run([[...before, ...after]]);
  if (logits?.length !== labels.length)
    throw new ClassifierSetupError(
      `The model has ${logits?.length} classes, but id2label of config.json has ` +
        `${labels.length}. They are not of the same model.`,
    );
}

function maxBatchOf({ fixedBatch }: ModelSession, wanted: number): number {
  if (fixedBatch === undefined || fixedBatch === 1) return fixedBatch ?? wanted;
  throw new ClassifierSetupError(
    `The model was exported for exactly ${fixedBatch} texts at once. Export it with a dynamic ` +
      `batch size.`,
  );
}

/** Returns the smallest of the bounds on the tokens of a window. */
function windowTokens(...bounds: readonly (number | undefined)[]): number {
  return Math.min(...(bounds.filter((bound) => bound !== undefined && bound > 0) as number[]));
}

function* withSpecial(
  windows: Iterable<TokenWindow>,
  { before, after }: TextTokenizer,
): Generator<TokenWindow, void, undefined> {
  for (const window of windows) yield [...before, ...window, ...after];
}
