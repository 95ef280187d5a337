/** Embeddings of the mock model: eight numbers for a text. */
import { countWords } from "./answer.ts";

/** @param request in OpenAI's form */
export function embeddings(request: Record<string, unknown>): object {
  const input = request["input"];
  const texts = Array.isArray(input) ? input.map(String) : [typeof input === "string" ? input : ""];
  // The official SDK requests this by default.
  const packed = request["encoding_format"] === "base64";
  const data = texts.map((text, index) => {
    const embedding = vectorOf(text);
    return { object: "embedding", index, embedding: packed ? base64Floats(embedding) : embedding };
  });
  const tokens = Math.max(
    1,
    texts.reduce((sum, text) => sum + countWords(text), 0),
  );
  return {
    object: "list",
    data,
    model: request["model"],
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  };
}

/** Returns eight numbers computed from the text's characters: equal texts have equal vectors. */
export function vectorOf(text: string): number[] {
  const vector = Array.from({ length: 8 }, () => 0);
  for (let i = 0; i < text.length; i++)
    vector[i % 8] = ((vector[i % 8] as number) * 31 + text.charCodeAt(i)) % 1000;
  return vector.map((value) => value / 1000);
}

/** Little-endian 32-bit floats, as OpenAI packs them. */
function base64Floats(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => bytes.writeFloatLE(value, i * 4));
  return bytes.toString("base64");
}
