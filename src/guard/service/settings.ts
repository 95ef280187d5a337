/** Starts a classifier from its settings. */
import type { ClassifierType } from "../../policy/snapshot.ts";
import type { Label } from "../protocol.ts";
import { type Classifier, type ClassifierReport, ClassifierSetupError } from "./classifier.ts";
import { type ClassifierEndpoint, type EndpointAuth, endpointUrl } from "./endpoint.ts";
import { customClassifier, llamaGuardClassifier } from "./remote.ts";
import { runtimeFolder } from "./runtime.ts";
import { stubClassifier } from "./stub.ts";

/** What the flags of `svc guard` say; undefined is what is not given. */
export interface ClassifierSettings {
  readonly type: ClassifierType;
  /** Folder of the model (promptGuard), or its name (llamaGuard, custom). */
  readonly model: string | undefined;
  readonly modelName: string | undefined;
  readonly modelFile: string | undefined;
  readonly endpoint: string | undefined;
  readonly auth: EndpointAuth | undefined;
  /** Labels by class of the model or category, in upper case. */
  readonly labels: ReadonlyMap<string, Label>;
  readonly threads: number;
  readonly window: number;
  readonly overlap: number;
  readonly maxBatch: number;
  readonly batchTokens: number;
  readonly timeoutMs: number;
  readonly pieceChars: number;
}

/** What a classifier needs besides its settings. */
export interface ClassifierSurroundings {
  /** Folder of Svc. */
  readonly root: string;
  /** `SVC_GUARD_STUB_INJECTION`. */
  readonly stubSubstrings: string | undefined;
  /** `SVC_CLASSIFIER_RUNTIME`. */
  readonly runtime: string | undefined;
  /** Program of the model's thread. */
  readonly worker: string | URL;
  readonly report: ClassifierReport;
  readonly onLost: (reason: string) => void;
}

export async function startClassifier(
  settings: ClassifierSettings,
  surroundings: ClassifierSurroundings,
): Promise<Classifier> {
  switch (settings.type) {
    case "stub":
      return stubClassifier(surroundings.stubSubstrings);
    case "promptGuard":
      return startLocalModel(settings, surroundings);
    case "llamaGuard":
      return llamaGuardClassifier({
        endpoint: endpointOf(settings, "/chat/completions"),
        model: needed(settings, "model", "the name of the model at the endpoint"),
        categories: checkedCategories(settings.labels),
        pieceChars: settings.pieceChars,
      });
    case "custom":
      return customClassifier(endpointOf(settings, "/classify"), settings.model);
  }
}

async function startLocalModel(
  settings: ClassifierSettings,
  { root, runtime, worker, report, onLost }: ClassifierSurroundings,
): Promise<Classifier> {
  const folder = needed(settings, "model", "the folder of the model");
  // Loaded when it is used: worker threads cost memory.
  const { startPromptGuard } = await import("./prompt-guard.ts");
  return startPromptGuard({
    runtime: runtimeFolder(runtime, root),
    folder,
    file: settings.modelFile,
    labels: settings.labels,
    threads: settings.threads,
    window: settings.window,
    overlap: settings.overlap,
    maxBatch: settings.maxBatch,
    batchTokens: settings.batchTokens,
    worker,
    name: settings.modelName,
    report,
    onLost,
  });
}

function endpointOf(settings: ClassifierSettings, operation: string): ClassifierEndpoint {
  const text = needed(settings, "endpoint", "the URL of the endpoint");
  return {
    url: endpointUrl(text, operation),
    auth: settings.auth,
    timeoutMs: settings.timeoutMs,
  };
}

function needed(settings: ClassifierSettings, name: "model" | "endpoint", what: string): string {
  const value = settings[name];
  if (value !== undefined && value !== "") return value;
  throw new ClassifierSetupError(
    `--type ${settings.type} needs --${name} (or SVC_GUARD_${name.toUpperCase()}): ${what}.`,
  );
}

function checkedCategories(labels: ReadonlyMap<string, Label>): ReadonlyMap<string, Label> {
  for (const category of labels.keys()) {
    if (!/^S\d{1,2}$/.test(category))
      throw new ClassifierSetupError(
        `--label ${category}: categories of Llama Guard are S1, S2 and so on, as in --label ` +
          `S14=injection.`,
      );
  }
  return labels;
}
