/** Inputs that several tests send. */

/** A PNG of one pixel. */
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5E" +
  "rkJggg==";

export const WEATHER_SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
} as const;

export const ONE_CALL = [{ id: "call_paris1", name: "weather", args: { city: "Paris" } }] as const;

export const TWO_CALLS = [
  { id: "call_paris1", name: "weather", args: { city: "Paris" } },
  { id: "call_oslo22", name: "weather", args: { city: "Oslo" } },
] as const;

export const MODELS = {
  openai: "gpt-4o-mini",
  anthropic: "claude-sonnet-4-5",
  gemini: "gemini-2.5-flash",
} as const;
