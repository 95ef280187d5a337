import {
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LoadResult } from "../load-result.ts";
import type { Source } from "../source.ts";
import { openFolder } from "./folder-source.ts";

let dir: string;
let source: Source | undefined;
let loads: LoadResult[];
let wake: () => void = () => undefined;
const log = { warn: () => undefined };

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "svc-folder-"));
  loads = [];
});

afterEach(async () => {
  await source?.close();
  source = undefined;
  rmSync(dir, { recursive: true, force: true });
});

const agent = (name: string, system = "x", more = "") =>
  `apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: ${name}}\nspec: {system: ` +
  `"${system}"${more}}\n`;
const write = (file: string, text: string) => writeFileSync(join(dir, file), text);

async function open(): Promise<Source> {
  source = await openFolder({ dir, log, debounceMs: 20 });
  source.onChange((load) => {
    loads.push(load);
    wake();
  });
  return source;
}

/** Waits, by events of the source, until its state is as wanted. */
async function until(wanted: (load: LoadResult) => boolean): Promise<LoadResult> {
  const opened = source;
  if (opened === undefined) throw new Error("not open");
  while (!wanted(opened.current())) await new Promise<void>((resolve) => (wake = resolve));
  return opened.current();
}

const names = (load: LoadResult) =>
  [...load.resources.agents.keys()].map((key) => key.slice("default/".length));
const system = (load: LoadResult, name: string) =>
  load.resources.agents.get(`default/${name}`)?.spec.system;

describe("openFolder", () => {
  test("loads recursively, by name of file, and ignores what is not a resource file", async () => {
    mkdirSync(join(dir, "sub"));
    mkdirSync(join(dir, ".git"));
    write("b.yaml", `${agent("b1")}---\n${agent("b2")}`);
    write("a.yml", agent("a"));
    write(
      "sub/c.json",
      JSON.stringify(
        { apiVersion: "svc.io/v1", kind: "Agent", metadata: { name: "c" }, spec: {} },
        null,
        "\t",
      ),
    );
    for (const ignored of [
      ".hidden.yaml",
      ".a.yml.swp",
      "a.yaml~",
      "#a.yaml#",
      "notes.txt",
      ".git/x.yaml",
    ])
      write(ignored, agent("ignored"));
    expect(names((await open()).current())).toEqual(["a", "b1", "b2", "c"]);
    expect(loads).toEqual([]);
  });

  test("is not opened on a missing directory, or on a file", async () => {
    write("a.yaml", agent("a"));
    await expect(openFolder({ dir: join(dir, "no"), log })).rejects.toThrow("ENOENT");
    await expect(openFolder({ dir: join(dir, "a.yaml"), log })).rejects.toThrow("not a directory");
  });

  test("follows edits, additions, new directories and deletions", async () => {
    write("a.yaml", agent("a", "one"));
    await open();
    write("a.yaml", agent("a", "two"));
    await until((load) => system(load, "a") === "two");
    write("b.yaml", agent("b"));
    await until((load) => names(load).includes("b"));
    mkdirSync(join(dir, "deep", "er"), { recursive: true });
    write("deep/er/c.yaml", agent("c"));
    await until((load) => names(load).includes("c"));
    write("deep/er/c.yaml", agent("c", "again"));
    await until((load) => system(load, "c") === "again");
    unlinkSync(join(dir, "a.yaml"));
    rmSync(join(dir, "deep"), { recursive: true });
    expect(names(await until((load) => load.resources.agents.size === 1))).toEqual(["b"]);
  });

  test("sees files replaced by renames", async () => {
    write("a.yaml", agent("a", "0"));
    await open();
    for (const round of ["1", "2", "3"]) {
      write(".tmp", agent("a", round));
      renameSync(join(dir, ".tmp"), join(dir, "a.yaml"));
      await until((load) => system(load, "a") === round);
    }
  });

  test("sees a mounted ConfigMap change, which swaps the link ..data", async () => {
    const version = (name: string, value: string) => {
      mkdirSync(join(dir, name));
      write(`${name}/a.yaml`, agent("a", value));
      symlinkSync(name, join(dir, "..data_tmp"));
      renameSync(join(dir, "..data_tmp"), join(dir, "..data"));
    };
    version("..v1", "1");
    symlinkSync("..data/a.yaml", join(dir, "a.yaml"));
    expect(names((await open()).current())).toEqual(["a"]);
    for (const round of ["2", "3"]) {
      version(`..v${round}`, round);
      rmSync(join(dir, `..v${Number(round) - 1}`), { recursive: true });
      await until((load) => system(load, "a") === round);
    }
  });

  test("a bad edit keeps the last good version of that object, and says what is wrong", async () => {
    write("a.yaml", `${agent("a", "good")}---\n${agent("b", "1")}`);
    await open();
    write("a.yaml", `${agent("a", "bad", ", modles: []")}---\n${agent("b", "2")}`);
    const load = await until(({ problems }) => problems.length > 0);
    expect([system(load, "a"), system(load, "b")]).toEqual(["good", "2"]);
    expect(load.problems).toMatchObject([
      { file: "a.yaml", line: 4, name: "a", path: "spec.modles", reason: "InvalidSpec" },
    ]);
    write("a.yaml", agent("a", "mended"));
    const mended = await until(({ problems }) => problems.length === 0);
    expect([names(mended), system(mended, "a")]).toEqual([["a"], "mended"]);
  });

  test("a file that no longer parses keeps its objects, and only its", async () => {
    write("a.yaml", `${agent("a1")}---\n${agent("a2")}`);
    write("b.yaml", agent("b"));
    await open();
    write("a.yaml", "kind: [");
    unlinkSync(join(dir, "b.yaml"));
    const load = await until(
      ({ problems, resources }) => problems.length > 0 && resources.agents.size === 2,
    );
    expect(names(load)).toEqual(["a1", "a2"]);
    expect(load.problems).toMatchObject([{ file: "a.yaml", reason: "InvalidSyntax" }]);
    unlinkSync(join(dir, "a.yaml"));
    await until(({ resources, problems }) => resources.agents.size === 0 && problems.length === 0);
  });

  test("an object that is bad from the start is not loaded; the others are", async () => {
    write("a.yaml", agent("a", "x", ", modles: []"));
    write("b.yaml", agent("b"));
    const load = (await open()).current();
    expect(names(load)).toEqual(["b"]);
    expect(load.problems).toHaveLength(1);
  });

  test("of two objects of one name the later file's is refused, with the place of the first", async () => {
    write("a.yaml", `# first\n${agent("same", "a")}`);
    write("b.yaml", agent("same", "b"));
    const load = (await open()).current();
    expect(system(load, "same")).toBe("a");
    expect(load.problems).toMatchObject([
      {
        file: "b.yaml",
        line: 1,
        reason: "DuplicateObject",
        message: expect.stringContaining("a.yaml:2"),
      },
    ]);
  });

  test("an object moved to another file goes on serving, also while it is broken there", async () => {
    write("a.yaml", agent("a", "good"));
    await open();
    unlinkSync(join(dir, "a.yaml"));
    write("b.yaml", agent("a", "bad", ", modles: []"));
    const load = await until(({ problems }) => problems.length > 0);
    expect(system(load, "a")).toBe("good");
  });

  test("a file that a writer has just emptied keeps its objects until it is filled or stays empty", async () => {
    write("a.yaml", agent("a", "1"));
    const opened = await open();
    truncateSync(join(dir, "a.yaml"));
    expect(names(await opened.refresh())).toEqual(["a"]);
    write("a.yaml", agent("a", "2"));
    await until((load) => system(load, "a") === "2");
    expect(loads.every((load) => load.resources.agents.size === 1)).toBe(true);
    truncateSync(join(dir, "a.yaml"));
    await until((load) => load.resources.agents.size === 0);
  });

  test("nothing is announced for a touch, and unchanged objects stay the same objects", async () => {
    write("a.yaml", agent("a"));
    write("b.yaml", agent("b", "1"));
    const opened = await open();
    const before = opened.current().resources.agents.get("default/a");
    write("a.yaml", agent("a"));
    await opened.refresh();
    expect(loads).toEqual([]);
    write("b.yaml", agent("b", "2"));
    await until((load) => system(load, "b") === "2");
    expect(opened.current().resources.agents.get("default/a")).toBe(before);
  });

  test("a dangling link is not there, and a directory named like a file is a directory", async () => {
    symlinkSync("nowhere", join(dir, "dangling.yaml"));
    mkdirSync(join(dir, "dir.yaml"));
    write("dir.yaml/a.yaml", agent("a"));
    const load = (await open()).current();
    expect([names(load), load.problems]).toEqual([["a"], []]);
  });
});
