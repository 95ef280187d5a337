/** Labelled texts to measure a classifier with: one JSON object `{text, label}` per line. */
import * as z from "zod";
import { type Label, LABELS, MAX_CLASSIFY_CHARS } from "../protocol.ts";

export interface Example {
  readonly text: string;
  readonly label: Label;
}

/** DatasetError says what is wrong in which line. Its message has nothing of a text. */
export class DatasetError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DatasetError";
  }
}

const exampleSchema = z.strictObject({
  text: z.string().max(MAX_CLASSIFY_CHARS),
  label: z.enum(LABELS),
});

/** @param name of the file, for errors */
export function parseDataset(content: string, name: string): readonly Example[] {
  const examples = content
    .replace(/^\uFEFF/, "")
    .split("\n")
    .flatMap((line, index) =>
      line.trim() === "" ? [] : [parseLine(line, `${name}, line ${index + 1}`)],
    );
  if (examples.length === 0) throw new DatasetError(`${name} has no line with a text.`);
  return examples;
}

function parseLine(line: string, place: string): Example {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new DatasetError(`${place}: it is not JSON. Write one object per line.`);
  }
  const parsed = exampleSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new DatasetError(
    `${place}: it is not {"text": "...", "label": "${LABELS.join("|")}"} with at most ` +
      `${MAX_CLASSIFY_CHARS} characters of text.`,
  );
}
