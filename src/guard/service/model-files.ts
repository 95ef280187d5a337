/** Files of a model in a local folder, as Hugging Face's tools write them. */
import { existsSync, readFileSync, statSync } from "node:fs";
import path from "node:path";
import * as z from "zod";
import { ClassifierSetupError } from "./classifier.ts";
import { firstLine } from "./runtime.ts";

export interface ModelFiles {
  /** Absolute path of the ONNX file. */
  readonly onnx: string;
  /** Parsed tokenizer.json. */
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly tokenizerConfig: TokenizerConfig;
  readonly config: ModelConfig;
}

const ONNX_FILES = ["model.onnx", "onnx/model.onnx"];

const tokenSchema = z.union([z.string(), z.looseObject({ content: z.string() })]);

const tokenizerConfigSchema = z.looseObject({
  // Some files have 1e30, for no limit.
  model_max_length: z.number().positive().optional(),
  pad_token: tokenSchema.nullish(),
});

const configSchema = z.looseObject({
  id2label: z.unknown(),
  _name_or_path: z.string().optional(),
  max_position_embeddings: z.number().int().optional(),
  pad_token_id: z.number().int().min(0).nullish(),
});

export type TokenizerConfig = z.infer<typeof tokenizerConfigSchema>;
export type ModelConfig = z.infer<typeof configSchema>;

/** @param onnxFile path of the ONNX file in the folder; undefined for the usual ones */
export function readModelFiles(folder: string, onnxFile: string | undefined): ModelFiles {
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    throw new ClassifierSetupError(
      `--model ${folder}: there is no such folder. It must have model.onnx, tokenizer.json, ` +
        `tokenizer_config.json and config.json.`,
    );
  return {
    onnx: onnxOf(folder, onnxFile),
    tokenizer: readJson(folder, "tokenizer.json", z.looseObject({ model: z.looseObject({}) })),
    tokenizerConfig: readJson(folder, "tokenizer_config.json", tokenizerConfigSchema),
    config: readJson(folder, "config.json", configSchema),
  };
}

function onnxOf(folder: string, named: string | undefined): string {
  const candidates = named === undefined ? ONNX_FILES : [named];
  const found = candidates.find((file) => existsSync(path.join(folder, file)));
  if (found !== undefined) return path.resolve(folder, found);
  throw new ClassifierSetupError(
    `--model ${folder}: there is no ${candidates.join(" or ")}. Export the model to ONNX, or ` +
      `name its file: --model-file onnx/model_quantized.onnx.`,
  );
}

function readJson<T>(folder: string, name: string, schema: z.ZodType<T>): T {
  const file = path.join(folder, name);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new ClassifierSetupError(
      (error as NodeJS.ErrnoException).code === "ENOENT"
        ? `--model ${folder}: there is no ${name}. Copy it from the model's repository.`
        : `${file} cannot be read as JSON: ${firstLine(error)}.`,
    );
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new ClassifierSetupError(
    `${file}: ${issue?.path.join(".")}: ${issue?.message}. It is not a file of a Hugging Face ` +
      `model.`,
  );
}
