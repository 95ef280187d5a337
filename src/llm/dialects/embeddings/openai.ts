/** OpenAI's embeddings. Field names: `EmbeddingCreateParams` of the openai SDK. */
import { BadRequestError } from "../dialect.ts";
import { Fields, isObject } from "../fields.ts";
import { unsupported } from "../changes.ts";
import { withReasons } from "../leftovers.ts";
import { type Leftover, UpstreamFormatError } from "../model.ts";
import type {
  EmbeddingDialect,
  EmbeddingRequest,
  EmbeddingResponse,
  EmbeddingShape,
} from "./contract.ts";
import { numbersOf } from "./vectors.ts";

/** Fields that may be dropped; also in docs/translation.md. */
const DROPS = { user: "only identifies the caller to its vendor; it does not change an answer" };

export const openaiEmbeddings: EmbeddingDialect = {
  parseRequest(body): EmbeddingRequest {
    const fields = new Fields(body, "");
    fields.ignore("model");
    const texts = parseInput(fields);
    const dimensions = fields.number("dimensions");
    fields.oneOf("encoding_format", ["float", "base64"]);
    const leftovers: Leftover[] = [];
    fields.rest(leftovers);
    return { texts, dimensions, leftovers: withReasons(leftovers, DROPS) };
  },
  serialiseRequest: ({ texts, dimensions }, model) => ({
    model,
    input: texts,
    encoding_format: "float",
    ...(dimensions === undefined ? {} : { dimensions }),
  }),
  parseResponse(body): EmbeddingResponse {
    const data = isObject(body) ? body["data"] : undefined;
    if (!Array.isArray(data))
      throw new UpstreamFormatError("the upstream's answer is not a list of embeddings");
    const entries: unknown[] = data;
    return {
      vectors: entries.map((entry) => numbersOf(isObject(entry) ? entry["embedding"] : entry)),
    };
  },
  serialiseResponse: ({ vectors }, { model, packed, inputTokens }: EmbeddingShape) => ({
    object: "list",
    data: vectors.map((vector, index) => ({
      object: "embedding",
      index,
      embedding: packed ? packedFloats(vector) : vector,
    })),
    model,
    usage: { prompt_tokens: inputTokens, total_tokens: inputTokens },
  }),
};

function parseInput(fields: Fields): readonly string[] {
  const input = fields.raw("input");
  if (typeof input === "string") return [input];
  if (!Array.isArray(input) || input.length === 0)
    return fields.fail("input", "a text or a list of texts");
  return input.map((text: unknown, index) => {
    if (typeof text === "string") return text;
    const param = `input[${index}]`;
    // Numbers, or lists of them, are tokens of one vendor's tokenizer.
    if (typeof text === "number" || Array.isArray(text))
      throw unsupported(param, "is made of token ids, which only OpenAI's models know: send text");
    throw new BadRequestError(`${param} must be a text`, param);
  });
}

/** Little-endian 32-bit floats in base64, as the SDK asks for by default. */
function packedFloats(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString("base64");
}
