import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../../platform/testing.ts";
import { systemFiles } from "../chain/files.ts";
import { append, call, FailingFiles, logged, until, AuditWorld } from "../testing.ts";
import { type SpaceOptions, VolumeWatch } from "./volume.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
const GIB = 1024 * MIB;

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-volume-"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

interface Watched {
  readonly watch: VolumeWatch;
  readonly files: FailingFiles;
  readonly clock: FakeClock;
  readonly captured: CapturedLog;
  readonly registry: Registry;
}

function watched(space: SpaceOptions = {}): Watched {
  const files = new FailingFiles();
  const clock = new FakeClock();
  const captured = new CapturedLog();
  const registry = new Registry();
  const watch = new VolumeWatch({ dir, space, files, clock, log: captured.log, registry });
  return { watch, files, clock, captured, registry };
}

describe("the state of a volume", () => {
  test.each<[string, SpaceOptions, number, number, string]>([
    ["a large one, by the defaults", {}, 1 * GIB, 500 * GIB, "ok"],
    ["below a GiB of a large one", {}, 1 * GIB - 1, 500 * GIB, "low"],
    ["at 256 MiB of a large one", {}, 256 * MIB, 500 * GIB, "low"],
    ["below 256 MiB of a large one", {}, 256 * MIB - 1, 500 * GIB, "full"],
    ["a tenth of a small one", {}, 100 * MIB, 1000 * MIB, "ok"],
    ["below a tenth of a small one", {}, 100 * MIB - 1, 1000 * MIB, "low"],
    ["below a fiftieth of a small one", {}, 20 * MIB - 1, 1000 * MIB, "full"],
    ["without a byte left", {}, 0, 1000 * MIB, "full"],
    ["that has no size", {}, 0, 0, "ok"],
    ["by bytes of its own", { low: { kind: "bytes", bytes: 500 } }, 499, 1000, "low"],
    ["by bytes of its own, full", { full: { kind: "bytes", bytes: 10 } }, 9, 1000, "full"],
    ["by a part of its own", { low: { kind: "fraction", fraction: 0.5 } }, 499, 1000, "low"],
    [
      "by a part of its own, full",
      { full: { kind: "fraction", fraction: 0.5 } },
      499,
      1000,
      "full",
    ],
    [
      "by the greater one, where they are the wrong way round",
      { low: { kind: "bytes", bytes: 10 }, full: { kind: "bytes", bytes: 100 } },
      50,
      1000,
      "full",
    ],
  ])("%s", async (_name, space, free, total, expected) => {
    const { watch, files } = watched(space);
    files.space = { free, total };
    await watch.look();
    expect(watch.state).toBe(expected);
  });

  test("counts what was written since it was measured", async () => {
    const { watch, files } = watched({ full: { kind: "bytes", bytes: 100 } });
    files.space = { free: 1_000, total: 10_000 };
    await watch.look();
    watch.wrote(901);
    expect(watch.state).toBe("full");
    expect(watch.status.freeBytes).toBe(99);
    watch.wrote(1_000_000);
    expect(watch.status.freeBytes).toBe(0);
    // The next measurement includes it.
    await watch.look();
    expect(watch.status.freeBytes).toBe(1_000);
  });

  test("is not known where it cannot be measured: nothing is held back for that", async () => {
    const { watch, files, captured } = watched();
    files.space = { free: 0, total: 1_000 };
    await watch.look();
    expect(watch.state).toBe("full");
    files.spaceError = "EIO";
    await watch.look();
    await watch.look();
    expect(watch.state).toBe("ok");
    expect(watch.status.freeBytes).toBeUndefined();
    const told = captured.lines.filter(({ msg }) => msg === "space cannot be measured");
    expect(told).toMatchObject([{ reason: "EIO" }]);
  });

  test("of a real one", async () => {
    const { bsize, blocks } = statfsSync(dir);
    const { free, total } = await systemFiles.volume(dir);
    expect(total).toBe(bsize * blocks);
    expect(free).toBeGreaterThan(0);
    expect(free).toBeLessThanOrEqual(total);
  });
});

describe("the bound of all chains", () => {
  const write = (chain: string, name: string, bytes: number): void => {
    mkdirSync(path.join(dir, chain), { recursive: true });
    writeFileSync(path.join(dir, chain, name), "x".repeat(bytes));
  };

  test("is of all of them, sidecars' too: low at 90 %, full at 98 %", async () => {
    const { watch } = watched({ maxBytes: 10_000 });
    write("gateway", "000001.jsonl", 4_000);
    write("gateway", "checkpoints.jsonl", 1_000);
    write("run-1", "000001.jsonl", 3_999);
    await watch.look();
    expect([watch.state, watch.status.chainsBytes]).toEqual(["ok", 8_999]);
    watch.wrote(1);
    expect(watch.state).toBe("low");
    watch.wrote(799);
    expect(watch.state).toBe("low");
    watch.wrote(1);
    expect(watch.state).toBe("full");
  });

  test("has room again as soon as segments are archived", async () => {
    const { watch } = watched({ maxBytes: 10_000 });
    write("gateway", "000001.jsonl", 9_000);
    write("gateway", "000002.jsonl", 1_000);
    await watch.look();
    expect(watch.state).toBe("full");
    rmSync(path.join(dir, "gateway/000001.jsonl"));
    await watch.look();
    expect([watch.state, watch.status.chainsBytes]).toEqual(["ok", 1_000]);
  });

  test("without one, only the volume's state counts", async () => {
    const { watch } = watched();
    write("gateway", "000001.jsonl", 1_000_000);
    await watch.look();
    expect(watch.state).toBe("ok");
  });
});

test("is looked at once a second, told of in the log when it changes, and shown in metrics", async () => {
  const { watch, files, clock, captured, registry } = watched();
  files.space = { free: 10, total: 100 };
  const states: string[] = [];
  await watch.start((state) => states.push(state));
  files.space = { free: 1, total: 100 };
  await clock.advanceAndSettle(1_000);
  expect(await registry.metrics()).toMatch(
    /svc_audit_space\{state="ok"\} 0\nsvc_audit_space\{state="low"\} 0\nsvc_audit_space\{state="full"\} 1/,
  );
  expect(await registry.metrics()).toContain("svc_audit_free_bytes 1\n");
  expect(await registry.metrics()).toContain("svc_audit_chains_bytes 0\n");
  await clock.advanceAndSettle(3_000);
  files.space = { free: 50, total: 100 };
  await clock.advanceAndSettle(1_000);
  expect(states).toEqual(["ok", "full", "full", "full", "full", "ok"]);
  expect(captured.lines.map(({ level, state }) => [level, state])).toEqual([
    [40, "full"],
    [30, "ok"],
  ]);
  watch.stop();
  expect(clock.pending).toEqual([]);
});

test("what is written while it is measured is counted, and what was written before is not", async () => {
  const { watch, files } = watched({ maxBytes: 100_000 });
  const measured = (): void => watch.wrote(7);
  files.volume = () => {
    measured();
    return Promise.resolve({ free: 1_000, total: 2_000 });
  };
  files.used = () => {
    measured();
    return Promise.resolve(500);
  };
  watch.wrote(10_000);
  await watch.look();
  // Both writes are taken from the volume's free bytes; the folder's size contains the second.
  expect(watch.status).toEqual({ freeBytes: 1_000 - 14, chainsBytes: 507 });
});

describe("the size of all chains", () => {
  /** Returns after which of so many looks the folder was measured. */
  async function measuredAt(space: SpaceOptions, bytes: number, looks: number): Promise<number[]> {
    const { watch, files } = watched(space);
    const at: number[] = [];
    let look = 1;
    files.used = () => {
      at.push(look);
      return Promise.resolve(bytes);
    };
    for (; look <= looks; look += 1) await watch.look();
    return at;
  }

  test.each<[name: string, space: SpaceOptions, bytes: number, at: number[]]>([
    ["once a minute", {}, 1_000, [1, 61, 121]],
    ["once a minute, far from its bound", { maxBytes: 2_000 }, 1_000, [1, 61, 121]],
  ])("is measured %s", async (_name, space, bytes, at) => {
    expect(await measuredAt(space, bytes, 125)).toEqual(at);
  });

  test("is measured each time near its bound", async () => {
    expect(await measuredAt({ maxBytes: 1_000 }, 900, 4)).toEqual([1, 2, 3, 4]);
    expect(await measuredAt({ maxBytes: 1_000 }, 899, 4)).toEqual([1]);
  });

  test("is not known before, and counted in between", async () => {
    const { watch, files, registry } = watched();
    files.used = () => Promise.resolve(1_000);
    watch.wrote(5);
    expect(watch.status).toEqual({ freeBytes: undefined, chainsBytes: undefined });
    expect(await registry.metrics()).toMatch(
      /svc_audit_free_bytes Nan\n[^]*svc_audit_chains_bytes Nan\n/,
    );
    await watch.look();
    watch.wrote(30);
    expect(watch.status.chainsBytes).toBe(1_030);
    expect(await registry.metrics()).toContain("svc_audit_chains_bytes 1030\n");
  });
});

test("that it cannot be measured is told again when it could be in between", async () => {
  const { watch, files, captured } = watched();
  for (const error of ["EIO", "EIO", undefined, "EACCES"]) {
    files.spaceError = error;
    await watch.look();
  }
  expect(captured.lines.map(({ dir: of, reason }) => [of, reason])).toEqual([
    [dir, "EIO"],
    [dir, "EACCES"],
  ]);
});

test("each change is told with its figures, and no state twice", async () => {
  const { watch, files, captured } = watched({ low: { kind: "bytes", bytes: 100 } });
  for (const free of [1_000, 99, 98, 1, 100, 101]) {
    files.space = { free, total: 1_000 };
    await watch.look();
  }
  expect(captured.lines).toMatchObject([
    { level: 40, dir, state: "low", freeBytes: 99, chainsBytes: 0 },
    { level: 40, dir, state: "full", freeBytes: 1 },
    { level: 30, dir, state: "ok", freeBytes: 100 },
  ]);
});

test("is looked at no more when it was stopped during a look", async () => {
  const { watch, files, clock } = watched();
  const { promise, resolve } = Promise.withResolvers<{ free: number; total: number }>();
  files.volume = () => promise;
  const starting = watch.start(() => undefined);
  watch.stop();
  resolve({ free: 1, total: 1 });
  await starting;
  expect(clock.pending).toEqual([]);
});

describe("a writer on a volume that is short of space", () => {
  let world: AuditWorld;
  beforeEach(() => {
    world = new AuditWorld();
  });
  afterEach(() => world.remove());

  const FULL = { free: 1 * MIB, total: 1 * GIB };
  const LOW = { free: 50 * MIB, total: 1 * GIB };
  const PLENTY = { free: 500 * MIB, total: 1 * GIB };

  const look = async (): Promise<void> => {
    const { looks } = world.files;
    world.clock.advance(1_000);
    await until(() => world.files.looks > looks);
    await new Promise(setImmediate);
  };

  test("full: takes no new work, and records of calls under way; nothing is lost", async () => {
    const writer = await world.open();
    expect([writer.state, writer.refusing]).toEqual(["ok", false]);
    world.files.space = FULL;
    await look();
    expect([writer.state, writer.refusing]).toEqual(["full", true]);
    expect(await append(writer, call(1))).toBe("committed");
    world.files.space = PLENTY;
    await look();
    expect([writer.state, writer.refusing]).toEqual(["ok", false]);
    expect(await append(writer, call(2))).toBe("committed");
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, gaps: 0, lost: 0, closed: true });
  });

  test("low: takes new work", async () => {
    const writer = await world.open();
    world.files.space = LOW;
    await look();
    expect([writer.state, writer.refusing]).toEqual(["low", false]);
    expect(writer.space.freeBytes).toBe(LOW.free);
    expect(writer.space.chainsBytes).toBeGreaterThan(0);
    await writer.close();
  });

  test("full from the start: that is known before anything is let through", async () => {
    world.files.space = FULL;
    const writer = await world.open();
    expect([writer.state, writer.refusing]).toEqual(["full", true]);
    await writer.close();
  });

  test("full, with onFailure continue: calls go on, and are on record as long as there is space", async () => {
    world.files.space = FULL;
    const writer = await world.open({ onFailure: "continue" });
    expect([writer.state, writer.refusing]).toEqual(["full", false]);
    expect(await append(writer, call(1))).toBe("committed");
    world.files.room = 50;
    expect(await append(writer, call(2))).toBe("lost");
    expect(writer.state).toBe("failing");
    world.files.room = Number.POSITIVE_INFINITY;
    world.files.space = PLENTY;
    await look();
    await until(() => writer.state === "ok");
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, gaps: 1, lost: 1 });
  });

  test("a write that ends in the middle: space that comes back is used at once, not at the next try", async () => {
    const writer = await world.open();
    await append(writer, call(0));
    world.files.space = FULL;
    world.files.room = 100;
    expect(await append(writer, call(1))).toBe("failed");
    await look();
    // The delay between retries reaches its maximum.
    world.files.room = 0;
    const tries = (): number => logged(world, "audit chain cannot be written").length;
    for (let i = 0; i < 8; i += 1) {
      const before = tries();
      world.clock.advance(10_000);
      await until(() => tries() > before);
    }
    expect(writer.state).toBe("failing");
    world.files.room = Number.POSITIVE_INFINITY;
    world.files.space = PLENTY;
    await look();
    await until(() => writer.state === "ok");
    expect(await append(writer, call(2))).toBe("committed");
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, gaps: 1, lost: 1, closed: true });
  });

  test("is not tried earlier while it is full, nor for room that it had all the time", async () => {
    const writer = await world.open();
    const tries = (): number => logged(world, "audit chain cannot be written").length;
    for (const space of [PLENTY, FULL]) {
      world.files.space = space;
      await look();
      world.files.writeError = "EIO";
      world.files.openError = "EIO";
      const before = tries();
      // The next try comes in ten seconds.
      if (writer.state !== "failing") expect(await append(writer, call(0))).toBe("failed");
      for (let i = 0; i < 8; i += 1) {
        const last = tries();
        world.clock.advance(10_000);
        await until(() => tries() > last);
      }
      const since = tries();
      expect(since).toBeGreaterThan(before);
      for (let i = 0; i < 3; i += 1) {
        await look();
        for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
      }
      expect(tries()).toBe(since);
    }
    world.files.writeError = undefined;
    world.files.openError = undefined;
    await writer.close();
  });

  test("a disk that takes a few bytes at a time: each record is whole, and nothing is lost", async () => {
    world.files.mostBytes = 7;
    const writer = await world.open();
    for (let i = 0; i < 20; i += 1) expect(await append(writer, call(i))).toBe("committed");
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, gaps: 0, closed: true });
    expect(world.types().filter((type) => type === "LLM_CALL")).toHaveLength(20);
  });

  test("a disk that takes a few bytes at a time and then none: the rest of the record is cut off", async () => {
    const writer = await world.open();
    world.files.mostBytes = 7;
    world.files.room = 40;
    expect(await append(writer, call(0))).toBe("failed");
    world.files.room = Number.POSITIVE_INFINITY;
    world.clock.advance(100);
    await until(() => !writer.refusing);
    expect(await append(writer, call(1))).toBe("committed");
    await writer.close();
    expect(world.verify()).toMatchObject({ fault: undefined, torn: 0, gaps: 1, lost: 1 });
  });

  test("the bound of all chains: no new work until something is archived", async () => {
    const writer = await world.open({ space: { maxBytes: 20_000 }, segmentBytes: 10_000 });
    for (let i = 0; !writer.refusing; i += 1)
      expect(await append(writer, call(i))).toBe("committed");
    expect(writer.state).toBe("full");
    rmSync(world.path("000001.jsonl"));
    await look();
    await until(() => !writer.refusing);
    expect(await append(writer, call(0))).toBe("committed");
    await writer.close();
  });

  test("is looked at no more once it is closed", async () => {
    const writer = await world.open();
    await writer.close();
    expect(world.clock.pending).toEqual([]);
  });
});
