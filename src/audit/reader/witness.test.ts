/** Witnesses: what somebody else remembers of a chain. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AuditError } from "../errors.ts";
import { parseWitness, readWitness } from "./witness.ts";

const HASH = "0123456789abcdef".repeat(4);

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-witness-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe("a witness", () => {
  test.each([
    [`12:${HASH}`, undefined],
    [`gw:12:${HASH}`, "gw"],
    [`a.b_c-1:12:${HASH}`, "a.b_c-1"],
    [`  gw:12:${HASH}\n`, "gw"],
  ])("is read from %j", (text, chain) => {
    expect(parseWitness(text, "s")).toEqual({ chain, seq: 12, hash: HASH, source: "s" });
  });

  test.each([
    "",
    HASH,
    `:12:${HASH}`,
    `gw:${HASH}`,
    `gw:x:${HASH}`,
    `g w:12:${HASH}`,
    `gw:12:${HASH.toUpperCase()}`,
    `gw:12:${HASH}0`,
    `gw:12:${HASH.slice(1)}`,
    `x gw:12:${HASH}`,
    `gw:12:${HASH} x`,
  ])("is not read from %j", (text) => {
    expect(parseWitness(text, "s")).toBeUndefined();
  });
});

describe("an argument", () => {
  const put = (...lines: readonly string[]): string => {
    const file = path.join(dir, "file");
    writeFileSync(file, lines.map((line) => `${line}\n`).join(""));
    return file;
  };
  const log = (fields: object): string => JSON.stringify({ level: 30, ...fields });
  const logged = { chain: "gw", seq: 12, hash: HASH, msg: "audit checkpoint" };

  test("is a witness itself", () => {
    expect(readWitness(`gw:12:${HASH}`)).toEqual([
      { chain: "gw", seq: 12, hash: HASH, source: "--witness" },
    ]);
  });

  test("is a file of witnesses and of log lines, among others", () => {
    const file = put("# notes", `gw:1:${HASH}`, "{", log(logged), log({ msg: "other" }), "");
    expect(readWitness(file)).toEqual([
      { chain: "gw", seq: 1, hash: HASH, source: `${file} line 2` },
      { chain: "gw", seq: 12, hash: HASH, source: `${file} line 4` },
    ]);
  });

  test.each<[name: string, line: string]>([
    ["of another message", log({ ...logged, msg: "an audit checkpoint" })],
    ["that only mentions one", log({ ...logged, msg: "x", text: "audit checkpoint" })],
    ["without a chain", log({ ...logged, chain: undefined })],
    ["with a chain that is no text", log({ ...logged, chain: 1 })],
    ["without a number", log({ ...logged, seq: undefined })],
    ["without a hash", log({ ...logged, hash: undefined })],
    ["that is cut off", log(logged).slice(0, -1)],
  ])("is no file with a log line alone %s", (_name, line) => {
    expect(() => readWitness(put(line))).toThrow(AuditError);
  });

  test("is neither a folder nor a file that is missing", () => {
    expect(() => readWitness(dir)).toThrow("nor a file");
    expect(() => readWitness(path.join(dir, "none"))).toThrow("nor a file");
    expect(() => readWitness(put())).toThrow("contains no line");
  });
});
