/**
 * Each test is an attempt by somebody who can write to the folder to change the history. Most do
 * not have the key.
 */
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { generateKeyPairSync } from "node:crypto";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, afterEach, describe, expect, test } from "vitest";
import { GENESIS, type AuditRecord, sealRecord } from "../chain/record.ts";
import { parseCheckpoint, signCheckpoint, hashOfCheckpoint } from "../chain/checkpoint.ts";
import { describeFault } from "../chain/fault.ts";
import { loadPublicKey } from "../chain/signing-key.ts";
import { append, call, AuditWorld } from "../testing.ts";
import type { ChainReport } from "./verify.ts";
import canonicalize from "canonicalize";

/**
 * Created once: three segments, checkpoints every 10 records, closed. Each test tampers with a
 * copy.
 */
let origin: AuditWorld;
let world: AuditWorld;
const CHECKPOINTS = "checkpoints.jsonl";
const FIRST = "000001.jsonl";
const SECOND = "000002.jsonl";
const LAST = "000003.jsonl";

beforeAll(async () => {
  origin = new AuditWorld();
  await origin.write(40, { segmentBytes: 6000, checkpointRecords: 10 });
});
afterAll(() => origin.remove());
beforeEach(() => {
  world = new AuditWorld();
  cpSync(origin.root, world.root, { recursive: true });
});
afterEach(() => world.remove());

const read = (file: string): string[] =>
  readFileSync(world.path(file), "utf8").trimEnd().split("\n");
const write = (file: string, lines: readonly string[]): void =>
  writeFileSync(world.path(file), `${lines.join("\n")}\n`);
const edit = (file: string, change: (lines: string[]) => readonly string[]): void =>
  write(file, change(read(file)));
const raw = (file: string, change: (text: string) => string): void =>
  writeFileSync(world.path(file), change(readFileSync(world.path(file), "utf8")), "latin1");
const record = (line: string | undefined): AuditRecord => JSON.parse(line ?? "") as AuditRecord;
const seqAt = (file: string, line: number): number => record(read(file)[line - 1]).seq;

/**
 * Seals the records from one on again, across segments, which is all that can be done without the
 * key.
 */
function reseal(
  files: readonly string[],
  change: (records: AuditRecord) => AuditRecord | undefined,
): void {
  let last = { seq: 0, hash: GENESIS };
  for (const file of files) {
    const lines: string[] = [];
    let before = last;
    for (const line of read(file)) {
      let next = change(record(line));
      if (next === undefined) continue;
      if (next.type === "CHAIN.SEGMENT")
        next = { ...next, fields: { ...next.fields, lastSeq: before.seq, lastHash: before.hash } };
      const sealed = sealRecord(
        { ...next, seq: last.seq + 1, prev: last.hash },
        canonicalize(next.fields) as string,
      );
      last = { seq: last.seq + 1, hash: sealed.hash };
      lines.push(sealed.line);
    }
    before = last;
    write(file, lines);
  }
}

/** A segment that follows the last one, which its own record says unless that is changed. */
function appendSegment(change: (fields: AuditRecord["fields"]) => AuditRecord["fields"]): void {
  const { seq, hash, chain, time } = record(read(LAST).at(-1));
  const fields = change({
    ...record(read(LAST)[0]).fields,
    previous: LAST,
    lastSeq: seq,
    lastHash: hash,
  });
  write("000004.jsonl", [
    sealRecord(
      { chain, time, type: "CHAIN.SEGMENT", seq: seq + 1, prev: hash },
      canonicalize(fields) as string,
    ).line,
  ]);
}

const ALL = [FIRST, SECOND, LAST];
const isCall =
  (wanted: number) =>
  ({ fields }: AuditRecord): boolean =>
    fields["i"] === wanted;

test("the chain that is tampered with is good, and has what there is to tamper with", () => {
  expect(world.verify()).toMatchObject({
    fault: undefined,
    segments: 3,
    unsigned: 0,
    closed: true,
    records: 45,
  });
  expect(readdirSync(world.path("."))).toEqual([
    "000001.jsonl",
    "000002.jsonl",
    "000003.jsonl",
    "audit.pub",
    "checkpoints.jsonl",
  ]);
});

interface Try {
  readonly name: string;
  readonly tamper: () => void;
  readonly file: string;
  readonly line?: number;
  /** Number of the named record; by default the one at that line afterwards. */
  readonly seq?: number | "none";
  readonly message: string;
}

const TRIES: readonly Try[] = [
  {
    name: "a field is edited",
    tamper: () => edit(FIRST, (lines) => lines.with(4, (lines[4] ?? "").replace('"i":2', '"i":9'))),
    file: FIRST,
    line: 5,
    seq: 5,
    message: "it was edited",
  },
  {
    name: "a type is edited",
    tamper: () =>
      edit(SECOND, (lines) => lines.with(2, (lines[2] ?? "").replace("LLM_CALL", "LLM_CALK"))),
    file: SECOND,
    line: 3,
    message: "it was edited",
  },
  {
    name: "a record is edited and its own hash mended",
    tamper: () =>
      edit(FIRST, (lines) => {
        const old = record(lines[4]);
        return lines.with(4, sealRecord(old, '{"i":9}').line);
      }),
    file: FIRST,
    line: 6,
    seq: 6,
    message: "another hash for its predecessor than record 5",
  },
  {
    name: "a record is deleted",
    tamper: () => edit(FIRST, (lines) => lines.toSpliced(6, 1)),
    file: FIRST,
    line: 7,
    seq: 8,
    message: "record 7 was expected here: record 7 was deleted",
  },
  {
    name: "three records are deleted",
    tamper: () => edit(FIRST, (lines) => lines.toSpliced(6, 3)),
    file: FIRST,
    line: 7,
    seq: 10,
    message: "records 7 to 9 were deleted",
  },
  {
    name: "the first record is deleted",
    tamper: () => edit(FIRST, (lines) => lines.slice(1)),
    file: FIRST,
    line: 1,
    seq: 2,
    message: "record 1 was expected",
  },
  {
    name: "a record is there twice",
    tamper: () => edit(FIRST, (lines) => lines.toSpliced(5, 0, lines[4] ?? "")),
    file: FIRST,
    line: 6,
    seq: 5,
    message: "a duplicate, or was inserted",
  },
  {
    name: "two records are exchanged",
    tamper: () => edit(FIRST, (lines) => lines.with(4, lines[5] ?? "").with(5, lines[4] ?? "")),
    file: FIRST,
    line: 5,
    seq: 6,
    message: "record 5 was expected",
  },
  {
    name: "a record is inserted",
    tamper: () =>
      edit(FIRST, (lines) => {
        const { chain, time, type, hash, seq } = record(lines[4]);
        return lines.toSpliced(
          5,
          0,
          sealRecord({ chain, time, type, prev: hash, seq: seq + 1 }, '{"i":9}').line,
        );
      }),
    file: FIRST,
    line: 7,
    seq: 6,
    message: "record 7 was expected here: this one is a duplicate, or was inserted",
  },
  {
    name: "a record of another chain is inserted",
    tamper: () =>
      edit(FIRST, (lines) =>
        lines.with(4, sealRecord({ ...record(lines[4]), chain: "gx" }, "{}").line),
      ),
    file: FIRST,
    line: 5,
    message: 'belongs to the chain "gx"',
  },
  {
    name: "a record is written with spaces",
    tamper: () => edit(FIRST, (lines) => lines.with(4, (lines[4] ?? "").replaceAll('","', '", "'))),
    file: FIRST,
    line: 5,
    seq: 5,
    message: "not canonical",
  },
  {
    name: "a line ends as on Windows",
    tamper: () => edit(FIRST, (lines) => lines.with(4, `${lines[4]}\r`)),
    file: FIRST,
    line: 5,
    seq: 5,
    message: "not canonical",
  },
  {
    name: "an empty line is inserted",
    tamper: () => edit(FIRST, (lines) => lines.toSpliced(4, 0, "")),
    file: FIRST,
    line: 5,
    seq: "none",
    message: "not JSON",
  },
  {
    name: "a line is no JSON",
    tamper: () => edit(FIRST, (lines) => lines.with(4, "{")),
    file: FIRST,
    line: 5,
    seq: "none",
    message: "not JSON",
  },
  {
    name: "a file begins with a byte order mark",
    tamper: () => edit(FIRST, (lines) => lines.with(0, `\uFEFF${lines[0]}`)),
    file: FIRST,
    line: 1,
    seq: "none",
    message: "not JSON",
  },
  {
    name: "garbage stands at the end",
    tamper: () => raw(LAST, (text) => `${text}garbage`),
    file: LAST,
    seq: "none",
    message: "ends in the middle of a record (7 bytes)",
  },
  {
    name: "a line of garbage stands at the end",
    tamper: () => raw(LAST, (text) => `${text}garbage\n`),
    file: LAST,
    seq: "none",
    message: "not JSON",
  },
  {
    name: "garbage stands at the end of a segment that is not the last",
    tamper: () => raw(FIRST, (text) => `${text}x`),
    file: FIRST,
    seq: "none",
    message: "ends in the middle",
  },
  {
    name: "the tail is cut within a record",
    tamper: () => raw(LAST, (text) => text.slice(0, -20)),
    file: LAST,
    seq: "none",
    message: "ends in the middle of a record",
  },
  {
    name: "the last line's end is cut off",
    tamper: () => raw(LAST, (text) => text.slice(0, -1)),
    file: LAST,
    seq: 45,
    message: "its line is incomplete",
  },
  {
    name: "the tail is cut between two records",
    tamper: () => edit(LAST, (lines) => lines.slice(0, -1)),
    file: CHECKPOINTS,
    line: 7,
    seq: 45,
    message: "the chain ends at record 44, its end was cut off",
  },
  {
    name: "the last segment is emptied",
    tamper: () => raw(LAST, () => ""),
    file: CHECKPOINTS,
    message: "its end was cut off",
    seq: "none",
  },
  {
    name: "the last segment is deleted",
    tamper: () => rmSync(world.path(LAST)),
    file: CHECKPOINTS,
    message: "its end was cut off",
    seq: "none",
  },
  {
    name: "a segment between others is deleted",
    tamper: () => rmSync(world.path(SECOND)),
    file: SECOND,
    seq: "none",
    message: "the segment is missing",
  },
  {
    name: "the first segment is deleted",
    tamper: () => rmSync(world.path(FIRST)),
    file: FIRST,
    seq: "none",
    message: "--from-checkpoint",
  },
  {
    name: "all segments are deleted",
    tamper: () => ALL.forEach((file) => rmSync(world.path(file))),
    file: CHECKPOINTS,
    line: 1,
    seq: 2,
    message: "the chain ends at record 0",
  },
  {
    name: "a segment is deleted and the next takes its name",
    tamper: () => renameSync(world.path(LAST), world.path(SECOND)),
    file: SECOND,
    line: 1,
    message: "was expected here",
  },
  {
    name: "two segments change their names",
    tamper: () => {
      renameSync(world.path(SECOND), world.path("x"));
      renameSync(world.path(LAST), world.path(SECOND));
      renameSync(world.path("x"), world.path(LAST));
    },
    file: SECOND,
    line: 1,
    message: "was expected here",
  },
  {
    name: "a segment is there twice",
    tamper: () => cpSync(world.path(SECOND), world.path("000004.jsonl")),
    file: "000004.jsonl",
    line: 1,
    message: "a duplicate, or was inserted",
  },
  {
    name: "a segment lies beside under another name",
    tamper: () => cpSync(world.path(SECOND), world.path("000002b.jsonl")),
    file: "000002b.jsonl",
    seq: "none",
    message: "no place in the chain",
  },
  {
    name: "a fork: another segment claims the same predecessor",
    tamper: () =>
      write(
        "000004.jsonl",
        read(LAST).map((line, i) =>
          i === 0
            ? sealRecord(
                { ...record(line), time: "2026-02-01T00:00:00.000Z" },
                canonicalize(record(line).fields) as string,
              ).line
            : line,
        ),
      ),
    file: "000004.jsonl",
    line: 1,
    message: "was expected here",
  },
  {
    name: "a fork: a segment goes on from the end, but claims another predecessor",
    tamper: () => {
      const { seq, hash, chain, time } = record(read(LAST).at(-1));
      const { fields } = record(read(LAST)[0]);
      write("000004.jsonl", [
        sealRecord(
          { chain, time, type: "CHAIN.SEGMENT", seq: seq + 1, prev: hash },
          canonicalize(fields) as string,
        ).line,
      ]);
    },
    file: "000004.jsonl",
    line: 1,
    seq: 46,
    message: "it follows 000002.jsonl",
  },
  ...(["previous", "lastSeq", "lastHash"] as const).map((field) => ({
    name: `a fork: a segment goes on from the end, but its ${field} is of another segment`,
    tamper: () =>
      appendSegment((fields) => ({ ...fields, [field]: record(read(LAST)[0]).fields[field] })),
    file: "000004.jsonl",
    line: 1,
    seq: 46,
    message: "segments were moved, or the chain was forked",
  })),
  {
    name: "a segment and a record are appended after the end",
    tamper: () => {
      appendSegment((fields) => fields);
      const { seq, hash, chain, time } = record(read("000004.jsonl")[0]);
      edit("000004.jsonl", (lines) => [
        ...lines,
        sealRecord({ chain, time, type: "LLM_CALL", seq: seq + 1, prev: hash }, "{}").line,
      ]);
    },
    file: "000004.jsonl",
    line: 2,
    seq: 47,
    message: "the chain was closed and signed before it",
  },
  {
    name: "the chain's first record names another public key",
    tamper: () =>
      reseal(ALL, (old) =>
        old.type === "CHAIN.START" ? { ...old, fields: { ...old.fields, publicKey: "x" } } : old,
      ),
    file: FIRST,
    line: 1,
    seq: 1,
    message: "another public key than the one that is trusted",
  },
  {
    name: "a record is edited and all hashes after it mended",
    tamper: () =>
      reseal(ALL, (old) => (isCall(2)(old) ? { ...old, fields: { ...old.fields, i: 9 } } : old)),
    file: FIRST,
    line: 12,
    seq: 12,
    message: "records from 3 on were rewritten",
  },
  {
    name: "a record is taken out and all numbers and hashes after it mended",
    tamper: () => reseal(ALL, (old) => (isCall(20)(old) ? undefined : old)),
    file: SECOND,
    message: "its hash differs from the signed one",
  },
  {
    name: "a record is edited, and given out as torn",
    tamper: () =>
      edit(FIRST, (lines) => {
        const { seq, hash, chain, time } = record(lines[3]);
        return [
          ...lines.slice(0, 4),
          "torn",
          sealRecord(
            { chain, time, type: "CHAIN.TORN", seq: seq + 1, prev: hash },
            '{"bytes":4,"sha256":"x"}',
          ).line,
          ...lines.slice(6),
        ];
      }),
    file: FIRST,
    line: 5,
    seq: "none",
    message: "not JSON",
  },
  {
    name: "a record is appended after the end",
    tamper: () => {
      const { seq, hash, chain, time } = record(read(LAST).at(-1));
      edit(LAST, (lines) => [
        ...lines,
        sealRecord({ chain, time, type: "LLM_CALL", seq: seq + 1, prev: hash }, "{}").line,
      ]);
    },
    file: LAST,
    seq: 46,
    message: "appended by someone else",
  },
  {
    name: "a start and a record are appended after the end",
    tamper: () => {
      const { seq, hash, chain, time } = record(read(LAST).at(-1));
      const start = sealRecord(
        { chain, time, type: "CHAIN.OPENED", seq: seq + 1, prev: hash },
        "{}",
      );
      edit(LAST, (lines) => [
        ...lines,
        start.line,
        sealRecord({ chain, time, type: "LLM_CALL", seq: seq + 2, prev: start.hash }, "{}").line,
      ]);
    },
    file: LAST,
    seq: 47,
    message: "record 46 was not signed",
  },
  {
    name: "the first segment's tie is another kind of record",
    tamper: () =>
      reseal(ALL, (old) => (old.type === "CHAIN.START" ? { ...old, type: "CHAIN.OPENED" } : old)),
    file: FIRST,
    line: 1,
    seq: 1,
    message: "does not begin with CHAIN.START",
  },
  {
    name: "a segment's tie is deleted and all mended",
    tamper: () => reseal(ALL, (old) => (old.type === "CHAIN.SEGMENT" ? undefined : old)),
    file: SECOND,
    line: 1,
    message: "does not begin with CHAIN.SEGMENT",
  },
  {
    name: "a tie stands in the middle of a segment",
    tamper: () => reseal(ALL, (old) => (isCall(3)(old) ? { ...old, type: "CHAIN.SEGMENT" } : old)),
    file: FIRST,
    line: 6,
    seq: 6,
    message: "in the middle of a segment",
  },
  {
    name: "a chain's start stands in the middle of a segment",
    tamper: () => reseal(ALL, (old) => (isCall(3)(old) ? { ...old, type: "CHAIN.START" } : old)),
    file: FIRST,
    line: 6,
    seq: 6,
    message: "in the middle of a segment",
  },
  {
    name: "a checkpoint's hash is edited",
    tamper: () =>
      edit(CHECKPOINTS, (lines) =>
        lines.with(1, (lines[1] ?? "").replace(/"hash":"./, '"hash":"x')),
      ),
    file: CHECKPOINTS,
    line: 2,
    seq: 12,
    message: "signature is wrong",
  },
  {
    name: "a checkpoint is deleted",
    tamper: () => edit(CHECKPOINTS, (lines) => lines.toSpliced(1, 1)),
    file: CHECKPOINTS,
    line: 2,
    message: "does not follow the previous checkpoint",
  },
  {
    name: "the first checkpoint is deleted",
    tamper: () => edit(CHECKPOINTS, (lines) => lines.slice(1)),
    file: CHECKPOINTS,
    line: 1,
    message: "number 1 was expected",
  },
  {
    name: "a checkpoint is there twice",
    tamper: () => edit(CHECKPOINTS, (lines) => lines.toSpliced(2, 0, lines[1] ?? "")),
    file: CHECKPOINTS,
    line: 3,
    seq: 12,
    message: "a duplicate, or the chain was forked",
  },
  {
    name: "two checkpoints are exchanged",
    tamper: () =>
      edit(CHECKPOINTS, (lines) => lines.with(1, lines[2] ?? "").with(2, lines[1] ?? "")),
    file: CHECKPOINTS,
    line: 2,
    message: "does not follow",
  },
  {
    name: "a checkpoint is written with spaces",
    tamper: () =>
      edit(CHECKPOINTS, (lines) => lines.with(1, (lines[1] ?? "").replaceAll('","', '", "'))),
    file: CHECKPOINTS,
    line: 2,
    seq: "none",
    message: "not a checkpoint",
  },
  {
    name: "a checkpoint is cut",
    tamper: () => raw(CHECKPOINTS, (text) => text.slice(0, -5)),
    file: CHECKPOINTS,
    line: 7,
    seq: "none",
    message: "in the middle of a checkpoint",
  },
  {
    name: "all checkpoints are deleted",
    tamper: () => rmSync(world.path(CHECKPOINTS)),
    file: FIRST,
    line: 3,
    seq: 3,
    message: "record 2 was not signed",
  },
  {
    name: "all is deleted but the first two records, which no checkpoint has to follow",
    tamper: () => {
      for (const file of [SECOND, LAST, CHECKPOINTS]) rmSync(world.path(file));
      edit(FIRST, (lines) => lines.slice(0, 2));
    },
    file: CHECKPOINTS,
    seq: "none",
    message: "nothing is signed, so nothing is proven",
  },
  {
    name: "all is written anew and signed with a key of one's own",
    tamper: () => {
      const { privateKey } = generateKeyPairSync("ed25519");
      edit(CHECKPOINTS, (lines) => {
        let prev = GENESIS;
        return lines.map((line) => {
          const { sig: _, ...checkpoint } = parseCheckpoint(line) ?? ({} as never);
          const signed = signCheckpoint({ ...checkpoint, prev }, privateKey);
          prev = hashOfCheckpoint(signed);
          return signed;
        });
      });
    },
    file: CHECKPOINTS,
    line: 1,
    seq: 2,
    message: "signature is wrong",
  },
];

describe("is found", () => {
  test.each(TRIES)("$name", ({ tamper, file, line, seq, message }) => {
    tamper();
    const { fault } = world.verify();
    expect(fault, "nothing was found").toBeDefined();
    expect(
      describeFault({ place: fault?.place ?? { file: "" }, message: fault?.message ?? "" }),
    ).toContain(message);
    expect(fault?.place.file).toBe(file);
    if (line !== undefined) expect(fault?.place.line).toBe(line);
    if (seq === "none") return;
    expect(fault?.place.seq).toBe(seq ?? seqAt(file, fault?.place.line ?? 0));
  });

  test(
    "every byte of a segment and of the checkpoints that is another",
    { timeout: 300_000 },
    () => {
      for (const file of [LAST, CHECKPOINTS]) {
        const bytes = readFileSync(world.path(file));
        for (let at = 0; at < bytes.length; at += 11) {
          const other = Buffer.from(bytes);
          other[at] = (other[at] ?? 0) ^ 1;
          writeFileSync(world.path(file), other);
          expect(world.verify().fault, `${file} byte ${at}`).toBeDefined();
        }
        writeFileSync(world.path(file), bytes);
      }
      expect(world.verify().fault).toBeUndefined();
    },
  );

  test("bytes that are not UTF-8 and read as the text that was there", async () => {
    const other = new AuditWorld();
    await other.write(0);
    const writer = await other.open();
    await append(writer, { type: "LLM_CALL", fields: { model: "\uFFFD" } });
    await writer.close();
    expect(other.verify().fault).toBeUndefined();
    const bytes = readFileSync(other.path(FIRST));
    bytes.set([0xf0, 0x9f, 0x98], bytes.indexOf("\uFFFD"));
    writeFileSync(other.path(FIRST), bytes);
    expect(other.verify().fault?.message).toContain("not UTF-8");
    other.remove();
  });
});

describe("needs more than the folder", () => {
  test("a chain whose records and checkpoints are cut back is good by itself; a witness detects it", () => {
    const end = record(read(LAST).at(-1));
    const first = parseCheckpoint(read(CHECKPOINTS)[1] ?? "");
    rmSync(world.path(SECOND));
    rmSync(world.path(LAST));
    edit(FIRST, (lines) => lines.slice(0, first?.seq));
    edit(CHECKPOINTS, (lines) => lines.slice(0, 2));
    expect(world.verify()).toMatchObject({ fault: undefined, last: { seq: 12 }, closed: false });
    const witness = { chain: "gw", seq: end.seq, hash: end.hash, source: "the log" };
    expect(world.verify({ witnesses: [witness] }).fault).toEqual({
      place: { file: CHECKPOINTS, seq: 45 },
      message:
        "the record is in the log, but not in the chain: the chain and its checkpoints " +
        "were truncated to record 12",
    });
    expect(world.verify({ witnesses: [{ ...witness, seq: 12 }] }).fault).toMatchObject({
      place: { file: FIRST, line: 12, seq: 12 },
      message: expect.stringContaining("the one in the log"),
    });
    expect(
      world.verify({ witnesses: [{ ...witness, seq: 12, hash: first?.hash ?? "" }] }).fault,
    ).toBeUndefined();
  });

  test("a chain that is another's as a whole is found by the key that is trusted", async () => {
    const trusted = loadPublicKey(world.path("audit.pub"));
    expect(world.verify({ keys: [trusted] })).toMatchObject({
      fault: undefined,
      keyFromFolder: false,
      keys: [trusted.fingerprint],
    });
    rmSync(path.join(world.root, "audit"), { recursive: true });
    rmSync(world.keyFile);
    await world.write(3);
    expect(world.verify()).toMatchObject({ fault: undefined, keyFromFolder: true });
    // Nothing of it is believed, not even how far it goes.
    expect(world.verify({ keys: [trusted] })).toMatchObject({
      fault: {
        place: { file: CHECKPOINTS, line: 1 },
        message: expect.stringContaining("not trusted"),
      },
      last: { seq: 0, hash: GENESIS },
      closed: false,
    });
    // Several keys are trusted, and one of them is the writer's.
    const own = loadPublicKey(world.path("audit.pub"));
    expect(world.verify({ keys: [trusted, own] }).fault).toBeUndefined();
  });

  test("more records without a checkpoint than a writer leaves", () => {
    edit(CHECKPOINTS, (lines) => lines.slice(0, -2));
    const { unsigned, fault } = world.verify();
    expect(fault).toBeUndefined();
    expect(unsigned).toBeGreaterThan(1);
    expect(world.verify({ maxUnsigned: unsigned }).fault).toBeUndefined();
    expect(world.verify({ maxUnsigned: unsigned - 1 }).fault).toEqual({
      place: { file: CHECKPOINTS },
      message: expect.stringContaining("checkpoints were cut off"),
    });
  });

  test("a chain that was closed, and goes on with a segment that nobody signed, is not closed", () => {
    expect(world.verify().closed).toBe(true);
    appendSegment((fields) => fields);
    expect(world.verify()).toMatchObject({ fault: undefined, unsigned: 1, closed: false });
  });
});

describe("while the writer lives", () => {
  /** Verifies the chain with a file that was changed, and puts it back, for the writer. */
  function verifyWith(file: string, change: (text: string) => string): ChainReport {
    const before = readFileSync(world.path(file));
    raw(file, change);
    const report = world.verify();
    writeFileSync(world.path(file), before);
    return report;
  }

  test("only the end of the last segment may be unfinished", async () => {
    const writer = await world.open();
    await append(writer, call(1));
    expect(verifyWith(LAST, (text) => text.slice(0, -1)).fault).toBeUndefined();
    expect(verifyWith(LAST, (text) => text.slice(0, -20)).fault).toBeUndefined();
    expect(verifyWith(FIRST, (text) => text.slice(0, -1)).fault?.message).toContain(
      "its line is incomplete",
    );
    expect(verifyWith(FIRST, (text) => `${text}{"chain"`).fault).toMatchObject({
      place: { file: FIRST },
      message: expect.stringContaining("the end was cut off"),
    });
    expect(verifyWith(LAST, (text) => `${text}garbage\n`).fault?.message).toContain("not JSON");
    await writer.close();
  });

  test("the chain is not closed, though all of it is signed", async () => {
    const writer = await world.open();
    expect(world.verify()).toMatchObject({
      fault: undefined,
      live: true,
      unsigned: 0,
      closed: false,
    });
    await writer.close();
  });
});

test("what a killed writer left is counted: its start, and the bytes that it did not finish", async () => {
  const writer = await world.open();
  await append(writer, call(1));
  const copy = new AuditWorld();
  cpSync(world.root, copy.root, { recursive: true });
  await writer.close();
  // The process that the lock names is this one, and lives.
  rmSync(copy.path("writer.lock"));
  writeFileSync(copy.path("000004.jsonl"), '{"chain":"g');
  await copy.write(1);
  expect(copy.verify()).toMatchObject({
    fault: undefined,
    segments: 4,
    starts: 3,
    torn: 1,
    unsigned: 0,
    closed: true,
  });
  copy.remove();
});

test("a segment that cannot be read is no fault of the chain's: nothing is said about it", () => {
  rmSync(world.path(LAST));
  mkdirSync(world.path(LAST));
  expect(() => world.verify()).toThrow("EISDIR");
});

describe("is no fault", () => {
  test("a chain that is being written, with half a line at its end", async () => {
    const writer = await world.open();
    await append(writer, call(1));
    raw(LAST, (text) => `${text}{"chain":"g`);
    expect(world.verify()).toMatchObject({ fault: undefined, live: true, unsigned: 1 });
    raw(LAST, (text) => text.slice(0, -11));
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, live: false, unsigned: 0 });
  });

  test("older segments that were archived, when it is said", () => {
    const tie = record(read(SECOND)[0]);
    rmSync(world.path(FIRST));
    expect(world.verify().fault?.message).toContain("--from-checkpoint");
    expect(world.verify({ from: { seq: tie.seq - 1 } })).toMatchObject({
      fault: undefined,
      first: tie.seq,
    });
    expect(world.verify({ from: { seq: tie.seq - 1, hash: tie.prev } }).fault).toBeUndefined();
    expect(world.verify({ from: { seq: tie.seq - 1, hash: GENESIS } }).fault).toEqual({
      place: { file: CHECKPOINTS, seq: tie.seq - 1 },
      message: expect.stringContaining("another hash"),
    });
    expect(world.verify({ from: { seq: 12 } }).fault?.message).toContain("were deleted");
    expect(world.verify({ from: { seq: 5 } }).fault?.message).toContain(
      "no checkpoint of this record",
    );
  });

  test("a chain's folder under another name, when it is named itself", () => {
    renameSync(world.path("."), path.join(world.root, "copy"));
    expect(existsSync(world.dir)).toBe(true);
    expect(world.verify({}, path.join(world.root, "copy")).fault).toBeUndefined();
    renameSync(path.join(world.root, "copy"), path.join(world.dir, "gx"));
    expect(world.verify().fault?.message).toContain("belongs to the chain");
  });
});
