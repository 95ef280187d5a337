/**
 * Gemini's embeddings, `embedContent` and `batchEmbedContents`. Source:
 * https://ai.google.dev/api/embeddings
 */
import { BadRequestError } from "../dialect.ts";
import { Fields, isObject, type JsonObject } from "../fields.ts";
import { unsupported } from "../changes.ts";
import { withReasons } from "../leftovers.ts";
import { type Leftover, UpstreamFormatError } from "../model.ts";
import type { EmbeddingDialect, EmbeddingRequest, EmbeddingResponse } from "./contract.ts";
import { numbersOf } from "./vectors.ts";

const TASK = "other vendors' models embed every text in the same way";

/** Fields that may be dropped; also in docs/translation.md. */
const DROPS = {
  taskType: TASK,
  title: TASK,
  "requests[].taskType": TASK,
  "requests[].title": TASK,
};

interface Content {
  readonly text: string;
  readonly dimensions: number | undefined;
}

export const geminiEmbeddings: EmbeddingDialect = {
  parseRequest(body, single): EmbeddingRequest {
    const leftovers: Leftover[] = [];
    const fields = new Fields(body, "", { snake: true });
    const contents = single
      ? [parseContent(fields, leftovers)]
      : fields.each("requests", (request) => parseContent(request, leftovers));
    const [first] = contents;
    if (first === undefined) return fields.fail("requests", "a list of requests, not empty");
    const { dimensions } = first;
    const other = contents.findIndex((content) => content.dimensions !== dimensions);
    if (other >= 0)
      throw unsupported(
        `requests[${other}].outputDimensionality`,
        "differs from that of the other requests, which this model's provider cannot express",
      );
    if (!single) fields.rest(leftovers);
    return {
      texts: contents.map(({ text }) => text),
      dimensions,
      leftovers: withReasons(leftovers, DROPS),
    };
  },
  serialiseRequest: ({ texts, dimensions }, model) => ({
    requests: texts.map((text) => ({
      model: resourceOf(model),
      content: { parts: [{ text }] },
      ...(dimensions === undefined ? {} : { outputDimensionality: dimensions }),
    })),
  }),
  parseResponse(body): EmbeddingResponse {
    const embeddings = isObject(body) ? body["embeddings"] : undefined;
    if (!Array.isArray(embeddings))
      throw new UpstreamFormatError("the upstream's answer is not a list of embeddings");
    const entries: unknown[] = embeddings;
    return {
      vectors: entries.map((entry) => numbersOf(isObject(entry) ? entry["values"] : entry)),
    };
  },
  serialiseResponse({ vectors }, { single }) {
    const embeddings = vectors.map((values) => ({ values }));
    return single ? { embedding: embeddings[0] } : { embeddings };
  },
};

function parseContent(request: Fields, leftovers: Leftover[]): Content {
  const content = request.fields("content") ?? request.fail("content", "a JSON object");
  const texts = content.each("parts", (part) => {
    const text = part.string("text");
    if (text === undefined)
      throw unsupported(part.path, "is not a text: this model's provider embeds texts only");
    part.rest(leftovers);
    return text;
  });
  content.ignore("role");
  content.rest(leftovers);
  request.ignore("model");
  const dimensions = request.number("outputDimensionality");
  request.rest(leftovers);
  return { text: texts.join("\n"), dimensions };
}

function resourceOf(model: string): string {
  return `models/${model}`;
}

/**
 * Returns a body for Gemini itself in which every request names the given model: the caller's body
 * may name others, which the gateway has not allowed.
 * @throws BadRequestError
 */
export function withModel(body: JsonObject, model: string, single: boolean): JsonObject {
  const named = { model: resourceOf(model) };
  if (single) return { ...body, ...named };
  const requests = new Fields(body, "").array("requests") ?? [];
  return {
    ...body,
    requests: requests.map((request, index) => {
      const param = `requests[${index}]`;
      if (!isObject(request)) throw new BadRequestError(`${param} must be a JSON object`, param);
      return { ...request, ...named };
    }),
  };
}
