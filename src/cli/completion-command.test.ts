import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CliWorld } from "./testing.ts";

let world: CliWorld;

beforeEach(() => {
  world = new CliWorld();
  world.backend.add("Agent", "hello");
  world.backend.add("Agent", "help-desk");
  world.backend.add("Agent", "far", {}, "team");
  world.backend.add("AccessKey", "laptop");
  world.backend.add("Provider", "tracker");
});

async function candidates(line: string): Promise<string[]> {
  const { code, stdout, stderr } = await world.run("__complete", "--", ...line.split(" ").slice(1));
  expect([code, stderr]).toEqual([0, ""]);
  return stdout.split("\n").filter((word) => word !== "");
}

describe("what may stand next", () => {
  test.each<[string, readonly string[]]>([
    ["svc ap", ["apply"]],
    ["svc acc", ["access-key"]],
    ["svc __", []],
    ["svc access-key r", ["rotate", "revoke"]],
    ["svc create ", ["model-provider", "help"]],
    ["svc get ag", ["agents", "agent-def"]],
    ["svc get agents h", ["hello", "help-desk"]],
    ["svc get agents hello h", ["help-desk"]],
    ["svc get -n team agent ", ["far"]],
    ["svc get agent --namespace=team ", ["far"]],
    ["svc get agent-def hel", ["hello", "help-desk"]],
    ["svc get nothing x", []],
    ["svc get agents --out", ["--output"]],
    ["svc get agents -o ", ["table", "wide", "json", "yaml", "name"]],
    ["svc get agents -o y", ["yaml"]],
    ["svc get agents --output=y", ["--output=yaml"]],
    ["svc get agents --output = y", ["yaml"]],
    ["svc get agents --nothing=y", []],
    ["svc apply -f ", [":files"]],
    ["svc apply -f x --file", ["--filename"]],
    ["svc up --resources ", [":files"]],
    ["svc up --port ", []],
    ["svc access-key rotate l", ["laptop"]],
    ["svc access-key create --name ", []],
    ["svc token he", ["hello", "help-desk"]],
    ["svc delete acc", ["access-keys"]],
    ["svc delete access-key ", ["laptop"]],
    ["svc audit he", ["help", "hello", "help-desk"]],
    ["svc audit ver", ["verify"]],
    ["svc completion ", ["bash", "zsh", "fish"]],
    ["svc gateway env --shell f", ["fish"]],
    ["svc get to", ["tools"]],
    ["svc get tools ", ["tracker"]],
    ["svc gateway m", ["mcp"]],
    ["svc gateway mcp t", ["tracker"]],
    ["svc gateway mcp tracker --client c", ["claude", "claude-desktop", "cursor", "codex"]],
    ["svc access-key create --denied", ["--denied-mcp-tool"]],
    ["svc up --mcp", ["--mcp-allowed-origin", "--mcp-allowed-host"]],
    ["svc guard ", ["eval", "help"]],
    ["svc guard --type p", ["promptGuard"]],
    ["svc guard eval ", [":files"]],
    ["svc guard eval data.jsonl --min", ["--min-recall"]],
    ["svc nothing ", []],
  ])("%j", async (line, words) => {
    expect(await candidates(line)).toEqual(words);
  });

  test("no names where nothing runs", async () => {
    world.backend.list = () => Promise.reject(new Error("nothing runs"));
    expect(await candidates("svc get agents ")).toEqual([]);
  });

  test("names come from the svc up that the line names", async () => {
    await candidates("svc get agents --state-dir /tmp/x ");
    expect(world.backend.targets).toEqual([{ stateDir: "/tmp/x" }]);
  });
});

describe("the script for bash", () => {
  let dir: string;

  beforeEach(async () => {
    dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
    writeFileSync(
      path.join(dir, "completion.bash"),
      (await world.run("completion", "bash")).stdout,
    );
    // Answers with its input, a word that a shell would expand, and one with a space.
    writeFileSync(
      path.join(dir, "svc"),
      `#!/bin/sh\n[ "$4" = file ] && echo :files\nfor word; do echo "<$word>"; done\necho ` +
        `'$(touch ${dir}/ran)'\necho 'a b'\n`,
    );
    chmodSync(path.join(dir, "svc"), 0o755);
  });

  afterEach(() => rmSync(dir, { recursive: true }));

  function complete(...words: string[]): string[] {
    const list = words.map((word) => `'${word}'`).join(" ");
    const script =
      `set -eu\nPATH="${dir}:$PATH"\nsource ${dir}/completion.bash\nCOMP_WORDS=(${list}); ` +
      `COMP_CWORD=${words.length - 1}\n_svc_complete\nfor reply in "\${COMPREPLY[@]}"; do ` +
      `echo "$reply"; done`;
    return execFileSync("bash", ["-c", script], { cwd: dir, encoding: "utf8" })
      .trimEnd()
      .split("\n");
  }

  test("is bash, registers itself, and asks with the words up to the cursor", () => {
    execFileSync("bash", ["-n", path.join(dir, "completion.bash")]);
    expect(
      execFileSync("bash", ["-c", `source ${dir}/completion.bash; complete -p svc`], {
        encoding: "utf8",
      }),
    ).toBe("complete -F _svc_complete svc\n");
    expect(complete("svc", "get", "a b", "")).toEqual([
      "<__complete>",
      "<-->",
      "<get>",
      "<a b>",
      "<>",
      `$(touch ${dir}/ran)`,
      "a b",
    ]);
  });

  test("offers files where they may stand", () => {
    expect(complete("svc", "apply", "file", "comp")).toContain("completion.bash");
  });

  test.each(["zsh", "fish"])("%s has one that asks as well", async (shell) => {
    expect((await world.run("completion", shell)).stdout).toContain("__complete -- ");
  });

  test("other shells have none", async () => {
    expect(await world.run("completion", "cmd")).toMatchObject({ code: 2, stdout: "" });
  });
});
