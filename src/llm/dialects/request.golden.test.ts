import { join } from "node:path";
import { afterAll, describe, test } from "vitest";
import { BadRequestError } from "./dialect.ts";
import type { TranslationMode } from "../../policy/snapshot.ts";
import type { DialectName, WireFormat } from "./dialect.ts";
import { translateRequest } from "./registry.ts";
import { anthropicRequests } from "./testdata/fixtures/anthropic-requests.ts";
import { geminiRequests } from "./testdata/fixtures/gemini-requests.ts";
import { openaiRequests } from "./testdata/fixtures/openai-requests.ts";
import { responsesRequests } from "./testdata/fixtures/responses-requests.ts";
import { Goldens, pretty } from "../../platform/testing-goldens.ts";

const REQUESTS: Readonly<Record<WireFormat, Readonly<Record<string, unknown>>>> = {
  openai: openaiRequests,
  anthropic: anthropicRequests,
  gemini: geminiRequests,
  responses: responsesRequests,
};

/** The newest generation of each vendor, and those before that take other fields. */
const TARGETS: readonly (readonly [DialectName, string])[] = [
  ["openai", "gpt-5.2"],
  ["anthropic", "claude-opus-5"],
  ["anthropic", "claude-haiku-4-5"],
  ["gemini", "gemini-3-pro"],
  ["gemini", "gemini-2.5-flash"],
];

interface Translation {
  readonly from: WireFormat;
  readonly to: DialectName;
  readonly model: string;
  readonly body: unknown;
}

/** The lenient translation, and the refusal of the strict one if only that refuses. */
function translate(request: Translation): object {
  const lenient = translateAs("lenient", request);
  const strict = translateAs("strict", request);
  return "refused" in strict && !("refused" in lenient)
    ? { strict: strict["refused"], ...lenient }
    : lenient;
}

function translateAs(mode: TranslationMode, request: Translation): object {
  const stream = (request.body as { stream?: boolean }).stream ?? false;
  try {
    const { body: translated, changes } = translateRequest({ ...request, stream, mode });
    const { dropped, notes } = changes;
    return {
      ...(dropped.length === 0 ? {} : { dropped }),
      notes,
      body: JSON.parse(translated.toString("utf8")) as unknown,
    };
  } catch (error) {
    if (!(error instanceof BadRequestError)) throw error;
    return { refused: { code: error.code, param: error.param, message: error.message } };
  }
}

const goldens = new Goldens(join(import.meta.dirname, "testdata/request"));
afterAll(() => {
  goldens.checkOrphans();
});

for (const from of ["openai", "anthropic", "gemini", "responses"] as const) {
  for (const [to, model] of TARGETS) {
    if (from === to) continue;
    describe(`${from} request to ${model}`, () => {
      test.each(Object.entries(REQUESTS[from]))("%s", (name, body) => {
        goldens.check(`${from}/${name}.in.json`, pretty(body));
        goldens.check(
          `${from}-to-${to}/${model}/${name}.out.json`,
          pretty(translate({ from, to, model, body })),
        );
      });
    });
  }
}
