import { readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { AppendOutcome } from "../event.ts";
import { append, call, logged, until, AuditWorld } from "../testing.ts";

let world: AuditWorld;
beforeEach(() => {
  world = new AuditWorld();
});
afterEach(() => world.remove());

const gaps = (): readonly unknown[] =>
  world
    .records()
    .filter(({ type }) => type === "CHAIN.GAP")
    .map(({ fields }) => fields);

describe("a disk that is full", () => {
  test("refuse: callers fail, the gap is told, the chain goes on", async () => {
    const writer = await world.open();
    await append(writer, call(0));
    world.files.room = 100;
    const outcomes = await Promise.all([
      append(writer, call(1)),
      append(writer, call(2)),
      append(writer, { type: "TOOL_CALL", fields: {} }),
    ]);
    expect(outcomes).toEqual(["failed", "failed", "failed"]);
    expect(writer.refusing).toBe(true);
    expect(await world.metric("svc_audit_up")).toBe(0);
    expect(await append(writer, call(3))).toBe("failed");
    // The half-written bytes stay until the next try, which finds the disk full again.
    world.files.room = 0;
    world.clock.advance(100);
    await until(
      () => world.logged.filter(({ msg }) => msg === "audit chain cannot be written").length === 2,
    );
    expect(writer.refusing).toBe(true);
    world.files.room = Number.POSITIVE_INFINITY;
    world.clock.advance(200);
    await until(() => !writer.refusing);
    expect(await append(writer, call(4))).toBe("committed");
    await writer.close();
    expect(gaps()).toEqual([
      {
        lost: 4,
        byType: { LLM_CALL: 3, TOOL_CALL: 1 },
        since: "2026-01-31T12:00:00.000Z",
        until: "2026-01-31T12:00:00.300Z",
        reason: "ENOSPC",
      },
    ]);
    expect(await world.metric("svc_audit_lost_total")).toBe(4);
    expect(world.verify()).toMatchObject({ fault: undefined, gaps: 1, lost: 4, closed: true });
  });

  test("continue: work goes on, what is lost is counted", async () => {
    const writer = await world.open({ onFailure: "continue" });
    world.files.writeError = "EIO";
    expect(await append(writer, call(1))).toBe("lost");
    expect(await append(writer, call(2))).toBe("lost");
    expect(writer.refusing).toBe(false);
    world.files.writeError = undefined;
    world.clock.advance(100);
    await until(() => gaps().length === 1);
    expect(await append(writer, call(3))).toBe("committed");
    await writer.close();
    expect(gaps()).toMatchObject([{ lost: 2, reason: "EIO" }]);
    expect(world.verify().fault).toBeUndefined();
  });

  test("stays unused while its files cannot be opened, though writes would succeed", async () => {
    const writer = await world.open();
    const failures = (): number =>
      world.logged.filter(({ msg }) => msg === "audit chain cannot be written").length;
    world.files.writeError = "EIO";
    expect(await append(writer, call(1))).toBe("failed");
    world.files.writeError = undefined;
    world.files.openError = "EROFS";
    world.clock.advance(100);
    await until(() => failures() === 2);
    expect(writer.refusing).toBe(true);
    expect(await append(writer, call(2))).toBe("failed");
    world.files.openError = undefined;
    world.clock.advance(200);
    await until(() => !writer.refusing);
    expect(await append(writer, call(3))).toBe("committed");
    await writer.close();
    expect(gaps()).toMatchObject([{ lost: 2 }]);
    expect(world.verify()).toMatchObject({ fault: undefined, closed: true });
  });

  test("tries again ever more rarely, ten seconds at most", async () => {
    const writer = await world.open({ onFailure: "continue" });
    world.files.openError = "EROFS";
    world.files.writeError = "EIO";
    await append(writer, call(1));
    const failures = (): number[] =>
      world.logged
        .filter(({ msg }) => msg === "audit chain cannot be written")
        .map(({ retryMs }) => Number(retryMs));
    for (let i = 0; i < 9; i++) {
      const before = failures().length;
      await until(() => world.clock.pending.length > 0);
      world.clock.advance(failures().at(-1) ?? 0);
      await until(() => failures().length > before);
    }
    expect(failures()).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
    await writer.close();
  });

  test("at the end of a segment: the next one is begun again", async () => {
    const writer = await world.open({ segmentBytes: 2000, onFailure: "continue" });
    world.files.only = /000002/;
    world.files.room = 50;
    // Too long for this segment, although the following record would still fit.
    expect(await append(writer, { type: "LLM_CALL", fields: { pad: "x".repeat(1500) } })).toBe(
      "lost",
    );
    world.files.room = Number.POSITIVE_INFINITY;
    world.clock.advance(100);
    await until(() => gaps().length === 1);
    await append(writer, call(1));
    await writer.close();
    expect(world.types()).toEqual([
      "CHAIN.START",
      "CHAIN.OPENED",
      "CHAIN.SEGMENT",
      "CHAIN.GAP",
      "LLM_CALL",
      "CHAIN.CLOSED",
    ]);
    expect(world.verify()).toMatchObject({ fault: undefined, lost: 1, segments: 2 });
  });

  test("for checkpoints alone: refused until it is signed, nothing is lost", async () => {
    const writer = await world.open({ checkpointRecords: 2 });
    world.files.only = /checkpoints/;
    world.files.room = 10;
    expect(await append(writer, call(0))).toBe("committed");
    expect(await append(writer, call(1))).toBe("committed");
    await until(() => writer.refusing);
    world.files.room = Number.POSITIVE_INFINITY;
    world.clock.advance(100);
    await until(() => !writer.refusing);
    await writer.close();
    expect(gaps()).toEqual([]);
    expect(world.verify()).toMatchObject({ fault: undefined, unsigned: 0 });
  });

  test("at the end: what is open is told in the log, the next start goes on", async () => {
    const writer = await world.open();
    world.files.writeError = "EIO";
    expect(await append(writer, call(0))).toBe("failed");
    await writer.close();
    expect(world.logged.at(-1)).toMatchObject({
      msg: "audit chain cannot be written",
      reason: "EIO",
    });
    expect(world.clock.pending).toEqual([]);
    world.files.writeError = undefined;
    await world.write(1);
    expect(world.types()).toContain("CHAIN.RESUMED");
    expect(world.verify().fault).toBeUndefined();
  });

  test("that is mended just before the end: the gap is told", async () => {
    const writer = await world.open();
    world.files.writeError = "EIO";
    await append(writer, call(0));
    world.files.writeError = undefined;
    await writer.close();
    expect(gaps()).toMatchObject([{ lost: 1 }]);
    expect(world.verify()).toMatchObject({ fault: undefined, closed: true });
  });
});

test("a disk that hangs: what waits has a bound, what is above it is counted", async () => {
  const writer = await world.open({ onFailure: "continue" });
  let go = (): void => undefined;
  world.files.gate = new Promise((resolve) => {
    go = resolve;
  });
  const outcomes: AppendOutcome[] = [];
  const payload = "x".repeat(1_000_000);
  for (let i = 0; i < 40; i++)
    writer.append({ type: "LLM_CALL", fields: { payload } }, (outcome) => outcomes.push(outcome));
  expect(writer.state).toBe("failing");
  await until(() => outcomes.length > 0);
  const lost = outcomes.length;
  expect(outcomes.every((outcome) => outcome === "lost")).toBe(true);
  go();
  await until(() => outcomes.length === 40);
  await until(() => gaps().length === 1);
  expect(writer.state).toBe("ok");
  await writer.close();
  expect(gaps()).toMatchObject([{ lost, reason: "backlog" }]);
  expect(world.verify()).toMatchObject({ fault: undefined, lost });
});

test("part of a write is cut off again, not left in the chain", async () => {
  const writer = await world.open();
  const size = readFileSync(world.path("000001.jsonl")).length;
  world.files.room = 150;
  await append(writer, call(0));
  expect(readFileSync(world.path("000001.jsonl"))).toHaveLength(size + 150);
  world.files.room = Number.POSITIVE_INFINITY;
  world.clock.advance(100);
  await until(() => !writer.refusing);
  await writer.close();
  expect(world.types().filter((type) => type !== "CHAIN.GAP")).toEqual([
    "CHAIN.START",
    "CHAIN.OPENED",
    "CHAIN.CLOSED",
  ]);
  expect(world.verify()).toMatchObject({ fault: undefined, torn: 0 });
});

describe("a failure", () => {
  const failures = (): readonly { readonly [key: string]: unknown }[] =>
    logged(world, "audit chain cannot be written");
  const recoveries = (): number => logged(world, "audit chain can be written again").length;

  test("is told with its records and the time of the next try; its end is told once", async () => {
    const writer = await world.open();
    world.files.writeError = "EIO";
    await Promise.all([append(writer, call(0)), append(writer, call(1))]);
    expect(failures()).toMatchObject([
      { chain: "gw", reason: "EIO", records: 2, onFailure: "refuse", retryMs: 100 },
    ]);
    world.files.writeError = undefined;
    world.clock.advance(99);
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    expect([writer.state, recoveries()]).toEqual(["failing", 0]);
    world.clock.advance(1);
    await until(() => writer.state === "ok");
    expect(await world.metric("svc_audit_up")).toBe(1);
    await append(writer, call(2));
    await writer.close();
    expect(recoveries()).toBe(1);
    expect(logged(world, "audit chain can be written again")).toMatchObject([{ chain: "gw" }]);
  });

  test("after a recovery and a commit is tried again soon, like the first", async () => {
    const writer = await world.open({ onFailure: "continue" });
    for (let round = 0; round < 3; round++) {
      world.files.writeError = "EIO";
      expect(await append(writer, call(round))).toBe("lost");
      expect(failures().at(-1)).toMatchObject({ retryMs: 100 });
      world.files.writeError = undefined;
      world.clock.advance(100);
      await until(() => writer.state === "ok");
      expect(await append(writer, call(round))).toBe("committed");
    }
    await writer.close();
    expect(gaps()).toHaveLength(3);
    expect(world.verify()).toMatchObject({ fault: undefined, gaps: 3, lost: 3 });
  });

  test("of the record of the gap itself loses no count", async () => {
    const writer = await world.open({ onFailure: "continue" });
    world.files.writeError = "EIO";
    await append(writer, call(0));
    world.clock.advance(100);
    await until(() => failures().length === 2);
    expect(await append(writer, { type: "TOOL_CALL", fields: {} })).toBe("lost");
    world.clock.advance(200);
    await until(() => failures().length === 3);
    world.files.writeError = undefined;
    world.clock.advance(400);
    await until(() => writer.state === "ok");
    await writer.close();
    expect(gaps()).toMatchObject([{ lost: 2, byType: { LLM_CALL: 1, TOOL_CALL: 1 } }]);
    expect(await world.metric("svc_audit_lost_total")).toBe(2);
    expect(world.verify()).toMatchObject({ fault: undefined, gaps: 1, lost: 2, closed: true });
  });

  test("of a checkpoint alone is over with the next try, which signs", async () => {
    const writer = await world.open({ checkpointMs: 1_000 });
    await append(writer, call(0));
    world.files.only = /checkpoints/;
    world.files.writeError = "EIO";
    world.clock.advance(1_000);
    await until(() => failures().length === 1);
    expect(failures()).toMatchObject([{ reason: "EIO", records: 0 }]);
    world.files.writeError = undefined;
    world.clock.advance(100);
    await until(() => logged(world, "audit checkpoint").length === 2);
    expect(logged(world, "audit checkpoint").at(-1)).toMatchObject({ seq: 3, checkpoint: 2 });
    expect(recoveries()).toBe(1);
    await writer.close();
    expect(gaps()).toEqual([]);
  });

  test("at the end is told to those who still append, by what was agreed with them", async () => {
    const writer = await world.open({ onFailure: "continue" });
    await writer.close();
    expect(await append(writer, call(0))).toBe("lost");
    expect(writer.refusing).toBe(false);
    expect(world.clock.pending).toEqual([]);
  });
});
