/** A non-empty text of an error body, numbers included (vLLM writes codes as numbers). */
export function text(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}
