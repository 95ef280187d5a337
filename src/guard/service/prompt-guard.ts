/** A local sequence classification model such as Prompt Guard, run in a worker thread. */
import { Worker } from "node:worker_threads";
import type { Scores } from "../protocol.ts";
import {
  type Classifier,
  ClassifierError,
  type ClassifierReport,
  ClassifierSetupError,
} from "./classifier.ts";
import type { FromWorker, ModelOptions, ToWorker } from "./model-worker.ts";
import { disableTelemetry } from "./runtime.ts";

export interface PromptGuardOptions extends ModelOptions {
  /** Program of the worker thread. */
  readonly worker: string | URL;
  /** Name to show; undefined for the one in config.json, or that of the folder. */
  readonly name: string | undefined;
  readonly report: ClassifierReport;
  /** Is called once if the worker thread has ended unexpectedly: nothing can be classified then. */
  readonly onLost: (reason: string) => void;
}

interface Waiting {
  readonly resolve: (scores: Scores) => void;
  readonly reject: (error: Error) => void;
}

/** Resolves when the model is loaded and has run once. */
export async function startPromptGuard(options: PromptGuardOptions): Promise<Classifier> {
  const { worker: program, name, report, onLost, ...workerData } = options;
  // Here, because the worker thread cannot.
  disableTelemetry();
  const worker = new Worker(program, { workerData });
  const ready = await started(worker).catch(async (error: unknown) => {
    await worker.terminate();
    throw error;
  });
  const waiting = new Map<number, Waiting>();
  let lost = false;
  const lose = (reason: string): void => {
    if (lost) return;
    lost = true;
    for (const { reject } of waiting.values())
      reject(new ClassifierError(500, "the model's thread has ended"));
    waiting.clear();
    onLost(reason);
  };
  worker.on("error", (error) => lose(error instanceof Error ? error.name : "error"));
  worker.on("exit", (code) => lose(`exit code ${code}`));
  worker.on("message", (message: FromWorker) => {
    if (message.kind === "batch") return report.batch(message.windows);
    if (message.kind !== "scores" && message.kind !== "failed") return;
    const found = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.kind === "scores") found?.resolve(message.scores);
    else found?.reject(new ClassifierError(500, message.message));
  });
  const send = (message: ToWorker): void => worker.postMessage(message, []);
  let lastId = 0;
  return {
    type: "promptGuard",
    model: name ?? modelName(ready.name, options.folder),
    classify: async (text, signal) => {
      signal.throwIfAborted();
      if (lost) throw new ClassifierError(500, "the model's thread has ended");
      const id = (lastId += 1);
      return new Promise<Scores>((resolve, reject) => {
        const abort = (): void => {
          waiting.delete(id);
          send({ kind: "abort", id });
          reject(signal.reason as Error);
        };
        const end = (): void => signal.removeEventListener("abort", abort);
        waiting.set(id, {
          resolve: (scores) => (end(), resolve(scores)),
          reject: (error) => (end(), reject(error)),
        });
        signal.addEventListener("abort", abort, { once: true });
        send({ kind: "classify", id, text });
      });
    },
    close: async () => {
      lost = true;
      await worker.terminate();
    },
  };
}

/** Resolves with the worker's message that it is ready. */
function started(worker: Worker): Promise<Extract<FromWorker, { kind: "ready" }>> {
  return new Promise((resolve, reject) => {
    worker.once("message", (message: FromWorker) => {
      if (message.kind === "ready") resolve(message);
      else if (message.kind === "unusable") reject(new ClassifierSetupError(message.message));
    });
    worker.once("error", reject);
    worker.once("exit", (code) =>
      reject(new ClassifierSetupError(`The model's thread ended with the code ${code}.`)),
    );
  });
}

/** A name in config.json may be the path of another machine. */
function modelName(named: string | undefined, folder: string): string {
  const name = named === undefined || named === "" || named.startsWith("/") ? folder : named;
  return name === folder ? (folder.split("/").findLast((part) => part !== "") ?? folder) : name;
}
