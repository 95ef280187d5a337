/** The file of resolved providers, as it changes. */
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeClock } from "../platform/testing.ts";
import { type LoadedSpecs, loadSpecs, watchSpecs } from "./specs.ts";
import { eventually } from "../../e2e/support/wait.ts";

const POLL_MS = 1_000;

let dir: string;
let file: string;
let clock: FakeClock;
let changes: LoadedSpecs[];
let failures: string[];
let watched: { close(): void } | undefined;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-specs-"));
  file = path.join(dir, "providers.json");
  clock = new FakeClock();
  [changes, failures, watched] = [[], [], undefined];
});
afterEach(() => {
  watched?.close();
  rmSync(dir, { recursive: true, force: true });
});

const specs = (workload: string): string =>
  JSON.stringify({ version: 1, workload: `default/${workload}`, bindings: [] });

/** Replaces the file, as the kubelet does: a new file under the old name. */
function put(text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

async function watch(): Promise<void> {
  watched = await watchSpecs({
    file,
    clock,
    pollMs: POLL_MS,
    onChange: (loaded) => changes.push(loaded),
    onBroken: (error) => failures.push(error.message),
  });
  await looked();
}

/** Resolves when the file has been looked at, and the next look is set. */
async function looked(): Promise<void> {
  await eventually(() => expect(clock.pending).toEqual([POLL_MS]));
}

async function poll(): Promise<void> {
  clock.advance(POLL_MS);
  await looked();
}

const workloads = (): string[] => changes.map((loaded) => loaded.specs.workload);

describe("loading", () => {
  test("gives the specs, and a version that is that of the content", async () => {
    put(specs("a"));
    const first = await loadSpecs(file);
    expect(first.specs).toEqual({ version: 1, workload: "default/a", bindings: [] });
    expect(first.version).toMatch(/^[0-9a-f]{16}$/);
    put(specs("a"));
    expect(await loadSpecs(file)).toEqual(first);
    put(specs("b"));
    expect((await loadSpecs(file)).version).not.toBe(first.version);
  });

  test.each([
    ["what is not JSON", "{", "is not JSON"],
    ["another version", '{"version":2,"workload":"default/a","bindings":[]}', "version: "],
    [
      "a binding that does not fit",
      '{"version":1,"workload":"default/a","bindings":[1]}',
      "bindings[0]: ",
    ],
  ])("tells the place of %s", async (_name, text, message) => {
    put(text);
    await expect(loadSpecs(file)).rejects.toThrow(`${file}: ${message}`);
  });
});

describe("watching", () => {
  test("tells the specs at the start, and each change once", async () => {
    put(specs("a"));
    await watch();
    await poll();
    expect(workloads()).toEqual(["default/a"]);
    put(specs("b"));
    await poll();
    await poll();
    expect(workloads()).toEqual(["default/a", "default/b"]);
    expect(failures).toEqual([]);
  });

  test("does not tell a file that was replaced by the same", async () => {
    put(specs("a"));
    await watch();
    put(specs("a"));
    await poll();
    expect(changes).toHaveLength(1);
  });

  test("tells a change of what a symbolic link points to", async () => {
    for (const name of ["a", "b"]) writeFileSync(path.join(dir, name), specs(name));
    symlinkSync(path.join(dir, "a"), file);
    await watch();
    symlinkSync(path.join(dir, "b"), `${file}.new`);
    renameSync(`${file}.new`, file);
    await poll();
    expect(workloads()).toEqual(["default/a", "default/b"]);
  });

  test("tells each broken version once, and goes on", async () => {
    put(specs("a"));
    await watch();
    put("{");
    await poll();
    await poll();
    expect(failures).toEqual([`${file}: is not JSON`]);
    put("[");
    await poll();
    expect(failures).toHaveLength(2);
    put(specs("b"));
    await poll();
    expect(workloads()).toEqual(["default/a", "default/b"]);
  });

  test("tells once that the file is missing, and what it is when it is back", async () => {
    await watch();
    await poll();
    expect(failures).toHaveLength(1);
    put(specs("a"));
    await poll();
    rmSync(file);
    await poll();
    expect(failures).toHaveLength(2);
    put(specs("a"));
    await poll();
    // The version in force is still that one.
    expect(workloads()).toEqual(["default/a"]);
  });

  test("ends when it is closed", async () => {
    put(specs("a"));
    await watch();
    watched?.close();
    expect(clock.pending).toEqual([]);
  });

  test("tells nothing after it is closed, while it reads", async () => {
    put(specs("a"));
    await watch();
    put(specs("b"));
    clock.advance(POLL_MS);
    watched?.close();
    // Another watch reads the same file later, and so after the first one.
    await watch();
    expect(workloads()).toEqual(["default/a", "default/b"]);
  });
});
