/** Recovery of a chain at start: the next record's place, and unfinished writes. */
import { createHash } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { hashOfCheckpoint } from "../chain/checkpoint.ts";
import { GENESIS } from "../chain/record.ts";
import { loadPublicKey } from "../chain/signing-key.ts";
import { append, AuditWorld, call } from "../testing.ts";
import { type ChainState, recoverChain, START } from "./recover.ts";

const HALF = '{"half of a r\u00e9c';

let world: AuditWorld;
beforeEach(() => {
  world = new AuditWorld();
});
afterEach(() => world.remove());

const segment = (): string => world.path("000001.jsonl");
const checkpoints = (): string => world.path("checkpoints.jsonl");
const size = (file: string): number => statSync(file).size;

function recovered(dir = path.join(world.dir, "gw")): ChainState {
  return recoverChain(dir, "gw", loadPublicKey(world.path("audit.pub")));
}

test("of a chain that was closed, everything", async () => {
  await world.write(3);
  const last = world.records().at(-1);
  const line = readFileSync(checkpoints(), "utf8").trimEnd().split("\n").at(-1) ?? "";
  expect(recovered()).toEqual({
    last: { seq: 6, hash: last?.hash },
    segment: { number: 1, size: size(segment()), tied: true, before: START },
    checkpoints: { n: 2, hash: hashOfCheckpoint(line), seq: 6, size: size(checkpoints()) },
    closed: true,
    unended: false,
    torn: undefined,
    tornCheckpoint: 0,
  });
});

test("of a folder without a chain, its beginning", async () => {
  await world.write(0);
  const empty = path.join(world.root, "empty");
  mkdirSync(empty);
  expect(recovered(empty)).toEqual({
    last: START,
    segment: { number: 0, size: 0, tied: false, before: START },
    checkpoints: { n: 0, hash: GENESIS, seq: 0, size: 0 },
    closed: false,
    unended: false,
    torn: undefined,
    tornCheckpoint: 0,
  });
});

test("of a writer that was killed, what it had signed, and its records since", async () => {
  const writer = await world.open();
  await append(writer, call(1));
  const killed = path.join(world.root, "killed");
  cpSync(path.join(world.dir, "gw"), killed, { recursive: true });
  await writer.close();
  expect(recovered(killed)).toMatchObject({
    last: { seq: 3 },
    checkpoints: { n: 1, seq: 2 },
    closed: false,
    torn: undefined,
  });
});

describe("of a write that was not finished", () => {
  test("half a record: its bytes, after the last whole one; the chain is not closed", async () => {
    await world.write(1);
    appendFileSync(segment(), HALF);
    const sha256 = createHash("sha256").update(HALF).digest("hex");
    expect(recovered()).toMatchObject({
      last: { seq: 4 },
      segment: { size: size(segment()), tied: true },
      closed: false,
      unended: true,
      torn: { bytes: Buffer.byteLength(HALF), sha256 },
    });
  });

  test("only the end of the last line: nothing is torn", async () => {
    await world.write(1);
    truncateSync(segment(), size(segment()) - 1);
    expect(recovered()).toMatchObject({
      last: { seq: 4 },
      unended: true,
      torn: undefined,
      closed: true,
    });
  });

  test("half a checkpoint: the last whole one counts, and its length", async () => {
    await world.write(1);
    const whole = size(checkpoints());
    appendFileSync(checkpoints(), HALF);
    expect(recovered()).toMatchObject({
      checkpoints: { n: 2, seq: 4, size: whole },
      closed: true,
      tornCheckpoint: Buffer.byteLength(HALF),
    });
  });

  test("half of the first checkpoint: nothing is signed", async () => {
    await world.write(1);
    writeFileSync(checkpoints(), HALF);
    expect(recovered()).toMatchObject({
      last: { seq: 4 },
      checkpoints: { n: 0, hash: GENESIS, seq: 0, size: 0 },
      closed: false,
      tornCheckpoint: Buffer.byteLength(HALF),
    });
  });

  test("half of the first record of all: no record, and nothing to go on from but it", async () => {
    await world.write(0);
    const dir = path.join(world.root, "torn");
    mkdirSync(dir);
    writeFileSync(path.join(dir, "000001.jsonl"), HALF);
    expect(recovered(dir)).toMatchObject({
      last: START,
      segment: { number: 1, tied: false, before: START },
      unended: true,
      torn: { bytes: Buffer.byteLength(HALF) },
    });
  });
});

describe("of several segments", () => {
  beforeEach(() => world.write(20, { segmentBytes: 2_000 }));

  const name = (number: number): string => world.path(`${String(number).padStart(6, "0")}.jsonl`);
  const lastOf = (number: number): string => {
    const line = readFileSync(name(number), "utf8").trimEnd().split("\n").at(-1) ?? "{}";
    return (JSON.parse(line) as { readonly hash: string }).hash;
  };

  test("the last one, tied to the one before it", () => {
    const { segment: found, last, closed } = recovered();
    expect(found.number).toBeGreaterThan(2);
    expect(found).toMatchObject({ size: size(name(found.number)), tied: true });
    expect(found.before.hash).toBe(lastOf(found.number - 1));
    expect(last.hash).toBe(lastOf(found.number));
    expect(closed).toBe(true);
  });

  test("one that was begun and has no record yet: the chain ends with the one before it", () => {
    const { segment: found, last } = recovered();
    writeFileSync(name(found.number + 1), "");
    expect(recovered()).toMatchObject({
      last,
      segment: { number: found.number + 1, size: 0, tied: false, before: last },
      unended: false,
      torn: undefined,
    });
  });
});

test.each<[name: string, edit: (text: string) => string, message: RegExp]>([
  ["its end cut off", (text) => text.replace(/[^\n]*\n$/, ""), /its end was cut off/],
  [
    "its last record replaced by one of another chain's hash",
    (text) => text.replace(/"hash":"[0-9a-f]{64}"([^\n]*\n)$/, `"hash":"${"0".repeat(64)}"$1`),
    /cut off/,
  ],
])("nothing, from a chain with %s", async (_name, edit, message) => {
  await world.write(2);
  const text = readFileSync(segment(), "utf8");
  expect(edit(text)).not.toBe(text);
  writeFileSync(segment(), edit(text));
  expect(() => recovered()).toThrow(message);
});

test("nothing, from a chain whose last record another chain has too, with another hash", async () => {
  await world.write(2);
  const kept = readFileSync(segment());
  const other = new AuditWorld();
  try {
    // The same number of records, later.
    other.clock.advance(1_000);
    await other.write(2);
    writeFileSync(segment(), readFileSync(other.path("000001.jsonl")));
    expect(() => recovered()).toThrow(/was rewritten/);
  } finally {
    other.remove();
  }
  writeFileSync(segment(), kept);
  expect(recovered().closed).toBe(true);
});
