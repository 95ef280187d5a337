/** `svc apply` and `svc delete`. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CliWorld } from "./testing.ts";

const agent = (name: string, namespace = "default"): string =>
  `apiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: ${name}, namespace: ` +
  `${namespace}}\nspec: {models: []}\n`;

let dir: string;
let world: CliWorld;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  world = new CliWorld();
});

afterEach(() => rmSync(dir, { recursive: true }));

function file(name: string, text: string): string {
  const full = path.join(dir, name);
  mkdirSync(path.dirname(full), { recursive: true });
  writeFileSync(full, text);
  return full;
}

const ids = (): string[] => [...world.backend.objects.keys()];

describe("apply", () => {
  test("files, in their order, several documents each", async () => {
    const { code, stdout } = await world.run(
      "apply",
      "-f",
      file("b.yaml", `${agent("b")}---\n${agent("c", "team")}`),
      "-f",
      file(
        "a.json",
        JSON.stringify({
          apiVersion: "svc.io/v1",
          kind: "Agent",
          metadata: { name: "a" },
          spec: {},
        }),
      ),
    );
    expect([code, stdout]).toEqual([
      0,
      "agent/b created\nagent/c created in namespace team\nagent/a created\n",
    ]);
    expect((await world.run("apply", "-f", path.join(dir, "b.yaml"))).stdout).toContain(
      "agent/b configured\n",
    );
  });

  test("a folder: its YAML and JSON, below it too, nothing hidden", async () => {
    file("sub/x.yml", agent("x"));
    file("y.yaml", agent("y"));
    file("notes.txt", "no");
    file(".hidden.yaml", "no: [");
    file(".git/z.yaml", "no: [");
    file("y.yaml~", "no: [");
    await world.run("apply", "-f", dir);
    expect(ids()).toEqual(["Agent/default/x", "Agent/default/y"]);
  });

  test("standard input, once", async () => {
    world.stdin = agent("s");
    expect((await world.run("apply", "-f", "-")).stdout).toBe("agent/s created\n");
    expect(await world.run("apply", "-f", "-", "-f", "-")).toMatchObject({
      code: 2,
      stderr: "svc: standard input can be read once: name -f - once\n",
    });
  });

  test("says why an object is not in use", async () => {
    world.backend.statusOf = () => ({
      ready: false,
      reason: "UnknownProvider",
      message: "there is no ModelProvider x",
    });
    world.stdin = agent("s");
    expect(await world.run("apply", "-f", "-")).toEqual({
      code: 0,
      stdout: "agent/s created: not in use: UnknownProvider: there is no ModelProvider x\n",
      stderr: "",
    });
    world.backend.statusOf = () => ({ ready: true, reason: "DegradedModels", message: "" });
    expect((await world.run("apply", "-f", "-")).stdout).toBe(
      "agent/s configured: in use, with a warning: DegradedModels\n",
    );
  });

  test("what is wrong is told with its place, one line each, and nothing is applied", async () => {
    const bad = file(
      "bad.yaml",
      `${agent("ok")}---\n${agent("x").replace("models", "modles")}---\na: [`,
    );
    const { code, stdout, stderr } = await world.run("apply", "-f", bad);
    expect([code, stdout, ids()]).toEqual([1, "", []]);
    expect(stderr.trimEnd().split("\n")).toEqual([
      expect.stringMatching(
        /^svc: \S+bad\.yaml:9: Agent x: spec\.modles: unknown field; did you mean models\?/,
      ),
      expect.stringMatching(/^svc: \S+bad\.yaml:11: .*the whole document was refused/),
    ]);
  });

  test.each<[string, () => string, string]>([
    [
      "no such file",
      () => path.join(dir, "none.yaml"),
      "none.yaml: there is no such file or folder",
    ],
    [
      "a folder without resources",
      () => path.dirname(file("empty/notes.txt", "")),
      "the folder holds no .yaml, .yml or .json file",
    ],
  ])("%s", async (_name, name, words) => {
    const ran = await world.run("apply", "-f", name());
    expect([ran.code, ran.stdout]).toEqual([1, ""]);
    expect(ran.stderr).toContain(words);
    expect(world.backend.calls).toEqual([]);
  });
});

describe("delete", () => {
  beforeEach(() => {
    for (const name of ["a", "b"]) world.backend.add("Agent", name);
    world.backend.add("Agent", "t", {}, "team");
  });

  test("by kind and name, several", async () => {
    expect(await world.run("delete", "agents", "a", "b")).toEqual({
      code: 0,
      stdout: "agent/a deleted\nagent/b deleted\n",
      stderr: "",
    });
    expect((await world.run("delete", "agent/t", "-n", "team")).stdout).toBe("agent/t deleted\n");
    expect(ids()).toEqual([]);
  });

  test("one that is not there fails, and the others go", async () => {
    expect(await world.run("delete", "agent", "none", "a")).toEqual({
      code: 1,
      stdout: "agent/a deleted\n",
      stderr: "svc: there is no agent/none in namespace default\n",
    });
    expect((await world.run("delete", "agent", "none", "--ignore-not-found")).code).toBe(0);
  });

  test("what files name, last first; also what could not be applied", async () => {
    const name = file(
      "x.yaml",
      `${agent("a")}---\n${agent("b").replace("models", "modles")}---\n${agent("t", "team")}`,
    );
    expect(await world.run("delete", "-f", name)).toEqual({
      code: 0,
      stdout: "agent/t deleted\nagent/b deleted\nagent/a deleted\n",
      stderr: "",
    });
  });

  test.each<[readonly string[], string, number, string]>([
    [[], "", 2, "name what to delete"],
    [["agent"], "", 2, "name the agent to delete"],
    [["agent", "a", "-f", "-"], "", 2, "not both"],
    [["-f", "-"], "a: [", 1, "(standard input):1: is not valid YAML or JSON; nothing was deleted"],
    [["-f", "-"], `${agent("a")}---\nkind: Agent\n`, 1, "names no object; nothing was deleted"],
    [["pods", "a"], "", 2, "there is no kind 'pods'"],
  ])("%j of %j: %i", async (args, stdin, code, words) => {
    world.stdin = stdin;
    const ran = await world.run("delete", ...args);
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toContain(words);
    expect(ids()).toHaveLength(3);
  });
});
