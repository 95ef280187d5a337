import { describe, expect, test } from "vitest";
import { expectLinear } from "../../platform/testing-work.ts";
import { EventBuffer } from "./event-buffer.ts";
import { SseParser, lastEventEnd, readEvent, splitEvents } from "./sse.ts";
import type { SseEvent } from "./sse.ts";

function parse(chunks: readonly Buffer[]): SseEvent[] {
  const parser = new SseParser();
  return [...chunks.flatMap((chunk) => parser.push(chunk)), ...parser.end()];
}

const STREAMS: Readonly<
  Record<string, { readonly text: string; readonly events: readonly SseEvent[] }>
> = {
  "named and unnamed": {
    text: "event: a\ndata: 1\n\ndata: 2\n\n",
    events: [
      { name: "a", data: "1" },
      { name: undefined, data: "2" },
    ],
  },
  "several data lines": {
    text: "data: 1\ndata:2\ndata:  3\n\n",
    events: [{ name: undefined, data: "1\n2\n 3" }],
  },
  "comments and other fields": {
    text: ": hi\n\nid: 1\nretry: 5\ndata: x\n\n",
    events: [{ name: undefined, data: "x" }],
  },
  "a data field without a colon": { text: "data\n\n", events: [{ name: undefined, data: "" }] },
  "an event without data": {
    text: "event: a\n\ndata: x\n\n",
    events: [{ name: undefined, data: "x" }],
  },
  "a byte order mark": { text: "\uFEFFdata: x\n\n", events: [{ name: undefined, data: "x" }] },
  "characters of several bytes": {
    text: "data: Grüße 🌍\n\n",
    events: [{ name: undefined, data: "Grüße 🌍" }],
  },
  "no last newline": {
    text: "data: 1\n\ndata: 2",
    events: [
      { name: undefined, data: "1" },
      { name: undefined, data: "2" },
    ],
  },
  nothing: { text: "", events: [] },
};

const ENDINGS = { LF: "\n", CRLF: "\r\n", CR: "\r" } as const;

describe.each(Object.entries(STREAMS))("%s", (_, { text, events }) => {
  test.each(Object.entries(ENDINGS))("%s, cut anywhere", (__, ending) => {
    const bytes = Buffer.from(text.replaceAll("\n", ending), "utf8");
    expect(parse([bytes])).toEqual(events);
    expect(parse(Array.from(bytes, (___, at) => bytes.subarray(at, at + 1)))).toEqual(events);
    for (let at = 0; at <= bytes.length; at += 1)
      expect(parse([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(events);
  });
});

describe("event boundaries", () => {
  test.each([
    ["data: 1\n\n", 9],
    ["data: 1\r\n\r\n", 11],
    ["data: 1\r\r", 9],
    ["data: 1\n\ndata: 2\n", 9],
    ["data: 1\n", 0],
    ["", 0],
  ])("%j ends whole events at %i", (text, end) => {
    expect(lastEventEnd(Buffer.from(text))).toBe(end);
  });

  test("a block splits into its events, bytes unchanged", () => {
    const block = Buffer.from("data: 1\n\n: comment\r\n\r\nevent: a\ndata: 2\n\n");
    const events = splitEvents(block);
    expect(events.map(String)).toEqual([
      "data: 1\n\n",
      ": comment\r\n\r\n",
      "event: a\ndata: 2\n\n",
    ]);
    expect(events.map(readEvent)).toEqual([
      { name: undefined, data: "1" },
      undefined,
      { name: "a", data: "2" },
    ]);
  });

  test("a chunk of whole events passes as the same Buffer", () => {
    const chunk = Buffer.from("data: 1\n\n");
    expect(new EventBuffer().push(chunk)).toBe(chunk);
  });

  test("a large event in many chunks is joined once, not at every chunk", () => {
    const piece = Buffer.alloc(1024, "x");
    expectLinear(
      (size) => () => {
        const buffer = new EventBuffer();
        for (let count = 0; count < size; count += 1) expect(buffer.push(piece).length).toBe(0);
        expect(buffer.push(Buffer.from("\n\n")).length).toBe(size * piece.length + 2);
      },
      200,
    );
  });
});
