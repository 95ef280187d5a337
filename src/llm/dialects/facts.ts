/**
 * Reads the common fields of every dialect's facts, validated as far as the gateway depends on
 * them.
 */
import { BadRequestError, type BodyFields } from "./dialect.ts";

export function requiredModel(body: BodyFields): string {
  const model = body.get("model");
  if (typeof model !== "string" || model === "")
    throw new BadRequestError("model must be a non-empty string", "model");
  return model;
}

/** Exactly a boolean: an upstream might interpret another value differently. */
export function streamFlag(body: BodyFields): boolean {
  const stream = body.get("stream") ?? false;
  if (typeof stream !== "boolean") throw new BadRequestError("stream must be a boolean", "stream");
  return stream;
}

/** The larger of several limits; undefined if none is given. */
export function largestLimit(values: readonly unknown[], param: string): number | undefined {
  const limits = values.flatMap((value) => tokenLimit(value, param) ?? []);
  return limits.length === 0 ? undefined : Math.max(...limits);
}

/** @param value OpenAI's `n`, Gemini's `candidateCount` */
export function choiceCount(value: unknown, param: string): number {
  if (value === undefined || value === null) return 1;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 1) {
    throw new BadRequestError(`${param} must be a whole number above 0`, param);
  }
  return value;
}

export function tokenLimit(value: unknown, param: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) {
    throw new BadRequestError(`${param} must be a number of tokens`, param);
  }
  return value;
}
