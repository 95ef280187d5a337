/** Requests and answers of every dialect: the fixtures of the golden tests. */
import type { DialectName } from "../src/llm/dialects/dialect.ts";
import { anthropicRequests } from "../src/llm/dialects/testdata/fixtures/anthropic-requests.ts";
import { geminiRequests } from "../src/llm/dialects/testdata/fixtures/gemini-requests.ts";
import { openaiRequests } from "../src/llm/dialects/testdata/fixtures/openai-requests.ts";
import {
  anthropicResponses,
  geminiResponses,
  openaiResponses,
} from "../src/llm/dialects/testdata/fixtures/responses.ts";

type Samples = Readonly<Record<DialectName, readonly unknown[]>>;

export const requests: Samples = {
  openai: Object.values(openaiRequests),
  anthropic: Object.values(anthropicRequests),
  gemini: Object.values(geminiRequests),
};

export const responses: Samples = {
  openai: Object.values(openaiResponses),
  anthropic: Object.values(anthropicResponses),
  gemini: Object.values(geminiResponses),
};
