/** Requests and answers of every dialect: the fixtures of the golden tests. */
import type { DialectName, WireFormat } from "../src/llm/dialects/dialect.ts";
import { anthropicRequests } from "../src/llm/dialects/testdata/fixtures/anthropic-requests.ts";
import { geminiRequests } from "../src/llm/dialects/testdata/fixtures/gemini-requests.ts";
import { openaiRequests } from "../src/llm/dialects/testdata/fixtures/openai-requests.ts";
import { responsesRequests } from "../src/llm/dialects/testdata/fixtures/responses-requests.ts";
import {
  anthropicResponses,
  geminiResponses,
  openaiResponses,
} from "../src/llm/dialects/testdata/fixtures/responses.ts";

export const requests: Readonly<Record<WireFormat, readonly unknown[]>> = {
  openai: Object.values(openaiRequests),
  anthropic: Object.values(anthropicRequests),
  gemini: Object.values(geminiRequests),
  responses: Object.values(responsesRequests),
};

export const responses: Readonly<Record<DialectName, readonly unknown[]>> = {
  openai: Object.values(openaiResponses),
  anthropic: Object.values(anthropicResponses),
  gemini: Object.values(geminiResponses),
};
