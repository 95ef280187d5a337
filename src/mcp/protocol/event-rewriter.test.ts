import { describe, expect, test } from "vitest";
import { EventRewriter, type EventRewriterOptions, EventTooLarge } from "./event-rewriter.ts";

type Inspect = EventRewriterOptions["inspect"];

function rewrite(text: string, inspect: Inspect, size: number, maxEventBytes = 1_000): string {
  const rewriter = new EventRewriter({ wrapId: (id) => `W${id}`, inspect, maxEventBytes });
  const bytes = Buffer.from(text);
  const out: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size)
    out.push(...rewriter.push(Buffer.from(bytes.subarray(at, at + size))));
  out.push(...rewriter.end());
  return Buffer.concat(out).toString();
}

const SIZES = [1, 2, 3, 7, 10_000];
const replaceA: Inspect = (data) =>
  data.toString().includes("A") ? Buffer.from(data.toString().replaceAll("A", "b")) : undefined;

describe.each(SIZES)("in chunks of %i bytes", (size) => {
  test.each([
    ["no id", "event: message\ndata: {}\n\n", "event: message\ndata: {}\n\n"],
    ["an id", "id: 1\ndata: x\n\n", "id: W1\ndata: x\n\n"],
    ["an id without a space", "id:1\ndata:x\n\n", "id: W1\ndata:x\n\n"],
    ["an id behind the data", "data: x\nid: 1\n\n", "data: x\nid: W1\n\n"],
    ["CRLF", "id: 1\r\ndata: x\r\n\r\n", "id: W1\r\ndata: x\r\n\r\n"],
    ["CR", "id: 1\rdata: x\r\r", "id: W1\rdata: x\r\r"],
    [
      "a comment and retry",
      ": hi\nretry: 5\nid: 2\ndata: \n\n",
      ": hi\nretry: 5\nid: W2\ndata: \n\n",
    ],
    ["a field that begins like id", "idx: 1\nids\ndata: id: 3\n\n", "idx: 1\nids\ndata: id: 3\n\n"],
    ["an empty id", "id\ndata: x\n\nid:\n\n", "id:\ndata: x\n\nid:\n\n"],
    ["an id with NUL", "id: 1\0\ndata: x\n\n", "id:\ndata: x\n\n"],
    ["a byte order mark", "\uFEFFid: 1\ndata: x\n\n", "id: W1\ndata: x\n\n"],
    ["an event without its end", "id: 1\ndata: x", "id: W1\ndata: x"],
    ["an id without its end", "data: x\n\nid: 1", "data: x\n\nid: W1"],
    ["an id in several events", "id: é\n\nid: 2\n\n", "id: Wé\n\nid: W2\n\n"],
  ])("%s", (_, text, expected) => {
    expect(rewrite(text, undefined, size)).toBe(expected);
    expect(rewrite(text, () => undefined, size)).toBe(expected);
  });

  test.each([
    ["replaced", "id: 1\nevent: m\ndata: A\n\n", "id: W1\nevent: m\ndata: b\n\n"],
    ["the next stays", "data: A\n\ndata: x\n\n", "data: b\n\ndata: x\n\n"],
    ["several lines", "data: A\nid: 1\ndata: A2\n\n", "id: W1\ndata: b\ndata: b2\n\n"],
    ["CR", "data: A\r\rdata: x\r\r", "data: b\n\ndata: x\r\r"],
    ["no space", "data:A\n\n", "data: b\n\n"],
    ["without its end", "data: A", "data: b\n\n"],
    ["a data line of a name alone", "data\ndata: A\n\n", "data: \ndata: b\n\n"],
    ["other fields", "Data: A\ndata : A\n\n", "Data: A\ndata : A\n\n"],
  ])("data: %s", (_, text, expected) => {
    expect(rewrite(text, replaceA, size)).toBe(expected);
  });
});

test("a chunk that does not change is the same buffer", () => {
  const rewriter = new EventRewriter({ wrapId: (id) => id, inspect: undefined, maxEventBytes: 9 });
  const chunk = Buffer.from("data: {}\n\n");
  expect(rewriter.push(chunk)[0]).toBe(chunk);
});

test("data is forwarded before it is complete, and is not held", () => {
  const rewriter = new EventRewriter({ wrapId: (id) => id, inspect: undefined, maxEventBytes: 9 });
  const first = Buffer.from(`data: ${"x".repeat(100)}`);
  expect(Buffer.concat(rewriter.push(first))).toEqual(first);
  const second = Buffer.from("y".repeat(100));
  expect(rewriter.push(second)).toEqual([second]);
});

test("an event without data is not inspected", () => {
  const seen: string[] = [];
  rewrite(
    "id: 1\ndata: \n\n:\n\ndata: x\n\n",
    (data) => (seen.push(data.toString()), undefined),
    1,
  );
  expect(seen).toEqual(["x"]);
});

test("an event that is too large to inspect ends the stream", () => {
  const long = `data: ${"x".repeat(1_001)}\n\n`;
  for (const size of SIZES)
    expect(() => rewrite(long, () => undefined, size)).toThrow(EventTooLarge);
  expect(rewrite(long, undefined, 7)).toBe(long);
  const rewriter = new EventRewriter({ wrapId: (id) => id, inspect: undefined, maxEventBytes: 9 });
  expect(() => rewriter.push(Buffer.from(`id: ${"1".repeat(9_000)}`))).toThrow(EventTooLarge);
});
