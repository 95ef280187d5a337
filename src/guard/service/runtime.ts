/**
 * Packages that run a model: onnxruntime-node and @huggingface/tokenizers. They are not among the
 * packages of Svc, because only this one type of classifier needs them, and they have 47 MiB; they
 * are installed beside it (`classifier/package.json`, `make .venv/.classifier`).
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { isMainThread } from "node:worker_threads";
import { ClassifierSetupError } from "./classifier.ts";

/** What we use of `Tensor` of onnxruntime-common. */
export interface OnnxTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: unknown;
}

export interface OnnxInput {
  readonly name: string;
  readonly isTensor: boolean;
  readonly type?: string;
  /** Numbers, and names of dimensions that are chosen for each run. */
  readonly shape?: readonly (number | string)[];
}

/** What we use of `InferenceSession` of onnxruntime-common. */
export interface OnnxSession {
  readonly inputMetadata: readonly OnnxInput[];
  readonly outputNames: readonly string[];
  run(feeds: Readonly<Record<string, OnnxTensor>>): Promise<Readonly<Record<string, OnnxTensor>>>;
  release(): Promise<void>;
}

export interface OnnxRuntime {
  readonly InferenceSession: {
    create(file: string, options: object): Promise<OnnxSession>;
  };
  readonly Tensor: new (
    type: "int64" | "int32",
    data: BigInt64Array | Int32Array,
    dims: readonly number[],
  ) => OnnxTensor;
}

/** What we use of a tokenizer of @huggingface/tokenizers. */
export interface HfTokenizer {
  encode(
    text: string,
    options: { readonly add_special_tokens: boolean },
  ): {
    readonly ids: readonly number[];
  };
  token_to_id(token: string): number | undefined;
}

export interface ModelRuntime {
  readonly onnx: OnnxRuntime;
  readonly Tokenizer: new (tokenizer: object, config: object) => HfTokenizer;
}

/** The package that decides whether the runtime is in a folder. */
const PACKAGE = "node_modules/onnxruntime-node/package.json";

/**
 * Returns the folder of the runtime.
 * @param named `SVC_CLASSIFIER_RUNTIME`; undefined or empty to search: the image has it in
 * `classifier`, a checkout in `.venv/classifier`
 * @param root folder of Svc
 */
export function runtimeFolder(named: string | undefined, root: string): string {
  const folders =
    named === undefined || named === ""
      ? [path.join(root, "classifier"), path.join(root, ".venv/classifier")]
      : [path.resolve(named)];
  const found = folders.find((folder) => existsSync(path.join(folder, PACKAGE)));
  if (found !== undefined) return found;
  throw new ClassifierSetupError(
    `--type promptGuard needs onnxruntime-node and @huggingface/tokenizers, which are not in ` +
      `${folders.join(" or ")}. In a checkout run: make .venv/.classifier. Elsewhere copy the ` +
      `folder classifier of Svc, run: npm ci --ignore-scripts, and set SVC_CLASSIFIER_RUNTIME to ` +
      `the copy.`,
  );
}

/** Read by the native library when it is loaded. */
const TELEMETRY_OFF = "ORT_DISABLE_TELEMETRY";

/**
 * Keeps onnxruntime from reporting to its vendor. Since 1.29 its binaries for Linux write an
 * identifier of the machine to the home folder, and send names and hashes of models
 * (https://github.com/microsoft/onnxruntime/pull/27379).
 *
 * Only the main thread has the environment that a native library reads: other threads have a copy.
 */
export function disableTelemetry(): void {
  if (isMainThread) process.env[TELEMETRY_OFF] = "1";
  if (process.env[TELEMETRY_OFF] !== "1")
    throw new ClassifierSetupError(
      `A model is run only with ${TELEMETRY_OFF}=1 in the environment of the process, which ` +
        `keeps onnxruntime from reporting to its vendor. Set it.`,
    );
}

/** @param folder as {@link runtimeFolder} returns it */
export function loadRuntime(folder: string): ModelRuntime {
  disableTelemetry();
  const require = createRequire(path.join(folder, "package.json"));
  try {
    const { Tokenizer } = require("@huggingface/tokenizers") as Pick<ModelRuntime, "Tokenizer">;
    return { onnx: require("onnxruntime-node") as OnnxRuntime, Tokenizer };
  } catch (error) {
    throw new ClassifierSetupError(
      `The packages in ${folder} cannot be loaded on ${process.platform} ${process.arch}: ` +
        `${firstLine(error)}. Install them again: npm ci --ignore-scripts in that folder.`,
    );
  }
}

export function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "";
}
