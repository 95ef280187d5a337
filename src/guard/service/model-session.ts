/** A sequence classification model in onnxruntime: windows of tokens in, logits out. */
import { ClassifierError, ClassifierSetupError } from "./classifier.ts";
import { firstLine, type OnnxInput, type OnnxRuntime, type OnnxSession } from "./runtime.ts";

export interface ModelSession {
  /** Fixed number of windows of a run; undefined if any number is possible. */
  readonly fixedBatch: number | undefined;
  /** Fixed number of tokens of a window, with special tokens; undefined if any is possible. */
  readonly fixedTokens: number | undefined;
  /**
   * Returns the logits of each window.
   * @param windows tokens, with special tokens
   */
  run(windows: readonly (readonly number[])[]): Promise<readonly Float32Array[]>;
  close(): Promise<void>;
}

export interface SessionOptions {
  readonly file: string;
  /** Threads of a run; 0 for one per core. */
  readonly threads: number;
  readonly padding: number;
}

type InputName = "input_ids" | "attention_mask" | "token_type_ids";

export async function openSession({
  onnxRuntime: { InferenceSession, Tensor },
  ...options
}: SessionOptions & {
  readonly onnxRuntime: OnnxRuntime;
}): Promise<ModelSession> {
  const { file, threads, padding } = options;
  let session: OnnxSession;
  try {
    session = await InferenceSession.create(file, {
      executionProviders: ["cpu"],
      intraOpNumThreads: threads,
      interOpNumThreads: 1,
      executionMode: "sequential",
      graphOptimizationLevel: "all",
    });
  } catch (error) {
    throw new ClassifierSetupError(
      `${file} cannot be loaded: ${firstLine(error)}. It must be a complete ONNX file for ` +
        `onnxruntime, with its data files beside it.`,
    );
  }
  const inputs = session.inputMetadata.map(checkedInput);
  const [ids] = session.inputMetadata;
  const fixedTokens = fixed(ids?.shape?.[1]);
  const output = session.outputNames.includes("logits") ? "logits" : session.outputNames[0];
  return {
    fixedBatch: fixed(ids?.shape?.[0]),
    fixedTokens,
    run: async (windows) => {
      const longest = fixedTokens ?? Math.max(...windows.map((window) => window.length));
      const feeds = Object.fromEntries(
        inputs.map(({ name, type }) => [
          name,
          new Tensor(type, fill(name, type, windows, longest, padding), [windows.length, longest]),
        ]),
      );
      const answer = (await session.run(feeds))[output ?? ""];
      return logitsOf(answer, windows.length);
    },
    close: () => session.release(),
  };
}

const fixed = (dimension: number | string | undefined): number | undefined =>
  typeof dimension === "number" ? dimension : undefined;

function checkedInput(input: OnnxInput): {
  readonly name: InputName;
  readonly type: "int64" | "int32";
} {
  const { name, type } = input;
  if (name !== "input_ids" && name !== "attention_mask" && name !== "token_type_ids")
    throw new ClassifierSetupError(
      `The model needs an input ${name}. Only input_ids, attention_mask and token_type_ids are ` +
        `supported: export it for text classification.`,
    );
  if (type !== "int64" && type !== "int32")
    throw new ClassifierSetupError(
      `The model's input ${name} has the type ${type}. Only int64 and int32 are supported.`,
    );
  return { name, type };
}

/** Returns the values of an input, windows one after the other, padded to `longest`. */
function fill(
  name: InputName,
  type: "int64" | "int32",
  windows: readonly (readonly number[])[],
  longest: number,
  padding: number,
): BigInt64Array | Int32Array {
  const values = new Int32Array(windows.length * longest);
  if (name === "input_ids") values.fill(padding);
  for (const [index, window] of windows.entries()) {
    const start = index * longest;
    if (name === "input_ids") values.set(window, start);
    if (name === "attention_mask") values.fill(1, start, start + window.length);
  }
  return type === "int32" ? values : BigInt64Array.from(values, BigInt);
}

function logitsOf(answer: unknown, windows: number): readonly Float32Array[] {
  const { type, dims, data } = (answer ?? {}) as Readonly<Record<string, unknown>>;
  const [rows, columns] = Array.isArray(dims) && dims.length === 2 ? (dims as number[]) : [];
  if (type !== "float32" || !(data instanceof Float32Array) || rows !== windows)
    throw new ClassifierError(
      500,
      `the model's output has the type ${String(type)} and the shape [${String(dims)}], not ` +
        `float32 and [windows, classes]`,
    );
  const width = columns ?? 0;
  return Array.from({ length: windows }, (_, index) =>
    data.slice(index * width, (index + 1) * width),
  );
}
