/** Reading chains as they grow. */
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditLog, type Filter } from "./tail.ts";
import { AuditWorld } from "../testing.ts";

const ALL: Filter = { holds: [], matches: () => true };
const START = Date.UTC(2026, 0, 31, 12);
const HOUR_MS = 3_600_000;

let world: AuditWorld;
beforeEach(() => {
  world = new AuditWorld();
  mkdirSync(world.dir, { recursive: true });
});
afterEach(() => world.remove());

function line(n: number, minutes = n, chain = "gw"): string {
  const time = new Date(START + minutes * 60_000).toISOString();
  return `${JSON.stringify({ chain, seq: n, time, type: "T", prev: "", fields: { n } })}\n`;
}

function put(segment: number, text: string, chain = "gw"): void {
  mkdirSync(path.join(world.dir, chain), { recursive: true });
  appendFileSync(world.path(`${String(segment).padStart(6, "0")}.jsonl`, chain), text);
}

const numbers = (log: AuditLog): unknown[] =>
  [...log.read()].map(({ record }) => record.fields["n"]);

describe("a log", () => {
  test("yields each record once, as it is written, across segments", () => {
    put(1, line(1) + line(2));
    const log = new AuditLog([world.dir], ALL, undefined);
    expect(numbers(log)).toEqual([1, 2]);
    expect(numbers(log)).toEqual([]);
    put(1, line(3));
    put(2, line(4));
    put(3, line(5) + line(6).slice(0, 10));
    expect(numbers(log)).toEqual([3, 4, 5]);
    put(3, line(6).slice(10));
    expect(numbers(log)).toEqual([6]);
    expect([log.chains, log.unreadable]).toEqual([1, 0]);
  });

  test("yields the line as it stands in the file", () => {
    put(1, line(1));
    const [found] = new AuditLog([world.dir], ALL, undefined).read();
    expect(`${found?.line}\n`).toBe(line(1));
  });

  test("goes on where segments are missing", () => {
    put(3, line(1));
    put(7, line(2));
    expect(numbers(new AuditLog([world.dir], ALL, undefined))).toEqual([1, 2]);
  });

  test.each(["{", "null", "1", '{"time":"x"}', line(1).replace('"type":"T"', '"type":1')])(
    "counts what is no record, and goes on: %s",
    (text) => {
      put(1, `${text.trimEnd()}\n${line(2)}`);
      const log = new AuditLog([world.dir], ALL, undefined);
      expect(numbers(log)).toEqual([2]);
      expect(log.unreadable).toBe(1);
    },
  );

  test.each(["time", "type", "chain", "fields"])("counts a record without %s", (member) => {
    const record = JSON.parse(line(1)) as Record<string, unknown>;
    put(1, `${JSON.stringify({ ...record, [member]: undefined })}\n`);
    put(1, `${JSON.stringify({ ...record, [member]: null })}\n`);
    const log = new AuditLog([world.dir], ALL, undefined);
    expect(numbers(log)).toEqual([]);
    expect(log.unreadable).toBe(2);
  });

  test("merges chains by time, and keeps the order of each", () => {
    put(1, line(1, 1) + line(4, 4) + line(2, 2), "a");
    put(1, line(3, 3, "b") + line(5, 5, "b"), "b");
    const log = new AuditLog([world.dir], ALL, undefined);
    expect(numbers(log)).toEqual([1, 3, 4, 2, 5]);
    put(1, line(6, 6, "c"), "c");
    expect(numbers(log)).toEqual([6]);
    expect(log.chains).toBe(3);
  });

  test("goes on without a chain, or a folder, that was moved away", () => {
    put(1, line(1));
    put(1, line(2, 2, "b"), "b");
    const log = new AuditLog([world.dir], ALL, undefined);
    expect(numbers(log)).toEqual([1, 2]);
    rmSync(path.join(world.dir, "gw"), { recursive: true });
    put(1, line(3, 3, "b"), "b");
    expect(numbers(log)).toEqual([3]);
    rmSync(world.dir, { recursive: true });
    expect(numbers(log)).toEqual([]);
    expect(() => new AuditLog([world.dir], ALL, undefined)).toThrow("cannot be read");
  });
});

describe("a filter", () => {
  test("takes records that it matches, of lines that hold one of its texts", () => {
    put(1, line(1) + line(2) + line(3) + "{ 2\n{ 9\n");
    const filter: Filter = {
      holds: ['"n":2', '"n":3', "{ 2"],
      matches: ({ fields }) => fields["n"] !== 3,
    };
    const log = new AuditLog([world.dir], filter, undefined);
    expect(numbers(log)).toEqual([2]);
    expect(log.unreadable).toBe(1);
  });
});

describe("since a time", () => {
  test("segments that end before it, by more than an hour, are not read", () => {
    put(1, line(1, 0));
    put(2, line(2, 60));
    put(3, line(3, 120));
    const since = (minutes: number): unknown[] =>
      numbers(new AuditLog([world.dir], ALL, START + minutes * 60_000));
    expect(since(240)).toEqual([3]);
    expect(since(180)).toEqual([3]);
    expect(since(179)).toEqual([2, 3]);
    expect(since(120)).toEqual([2, 3]);
    expect(since(0)).toEqual([1, 2, 3]);
    expect(since(-240)).toEqual([1, 2, 3]);
  });

  test("a segment whose first line is still being written counts as new", () => {
    put(1, line(1, 0));
    writeFileSync(world.path("000002.jsonl"), "");
    put(2, line(2, 0).slice(0, -1));
    const log = new AuditLog([world.dir], ALL, START + 2 * HOUR_MS);
    expect(numbers(log)).toEqual([1]);
    put(2, "\n");
    expect(numbers(log)).toEqual([2]);
  });
});
