import { join } from "node:path";
import { afterAll, describe, test } from "vitest";
import type { DialectName, WireFormat } from "./dialect.ts";
import { UpstreamFormatError, translateError, translateResponse } from "./registry.ts";
import { errors } from "./testdata/fixtures/errors.ts";
import {
  anthropicResponses,
  geminiResponses,
  openaiResponses,
} from "./testdata/fixtures/responses.ts";
import { Goldens, pretty } from "../../platform/testing-goldens.ts";

const DIALECTS = ["openai", "anthropic", "gemini"] as const;
const CLIENTS = [...DIALECTS, "responses"] as const;

const RESPONSES: Readonly<Record<DialectName, Readonly<Record<string, unknown>>>> = {
  openai: openaiResponses,
  anthropic: anthropicResponses,
  gemini: geminiResponses,
};

function translate(upstream: DialectName, client: WireFormat, body: unknown): unknown {
  try {
    const { body: translated, usage } = translateResponse({
      upstream,
      client,
      body,
      model: "asked-model",
      id: "ID",
      now: 1_700_000_000_999,
    });
    return { usage, body: JSON.parse(translated.toString("utf8")) as unknown };
  } catch (error) {
    if (!(error instanceof UpstreamFormatError)) throw error;
    return { failed: error.message };
  }
}

const responses = new Goldens(join(import.meta.dirname, "testdata/response"));
const errorGoldens = new Goldens(join(import.meta.dirname, "testdata/error"));
afterAll(() => {
  responses.checkOrphans();
  errorGoldens.checkOrphans();
});

for (const upstream of DIALECTS) {
  for (const client of CLIENTS) {
    if (upstream === client) continue;
    describe(`${upstream} response to ${client}`, () => {
      test.each(Object.entries(RESPONSES[upstream]))("%s", (name, body) => {
        responses.check(`${upstream}/${name}.in.json`, pretty(body));
        responses.check(
          `${upstream}-to-${client}/${name}.out.json`,
          pretty(translate(upstream, client, body)),
        );
      });
    });
  }
}

describe.each(CLIENTS)("errors to %s", (client) => {
  test.each(Object.entries(errors))("%s", (name, { upstream, status, body }) => {
    const translated = translateError({ upstream, client, status, body: Buffer.from(body) });
    errorGoldens.check(`${name}.in.json`, pretty({ upstream, status, body }));
    errorGoldens.check(
      `${name}.to-${client}.out.json`,
      pretty({
        status: translated.status,
        body: JSON.parse(translated.body.toString("utf8")) as unknown,
      }),
    );
  });
});
