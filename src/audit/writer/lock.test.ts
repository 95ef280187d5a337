import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LOCK } from "../chain/layout.ts";
import { livingWriter, takeLock } from "./lock.ts";

let chain: string;
const lockFile = (): string => path.join(chain, LOCK);

beforeEach(() => {
  chain = fs.mkdtempSync(path.join(tmpdir(), "svc-lock-"));
});

afterEach(() => {
  fs.rmSync(chain, { recursive: true });
});

test("a chain has one living writer, until it lets go", () => {
  expect(livingWriter(chain)).toBeUndefined();
  const release = takeLock(chain);
  expect(livingWriter(chain)).toBe(process.pid);
  expect(() => takeLock(chain)).toThrow(
    `The audit chain ${chain} is being written by process ${process.pid}`,
  );
  expect(livingWriter(chain)).toBe(process.pid);
  release();
  expect(fs.readdirSync(chain)).toEqual([]);
  takeLock(chain)();
});

test.each([
  ["of a process that has ended", (mine: string) => mine.replace(/ \d+ (\d+)$/, " 999999999 $1")],
  ["of an earlier boot", (mine: string) => mine.replace(/^\S+/, "another-boot")],
  ["of a process that had this one's number", (mine: string) => mine.replace(/\d+$/, "1")],
  ["of another pid namespace", (mine: string) => mine.replace(/pid:\[\d+\]/, "pid:[1]")],
  ["that is empty", () => ""],
  ["that names no process", () => "a b c d"],
  ["that names a group of processes", (mine: string) => mine.replace(/ (\d+) (\d+)$/, " -$1 $2")],
])("a lock %s is taken over", (_name, change) => {
  const release = takeLock(chain);
  const mine = fs.readFileSync(lockFile(), "latin1").trim();
  release();
  expect(change(mine)).not.toBe(mine);
  fs.writeFileSync(lockFile(), change(mine));
  expect(livingWriter(chain)).toBeUndefined();
  takeLock(chain);
  expect(fs.readFileSync(lockFile(), "latin1").trim()).toBe(mine);
  expect(fs.readdirSync(chain)).toEqual([LOCK]);
});

test("a writer removes no lock but its own", () => {
  const release = takeLock(chain);
  fs.writeFileSync(lockFile(), "another's");
  release();
  expect(fs.readFileSync(lockFile(), "latin1")).toBe("another's");
});

test("only this user reads the lock", () => {
  takeLock(chain);
  expect(fs.statSync(lockFile()).mode & 0o777).toBe(0o600);
});

test("a folder that is not there is an error that names it", () => {
  const missing = path.join(chain, "missing");
  expect(() => takeLock(missing)).toThrow(
    `The audit chain ${missing} cannot be locked (ENOENT): the folder must be writable.`,
  );
});

test("a lock that cannot be taken away is an error", () => {
  fs.mkdirSync(lockFile());
  expect(() => takeLock(chain)).toThrow(`The audit chain ${chain} cannot be locked (`);
});
