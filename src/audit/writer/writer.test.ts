import {
  chmodSync,
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseCheckpoint } from "../chain/checkpoint.ts";
import type { AppendOutcome } from "../event.ts";
import { livingWriter } from "./lock.ts";
import { append, call, logged, until, AuditWorld } from "../testing.ts";

let world: AuditWorld;
beforeEach(() => {
  world = new AuditWorld();
});
afterEach(() => world.remove());

const checkpoints = (): string[] =>
  readFileSync(world.path("checkpoints.jsonl"), "utf8").trimEnd().split("\n");

describe("append", () => {
  test("commits in order, records of one turn with one write", async () => {
    const writer = await world.open({ sync: "group" });
    const before = world.files.writes;
    const outcomes: string[] = [];
    await new Promise<void>((resolve) => {
      for (let i = 0; i < 100; i++) {
        writer.append(call(i), (outcome) => {
          outcomes.push(`${i} ${outcome}`);
          if (i === 99) resolve();
        });
      }
      expect(outcomes).toEqual([]);
    });
    expect(outcomes).toEqual(Array.from({ length: 100 }, (_, i) => `${i} committed`));
    expect(world.files.writes - before).toBe(1);
    await writer.close();
    expect(world.types().slice(0, 3)).toEqual(["CHAIN.START", "CHAIN.OPENED", "LLM_CALL"]);
    expect(world.types().at(-1)).toBe("CHAIN.CLOSED");
    expect(world.verify()).toMatchObject({
      fault: undefined,
      records: 103,
      unsigned: 0,
      closed: true,
    });
  });

  test("leaves at least commitMs between two commits, and waits for none at the end", async () => {
    const writer = await world.open({ commitMs: 5 });
    world.clock.advance(5);
    await append(writer, call(0));
    const outcomes: AppendOutcome[] = [];
    writer.append(call(1), (outcome) => outcomes.push(outcome));
    await until(() => world.clock.pending.length === 2);
    expect(outcomes).toEqual([]);
    world.clock.advance(5);
    await until(() => outcomes.length === 1);
    writer.append(call(2), (outcome) => outcomes.push(outcome));
    await writer.close();
    expect(outcomes).toEqual(["committed", "committed"]);
  });

  test("a record that nobody waits for goes with the next one, or after a while, and at the end", async () => {
    const writer = await world.open();
    const before = world.files.writes;
    writer.append(call(0));
    await append(writer, call(1));
    expect(world.files.writes - before).toBe(1);
    writer.append(call(2));
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    expect(world.files.writes - before).toBe(1);
    world.clock.advance(250);
    await until(() => world.types().filter((type) => type === "LLM_CALL").length === 3);
    writer.append(call(3));
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, unsigned: 0, closed: true });
    expect(world.types().filter((type) => type === "LLM_CALL")).toHaveLength(4);
  });

  test("whenever it comes, it is committed", async () => {
    const writer = await world.open();
    // In one of these turns, a commit ends and nothing else is pending to begin another.
    for (let turns = 0; turns < 25; turns++) {
      await new Promise<void>((resolve) => {
        writer.append(call(turns), () => {
          void (async () => {
            for (let i = 0; i < turns; i++) await Promise.resolve();
            writer.append(call(turns), () => resolve());
          })();
        });
      });
    }
    await writer.close();
    expect(world.types().filter((type) => type === "LLM_CALL")).toHaveLength(50);
  });

  test("a caller that throws does not stop the others", async () => {
    const writer = await world.open();
    writer.append(call(0), () => {
      throw new Error("caller");
    });
    expect(await append(writer, call(1))).toBe("committed");
    expect(logged(world, "a caller of the audit chain failed")).toMatchObject([
      { error: "Error: caller" },
    ]);
    await writer.close();
  });

  test("the chain's own types are not for callers; after the end nothing is kept", async () => {
    const writer = await world.open();
    expect(() => writer.append({ type: "CHAIN.START", fields: {} })).toThrow(
      "is reserved for the chain",
    );
    expect(writer.refusing).toBe(false);
    await writer.close();
    await writer.close();
    expect(await append(writer, call(0))).toBe("failed");
    expect([writer.state, writer.refusing]).toEqual(["failing", true]);
    expect(await world.metric("svc_audit_up")).toBe(0);
    expect(await world.metric("svc_audit_lost_total")).toBe(1);
  });

  test("the clock may go back an hour: numbers never do", async () => {
    const writer = await world.open();
    await append(writer, call(0));
    world.clock.step(-3_600_000);
    await append(writer, call(1));
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, clockBack: 1 });
  });

  test("metrics", async () => {
    const writer = await world.open();
    await append(writer, call(0));
    await append(writer, { type: "TOOL_CALL", fields: {} });
    const records = await world.registry.getSingleMetric("svc_audit_records_total")?.get();
    expect(records?.values.map(({ labels, value }) => [labels["type"], value])).toEqual([
      ["CHAIN.START", 1],
      ["CHAIN.OPENED", 1],
      ["LLM_CALL", 1],
      ["TOOL_CALL", 1],
    ]);
    expect(await world.metric("svc_audit_up")).toBe(1);
    expect(await world.metric("svc_audit_checkpoint_seq")).toBe(2);
    await writer.close();
    expect(await world.metric("svc_audit_checkpoint_seq")).toBe(5);
  });
});

describe("what is due", () => {
  const LOOK_MS = 1_000;
  const CHECKPOINT_MS = 10_000;

  test("is a look at the volume, a record that nobody waits for, and a checkpoint", async () => {
    const writer = await world.open();
    expect(world.clock.pending).toEqual([LOOK_MS]);
    writer.append(call(0));
    writer.append(call(1));
    expect(world.clock.pending).toEqual([250, LOOK_MS]);
    await append(writer, call(2));
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(world.clock.pending).toEqual([LOOK_MS, CHECKPOINT_MS]);
    world.clock.advance(10);
    await append(writer, call(3));
    expect(world.clock.pending).toEqual([LOOK_MS - 10, CHECKPOINT_MS - 10]);
    await writer.close();
    expect(world.clock.pending).toEqual([]);
  });

  test("is no checkpoint once all is signed", async () => {
    const writer = await world.open({ checkpointRecords: 1 });
    await append(writer, call(0));
    await until(() => checkpoints().length === 2);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect(world.clock.pending).toEqual([LOOK_MS]);
    await writer.close();
  });

  test("is the rest of commitMs, rounded up, and nothing longer ago", async () => {
    const writer = await world.open({ commitMs: 5 });
    world.clock.advance(5);
    await append(writer, call(0));
    world.clock.advance(2);
    writer.append(call(1), () => undefined);
    await until(() => world.clock.pending.length === 3);
    expect(world.clock.pending[0]).toBe(3);
    world.clock.advance(3);
    await until(() => world.types().filter((type) => type === "LLM_CALL").length === 2);
    await writer.close();
  });
});

test("much at once is committed at once, in a pause and though nobody waits for it", async () => {
  const writer = await world.open({ commitMs: 5 });
  world.clock.advance(5);
  await append(writer, call(0));
  const calls = (): number => world.types().filter((type) => type === "LLM_CALL").length;
  const half = { type: "LLM_CALL", fields: { text: "x".repeat(33_000) } };
  writer.append(half, () => undefined);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(calls()).toBe(1);
  writer.append(half);
  await until(() => calls() === 3);
  world.clock.advance(5);
  writer.append(half);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect(calls()).toBe(3);
  writer.append(half);
  await until(() => calls() === 5);
  await writer.close();
});

test("a commit's seconds are measured, from its begin to its end on the disk", async () => {
  const writer = await world.open();
  const sum = async (): Promise<number> => {
    const metric = await world.registry.getSingleMetric("svc_audit_commit_seconds")?.get();
    const found = metric?.values.find(
      (value) => "metricName" in value && String(value.metricName).endsWith("_sum"),
    );
    return found?.value ?? Number.NaN;
  };
  expect(await sum()).toBe(0);
  const gate = Promise.withResolvers<void>();
  world.files.gate = gate.promise;
  const { writes } = world.files;
  const appended = append(writer, call(0));
  await until(() => world.files.writes > writes);
  world.clock.advance(500);
  gate.resolve();
  expect(await appended).toBe("committed");
  expect(await sum()).toBe(0.5);
  await writer.close();
});

describe("checkpoints", () => {
  test("after so many records, after so long, at a start and at the end; each in the log", async () => {
    const writer = await world.open({ checkpointRecords: 10, checkpointMs: 1000 });
    for (let i = 0; i < 10; i++) await append(writer, call(i));
    await until(() => checkpoints().length === 2);
    await append(writer, call(10));
    world.clock.advance(999);
    expect(checkpoints()).toHaveLength(2);
    world.clock.advance(1);
    await until(() => checkpoints().length === 3);
    // There is nothing new to sign.
    world.clock.advance(100_000);
    await append(writer, call(11));
    await writer.close();
    const signed = checkpoints().map((line) => parseCheckpoint(line));
    expect(signed.map((checkpoint) => [checkpoint?.n, checkpoint?.seq, checkpoint?.final])).toEqual(
      [
        [1, 2, false],
        [2, 12, false],
        [3, 13, false],
        [4, 15, true],
      ],
    );
    expect(
      world.logged
        .filter(({ msg }) => msg === "audit checkpoint")
        .map(({ chain, seq, hash }) => [chain, seq, hash]),
    ).toEqual(signed.map((checkpoint) => ["gw", checkpoint?.seq, checkpoint?.hash]));
  });

  test("the key is this user's alone, the public key is beside the chain and in its first record", async () => {
    await world.write(0);
    expect(statSync(world.keyFile).mode & 0o777).toBe(0o600);
    expect(world.records()[0]?.fields["publicKey"]).toBe(
      readFileSync(world.path("audit.pub"), "utf8"),
    );
    chmodSync(world.keyFile, 0o640);
    await expect(world.open()).rejects.toThrow("chmod 600");
  });

  test("another key does not go on with the chain", async () => {
    await world.write(1);
    rmSync(world.keyFile);
    await expect(world.open()).rejects.toThrow("another public key");
    rmSync(world.path("audit.pub"));
    await expect(world.open()).rejects.toThrow("signed with another key");
    writeFileSync(world.keyFile, "nothing", { mode: 0o600 });
    await expect(world.open()).rejects.toThrow("not a private key");
  });
});

describe("segments", () => {
  test("rotate, and each names what it follows", async () => {
    await world.write(50, { segmentBytes: 4000, checkpointRecords: 7 });
    expect(existsSync(world.path("000004.jsonl"))).toBe(true);
    expect(world.verify()).toMatchObject({ fault: undefined, unsigned: 0, closed: true });
    const ties = world.records().filter(({ type }) => type === "CHAIN.SEGMENT");
    expect(ties[0]?.fields).toMatchObject({
      previous: "000001.jsonl",
      lastSeq: (ties[0]?.seq ?? 0) - 1,
      lastHash: ties[0]?.prev,
    });
    // Each end of a segment is signed.
    const signed = checkpoints().map((line) => parseCheckpoint(line)?.seq);
    for (const { seq } of ties) expect(signed).toContain(seq - 1);
  });

  test("a start goes on in the last one", async () => {
    await world.write(20, { segmentBytes: 4000 });
    await world.write(20, { segmentBytes: 4000 });
    expect(world.types().filter((type) => type === "CHAIN.OPENED")).toHaveLength(2);
    expect(world.verify()).toMatchObject({ fault: undefined, starts: 2 });
  });

  test("an empty one, begun by a process that was killed, is used", async () => {
    await world.write(3);
    writeFileSync(world.path("000002.jsonl"), "");
    await world.write(1);
    expect(world.verify()).toMatchObject({ fault: undefined, segments: 2 });
  });
});

describe("starts", () => {
  test("one living writer a chain", async () => {
    const writer = await world.open();
    expect(livingWriter(path.join(world.dir, "gw"))).toBe(process.pid);
    await expect(world.open()).rejects.toThrow(`written by process ${process.pid}`);
    const other = await world.open({ writer: "other" });
    await other.close();
    await writer.close();
    expect(livingWriter(path.join(world.dir, "gw"))).toBeUndefined();
  });

  test.each([
    ["whose process is gone", (mine: string) => mine.replace(/ \d+ (\d+)$/, " 4194304 $1")],
    ["whose pid another process has now", (mine: string) => mine.replace(/\d+$/, "1")],
    ["of before the machine started", (mine: string) => mine.replace(/^\S+/, "00000000-0000")],
    ["that is not one", () => "garbage"],
  ])("a lock %s is taken over", async (_name, edit) => {
    const writer = await world.open();
    const mine = readFileSync(world.path("writer.lock"), "utf8").trim();
    await writer.close();
    expect(edit(mine)).not.toBe(mine);
    writeFileSync(world.path("writer.lock"), `${edit(mine)}\n`);
    await world.write(1);
    expect(world.types()).toContain("CHAIN.OPENED");
  });

  test("does not go on from a chain whose end was cut off or rewritten", async () => {
    await world.write(10);
    const file = world.path("000001.jsonl");
    const text = readFileSync(file, "utf8");
    truncateSync(file, text.lastIndexOf("\n", text.length - 2) + 1);
    await expect(world.open()).rejects.toThrow("ends at record 12, but record 13 was signed");
    rmSync(file);
    await expect(world.open()).rejects.toThrow("ends at record 0");
    expect(existsSync(world.path("writer.lock"))).toBe(false);
  });

  test("a name that leads elsewhere is refused; an unwritable folder is told", async () => {
    await expect(world.open({ writer: "../x" })).rejects.toThrow("is not valid as a folder name");
    writeFileSync(world.dir, "");
    await expect(world.open()).rejects.toThrow("cannot be created (ENOTDIR)");
  });

  test("a start that cannot write says so and leaves no lock", async () => {
    world.files.writeError = "ENOSPC";
    await expect(world.open()).rejects.toThrow("cannot be written (ENOSPC)");
    expect(existsSync(world.path("writer.lock"))).toBe(false);
    expect(world.clock.pending).toEqual([]);
    world.files.writeError = undefined;
    await world.write(1);
    expect(world.verify().fault).toBeUndefined();
  });
});
