/** The numbers of a vector. */
import { UpstreamFormatError } from "../model.ts";

/** @throws UpstreamFormatError if an upstream's vector is not a list of numbers */
export function numbersOf(value: unknown): readonly number[] {
  if (Array.isArray(value) && value.every((one) => typeof one === "number")) return value;
  throw new UpstreamFormatError(
    "the upstream's answer has an embedding that is no list of numbers",
  );
}
