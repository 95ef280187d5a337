import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { DialectName, StreamReader, WireFormat } from "./dialect.ts";
import { createStreamReader } from "./registry.ts";
import { streams, toSse } from "./testdata/fixtures/streams.ts";
import { Goldens, pretty } from "../../platform/testing-goldens.ts";

const DIALECTS = ["openai", "anthropic", "gemini"] as const;
const CLIENTS = [...DIALECTS, "responses"] as const;

interface Run {
  readonly output: string;
  readonly facts: unknown;
}

function open(upstream: DialectName, client: WireFormat, wantsUsage: boolean): StreamReader {
  return createStreamReader({
    upstream,
    client,
    wantsUsage,
    model: "asked-model",
    id: "ID",
    now: 1_700_000_000_999,
  });
}

function run(
  upstream: DialectName,
  client: WireFormat,
  wantsUsage: boolean,
  chunks: readonly Buffer[],
): Run {
  const reader = open(upstream, client, wantsUsage);
  const output = Buffer.concat([
    ...chunks.map((chunk) => reader.push(chunk)),
    reader.end(),
  ]).toString("utf8");
  const { outcome, usage, usageIsFinal, sawContent } = reader;
  return { output, facts: { outcome, usage, usageIsFinal, sawContent } };
}

function* everyCut(bytes: Buffer): Generator<readonly Buffer[]> {
  for (let at = 1; at < bytes.length; at += 1) yield [bytes.subarray(0, at), bytes.subarray(at)];
}

function singleBytes(bytes: Buffer): Buffer[] {
  return Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
}

const goldens = new Goldens(join(import.meta.dirname, "testdata/stream"));
afterAll(() => {
  goldens.checkOrphans();
});

for (const upstream of DIALECTS) {
  for (const client of CLIENTS) {
    describe(`${upstream} stream to ${client}`, () => {
      const cases = Object.entries(streams[upstream]).flatMap(([name, events]) => {
        const sse = toSse(upstream, events);
        const asked = { name, sse, wantsUsage: true };
        return client === "openai"
          ? [asked, { name: `${name}.usage-not-asked`, sse, wantsUsage: false }]
          : [asked];
      });

      test.each(cases)("$name", ({ name, sse, wantsUsage }) => {
        const bytes = Buffer.from(sse, "utf8");
        const whole = run(upstream, client, wantsUsage, [bytes]);
        if (wantsUsage) goldens.check(`${upstream}/${name}.in.sse`, sse);
        goldens.check(`${upstream}-to-${client}/${name}.out.sse`, whole.output);
        goldens.check(`${upstream}-to-${client}/${name}.facts.json`, pretty(whole.facts));
      });

      test.each(cases)("$name, cut anywhere", ({ sse, wantsUsage }) => {
        const bytes = Buffer.from(sse, "utf8");
        const whole = run(upstream, client, wantsUsage, [bytes]);
        expect(run(upstream, client, wantsUsage, singleBytes(bytes))).toEqual(whole);
        for (const chunks of everyCut(bytes))
          expect(run(upstream, client, wantsUsage, chunks)).toEqual(whole);
      });

      test.each(cases)("$name, with CRLF", ({ sse, wantsUsage }) => {
        const bytes = Buffer.from(sse.replaceAll("\n", "\r\n"), "utf8");
        const expected = run(upstream, client, wantsUsage, [Buffer.from(sse, "utf8")]);
        const whole = run(upstream, client, wantsUsage, [bytes]);
        expect(whole.facts).toEqual(expected.facts);
        expect(whole.output.replaceAll("\r\n", "\n")).toBe(expected.output);
        expect(run(upstream, client, wantsUsage, singleBytes(bytes))).toEqual(whole);
      });

      test.each(cases.filter(({ sse }) => sse !== ""))(
        "$name, without its last newlines",
        ({ sse, wantsUsage }) => {
          const expected = run(upstream, client, wantsUsage, [Buffer.from(sse, "utf8")]);
          for (const end of [1, 2]) {
            const bytes = Buffer.from(sse.slice(0, -end), "utf8");
            const whole = run(upstream, client, wantsUsage, [bytes]);
            expect(whole.facts).toEqual(expected.facts);
            // If the bytes are forwarded, newlines omitted by the upstream stay omitted.
            expect(whole.output.trimEnd().replaceAll(/\n{2,}/g, "\n\n")).toBe(
              expected.output.trimEnd(),
            );
            expect(run(upstream, client, wantsUsage, singleBytes(bytes))).toEqual(whole);
          }
        },
      );

      test.each(cases)("$name, cut off at every event", ({ name, sse, wantsUsage }) => {
        const events = sse.split(/(?<=\n\n)/);
        for (let count = 0; count < events.length; count += 1) {
          const bytes = Buffer.from(events.slice(0, count).join(""), "utf8");
          const reader = open(upstream, client, wantsUsage);
          const output = Buffer.concat([reader.push(bytes), reader.end()]).toString("utf8");
          if (reader.outcome.kind !== "complete")
            expect(output, `${name} after ${count} events`).toMatch(/"error"/);
        }
      });
    });
  }
}
