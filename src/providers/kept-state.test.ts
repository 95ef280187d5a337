import fs from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { StateFolder } from "../platform/state-folder.ts";
import { FakeClock } from "../platform/testing.ts";
import { keptIn, type KeptState } from "./kept-state.ts";

let dir: string;
let folder: StateFolder;

beforeEach(() => {
  dir = fs.mkdtempSync(path.join(tmpdir(), "svc-state-"));
  folder = StateFolder.open(dir, new FakeClock());
});

afterEach(() => {
  fs.rmSync(dir, { recursive: true });
});

test("each Provider has a text of its own, which outlives the process", () => {
  const [slack, other, elsewhere] = [
    keptIn(folder, "default", "slack"),
    keptIn(folder, "default", "chat"),
    keptIn(folder, "team", "slack"),
  ];
  expect(slack.read()).toBeUndefined();
  slack.write("one");
  other.write("two");
  slack.write("three");
  expect([slack.read(), other.read(), elsewhere.read()]).toEqual(["three", "two", undefined]);
  expect(keptIn(folder, "default", "slack").read()).toBe("three");
  expect(fs.readdirSync(dir).toSorted()).toEqual(["default.chat.json", "default.slack.json"]);
});

test("one sidecar of a Provider acts at a time", async () => {
  const [one, another, other] = [
    keptIn(folder, "default", "slack"),
    keptIn(folder, "default", "slack"),
    keptIn(folder, "default", "chat"),
  ];
  const acting = (state: KeptState, signal: AbortSignal): Promise<string> =>
    state.exclusively(signal, () => Promise.resolve("acted"));
  const never = new AbortController().signal;
  await one.exclusively(never, async () => {
    await expect(acting(another, AbortSignal.abort(new Error("too late")))).rejects.toThrow();
    expect(await acting(other, never)).toBe("acted");
  });
  expect(await acting(another, never)).toBe("acted");
});
