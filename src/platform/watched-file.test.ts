import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeClock } from "./testing.ts";
import { WatchedFile } from "./watched-file.ts";
import { eventually } from "../../e2e/support/wait.ts";

let dir: string;
let file: string;
let clock: FakeClock;
let texts: (string | undefined)[];
let errors: string[];

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-watched-"));
  file = path.join(dir, "file");
  clock = new FakeClock();
  texts = [];
  errors = [];
});

afterEach(() => rmSync(dir, { recursive: true }));

const open = (): Promise<WatchedFile> =>
  WatchedFile.open({
    file,
    clock,
    intervalMs: 1_000,
    onText: (text) => texts.push(text),
    onError: ({ message }) => errors.push(message),
  });

test("the text is reported at once, and again only when it has changed", async () => {
  writeFileSync(file, "a");
  const watched = await open();
  expect(texts).toEqual(["a"]);
  await watched.refresh();
  expect(texts).toEqual(["a"]);
  writeFileSync(file, "b");
  await watched.refresh();
  expect(texts).toEqual(["a", "b"]);
  watched.close();
});

test("a file that does not exist, that appears, and that is deleted", async () => {
  const watched = await open();
  writeFileSync(file, "");
  await watched.refresh();
  rmSync(file);
  await watched.refresh();
  await watched.refresh();
  expect([texts, errors]).toEqual([[undefined, "", undefined], []]);
  watched.close();
});

test("a symbolic link to another file, as in a mounted ConfigMap", async () => {
  writeFileSync(path.join(dir, "v1"), "one");
  writeFileSync(path.join(dir, "v2"), "two");
  symlinkSync("v1", file);
  const watched = await open();
  symlinkSync("v2", path.join(dir, "next"));
  renameSync(path.join(dir, "next"), file);
  await watched.refresh();
  expect(texts).toEqual(["one", "two"]);
  watched.close();
});

test("an error is reported once, and again after a read that succeeded", async () => {
  const readAs = async (watched: WatchedFile, text: string | undefined): Promise<void> => {
    rmSync(file, { recursive: true, force: true });
    if (text === undefined) symlinkSync(file, file);
    else writeFileSync(file, text);
    await watched.refresh();
  };
  writeFileSync(file, "a");
  const watched = await open();
  await readAs(watched, undefined);
  await watched.refresh();
  expect(errors).toEqual([expect.stringContaining("ELOOP")]);
  await readAs(watched, "a");
  await readAs(watched, undefined);
  expect([texts, errors.length]).toEqual([["a"], 2]);
  watched.close();
});

test("the file is read at every interval, until it is closed", async () => {
  writeFileSync(file, "a");
  const watched = await open();
  for (const text of ["b", "c"]) {
    writeFileSync(file, text);
    expect(clock.pending).toEqual([1_000]);
    clock.advance(1_000);
    await eventually(() => expect(texts.at(-1)).toBe(text));
    await eventually(() => expect(clock.pending).toEqual([1_000]));
  }
  watched.close();
  expect(clock.pending).toEqual([]);
  writeFileSync(file, "d");
  await watched.refresh();
  expect(texts).toEqual(["a", "b", "c"]);
});
