import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "./clock.ts";
import { StateFolder } from "./state-folder.ts";

let parent: string;
let dir: string;
let folder: StateFolder;

beforeEach(() => {
  parent = mkdtempSync(path.join(os.tmpdir(), "svc-state-"));
  dir = path.join(parent, "tokens");
  mkdirSync(dir, { mode: 0o700 });
  folder = StateFolder.open(dir, systemClock);
});

afterEach(() => {
  folder.close();
  rmSync(parent, { recursive: true });
});

const never = new AbortController().signal;

describe("files", () => {
  test("are replaced as a whole, and only their owner can read them", () => {
    expect(folder.read("a.json")).toBeUndefined();
    folder.write("a.json", "one");
    folder.write("a.json", "two");
    expect(folder.read("a.json")).toBe("two");
    expect(readdirSync(dir)).toEqual(["a.json"]);
    expect(statSync(path.join(dir, "a.json")).mode & 0o777).toBe(0o600);
  });

  test("are not written through a link, nor read through one", () => {
    const outside = path.join(parent, "outside");
    writeFileSync(outside, "outside");
    symlinkSync(outside, path.join(dir, "a.json"));
    expect(() => folder.read("a.json")).toThrow("ELOOP");
    folder.write("a.json", "mine");
    expect(readFileSync(outside, "utf8")).toBe("outside");
    expect(folder.read("a.json")).toBe("mine");
  });

  test("stay in the opened folder, whatever its name leads to by now", () => {
    const elsewhere = path.join(parent, "elsewhere");
    mkdirSync(elsewhere);
    renameSync(dir, path.join(parent, "moved"));
    symlinkSync(elsewhere, dir);
    folder.write("a.json", "mine");
    expect(readdirSync(elsewhere)).toEqual([]);
    expect(readFileSync(path.join(parent, "moved/a.json"), "utf8")).toBe("mine");
  });

  test.each(["../a", "a/b", "", ".a", "a\0", "a".repeat(300)])("%j is no name", (name) => {
    expect(() => folder.read(name)).toThrow("not a name of a state file");
    expect(() => folder.write(name, "")).toThrow("not a name of a state file");
  });

  test("that are no plain, small files are not read", () => {
    mkdirSync(path.join(dir, "folder"));
    writeFileSync(path.join(dir, "large"), "x".repeat(65 * 1024));
    for (const name of ["folder", "large"])
      expect(() => folder.read(name)).toThrow("is not a file of this service");
  });

  test("a failed write leaves the old content, and nothing else", () => {
    folder.write("a.json", "old");
    mkdirSync(path.join(dir, "b.json/x"), { recursive: true });
    expect(() => folder.write("b.json", "new")).toThrow();
    expect(readdirSync(dir)).toEqual(["a.json", "b.json"]);
  });
});

describe("locks", () => {
  test("let one in at a time, also from another process's folder", async () => {
    const other = StateFolder.open(dir, systemClock);
    const order: string[] = [];
    const step = (name: string, at: StateFolder): Promise<void> =>
      at.locked("a.json", never, async () => {
        order.push(`${name} in`);
        await new Promise((resolve) => setImmediate(resolve));
        order.push(`${name} out`);
      });
    await Promise.all([step("1", folder), step("2", other), step("3", folder)]);
    other.close();
    expect(order.filter((_, i) => i % 2 === 0).map((each) => each.replace("in", "out"))).toEqual(
      order.filter((_, i) => i % 2 === 1),
    );
    expect(readdirSync(dir)).toEqual([]);
  });

  test("are released by an error", async () => {
    const failing = folder.locked("a.json", never, () => Promise.reject(new Error("no")));
    await expect(failing).rejects.toThrow("no");
    await expect(folder.locked("a.json", never, () => Promise.resolve(1))).resolves.toBe(1);
  });

  test("of a process that has died are taken over, others are waited for until the signal", async () => {
    const lock = path.join(dir, "a.json.lock");
    writeFileSync(lock, "");
    const aborted = AbortSignal.abort(new Error("too late"));
    await expect(folder.locked("a.json", aborted, () => Promise.resolve(1))).rejects.toThrow(
      "too late",
    );
    const old = Date.now() / 1000 - 120;
    utimesSync(lock, old, old);
    await expect(folder.locked("a.json", never, () => Promise.resolve(1))).resolves.toBe(1);
  });
});

describe("a folder is refused", () => {
  test("that is open to others", () => {
    chmodSync(dir, 0o750);
    expect(() => StateFolder.open(dir, systemClock)).toThrow(`chmod 700 ${dir}`);
  });

  test("that does not exist, that is a link, or a file", () => {
    const link = path.join(parent, "link");
    symlinkSync(dir, link);
    const file = path.join(parent, "file");
    writeFileSync(file, "");
    linkSync(file, path.join(parent, "other"));
    for (const each of [path.join(parent, "none"), link, file])
      expect(() => StateFolder.open(each, systemClock)).toThrow();
  });
});
