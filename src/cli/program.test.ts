import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Command } from "commander";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { UPDATING_GOLDENS } from "../platform/testing-goldens.ts";
import type { Context } from "./context.ts";
import { createProgram, everyCommand } from "./program.ts";
import { CliWorld } from "./testing.ts";

let dir: string;
let world: CliWorld;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  world = new CliWorld();
});

afterEach(() => rmSync(dir, { recursive: true }));

const program = createProgram({
  root: "/nowhere",
  version: "1.2.3",
  env: {},
  stdout: () => undefined,
  stderr: () => undefined,
} as unknown as Context);

/** Visible commands with an action of their own. */
const leaves = everyCommand(program).filter(
  (command) =>
    (command.commands.length === 0 ||
      command.registeredArguments.length > 0 ||
      (command.parent !== null && command.options.length > 0)) &&
    !hidden(command),
);

function hidden(command: Command): boolean {
  return command.name().startsWith("__");
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

describe("flags that are wrong: one clear line, exit code 2", () => {
  test.each([
    [
      ["up", "--port", "x"],
      "error: option '--port <number>' argument 'x' is invalid. a port is a number from 1 to 65535",
    ],
    [["up", "--port", "0"], "a port is a number from 1 to 65535"],
    [["up", "--port", "65536"], "a port is a number from 1 to 65535"],
    [["up", "--port", "80.5"], "a port is a number from 1 to 65535"],
    [["up", "--port", ""], "a port is a number from 1 to 65535"],
    [["up", "--concurrency", "0"], "expected a whole number above 0"],
    [["up", "--drain", "soon"], "expected a whole number above 0"],
    [["up", "--mcp-allowed-origin", "https://a.example/x"], "must be an origin such as"],
    [["up", "--mcp-allowed-host", "a.example:80"], "must be a host such as svc.example.com"],
    [["up", "--log-level", "loud"], "Allowed choices are debug, info, warn, error."],
    [["up", "--nothing"], "error: unknown option '--nothing'"],
    [["up", "--port"], "error: option '--port <number>' argument missing"],
    [["up", "folder"], "error: too many arguments for 'up'"],
    [["up", "--guard", "magic"], "Allowed choices are promptGuard, stub, llamaGuard, custom."],
    [["up", "--guard-model", "m"], "--guard-model and --guard-upstream need --guard <type>"],
    [["up", "--guard", "stub", "--guard-endpoint", "http://g"], "cannot be used with"],
    [["up", "--guard-endpoint", "guard:1"], "must be an http or https URL"],
    [["status", "-o", "xml"], "Allowed choices are table, json."],
    [["status", "--nothing"], "error: unknown option '--nothing'"],
    [["token"], "error: missing required argument 'agent'"],
    [["token", "a", "b"], "error: too many arguments for 'token'"],
    [["tokne"], "error: unknown command 'tokne'"],
    [["access-key", "creat"], "error: unknown command 'creat'"],
    [["apply"], "error: required option '-f, --filename <file>' not specified"],
    [["get"], "error: missing required argument 'kind'"],
    [["get", "agnets"], "svc: there is no kind 'agnets': did you mean agents?"],
  ])("svc %j", async (args, words) => {
    const { code, stdout, stderr } = await world.run(...args);
    expect(stdout).toBe("");
    expect(stderr).toContain(words);
    expect(
      stderr
        .trimEnd()
        .split("\n")
        .filter((line) => !line.startsWith("(Did you mean")),
    ).toHaveLength(1);
    expect(code).toBe(2);
    expect(world.backend.calls).toEqual([]);
  });

  test("a folder that does not exist is told in one line", async () => {
    const { code, stderr } = await world.run("up", "--resources", path.join(dir, "none"));
    expect(code).toBe(1);
    expect(stderr).toMatch(/^svc: [^\n]*none is not a folder[^\n]*--resources DIR\.\n$/);
  });
});

describe("what nobody foresaw", () => {
  beforeEach(() => {
    world.backend.status = () => Promise.reject(new Error("it broke\nhere"));
  });

  test("is one line", async () => {
    expect(await world.run("status")).toEqual({
      code: 1,
      stdout: "",
      stderr: "svc: unexpected: it broke. SVC_DEBUG=1 shows where.\n",
    });
  });

  test("and its stack with SVC_DEBUG", async () => {
    world.env = { SVC_DEBUG: "1" };
    expect((await world.run("status")).stderr).toMatch(
      /unexpected: it broke.*\nError: it broke\nhere\n {4}at /,
    );
  });
});

test("svc token prints the token alone", async () => {
  world.backend.add("Agent", "hello");
  expect(await world.run("token", "hello", "--state-dir", dir)).toEqual({
    code: 0,
    stdout: "svcw_default_hello\n",
    stderr: "",
  });
  expect(world.backend.targets).toEqual([expect.objectContaining({ stateDir: dir })]);
  expect(await world.run("token", "hello", "-n", "x")).toEqual({
    code: 1,
    stdout: "",
    stderr: "svc: no Agent hello in namespace x\n",
  });
});

describe("svc status", () => {
  const objects = [
    {
      kind: "Agent",
      namespace: "default",
      name: "hello",
      ready: true,
      reason: "Ready",
      message: "",
      conditions: [],
    },
  ] as const;

  test("prints a table, or the whole as JSON", async () => {
    world.backend.gateway = { ...world.backend.gateway, objects };
    expect((await world.run("status")).stdout).toContain("Agent  default/hello  yes    Ready");
    const { code, stdout } = await world.run("status", "-o", "json");
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(world.backend.gateway)));
    expect(code).toBe(0);
  });

  test.each([
    ["is not ready", { ready: false, reason: "Envoy has not taken the configuration yet" }],
    ["has problems", { problems: ["a.yaml: bad"] }],
  ])("says by its exit code that the gateway %s", async (_name, more) => {
    world.backend.gateway = { ...world.backend.gateway, ...more };
    expect((await world.run("status")).code).toBe(1);
  });
});

test("--version prints the version", async () => {
  expect(await world.run("--version")).toEqual({ code: 0, stdout: "1.2.3\n", stderr: "" });
});

test("a command without what to do prints its help, and fails", async () => {
  const { code, stderr } = await world.run("access-key");
  expect(stderr).toContain("Usage: svc access-key [options] [command]");
  expect(code).toBe(2);
});

describe("--help", () => {
  test.each(leaves.map((command) => [fullName(command), command] as const))(
    "%s has an example of itself",
    async (name) => {
      const { code, stdout } = await world.run(...name.split(" ").slice(1), "--help");
      expect(code).toBe(0);
      const examples = stdout.slice(stdout.search(/^Examples?:$/m));
      expect(examples).toMatch(new RegExp(`^Examples?:\\n(?:.*\\n)*? {2}.*\\b${name}\\b`));
    },
  );
});

/** The table of a command's flags, in the form of docs/cli.md. */
function flagTable(command: Command): string {
  const rows = command.options.map((option) => {
    const choices =
      option.argChoices === undefined
        ? ""
        : `: ${option.argChoices.map((choice) => `\`${choice}\``).join(", ")}`;
    const fallback =
      option.defaultValue === undefined || String(option.defaultValue) === ""
        ? ""
        : `\`${String(option.defaultValue)}\``;
    return `| \`${option.flags}\` | ${option.description}${choices} | ${fallback} |\n`;
  });
  return rows.length === 0
    ? ""
    : `| Flag | Meaning | Default |\n| --- | --- | --- |\n${rows.join("")}`;
}

const FLAG_TABLE = /^\| Flag \| Meaning \| Default \|\n(?:\|.*\n)*/m;

/** `make golden` rewrites the tables of flags; the rest of the page is written by hand. */
describe("docs/cli.md", () => {
  const file = path.resolve(import.meta.dirname, "../../docs/cli.md");
  const sections = (): Map<string, string> =>
    new Map(
      readFileSync(file, "utf8")
        .split(/^(?=## )/m)
        .slice(1)
        .map((text) => [text.slice(3, text.indexOf("\n")).replaceAll("`", ""), text]),
    );

  const title = (command: Command): string =>
    [
      fullName(command),
      ...command.registeredArguments.map((argument) =>
        argument.required
          ? `<${argument.name()}>`
          : `[${argument.name()}${argument.variadic ? "..." : ""}]`,
      ),
    ].join(" ");

  test("has a section for each command, and no other", () => {
    expect([...sections().keys()].filter((text) => text.startsWith("svc "))).toEqual(
      leaves.map(title),
    );
  });

  test.each(leaves.map((command) => [title(command), command] as const))(
    "has the flags of %s, with what they mean and their defaults",
    (name, command) => {
      const section = sections().get(name) ?? "";
      expect(section).toContain(command.description());
      if (UPDATING_GOLDENS)
        writeFileSync(
          file,
          readFileSync(file, "utf8").replace(
            section,
            section.replace(FLAG_TABLE, flagTable(command)),
          ),
        );
      expect(FLAG_TABLE.exec(sections().get(name) ?? "")?.[0] ?? "").toBe(flagTable(command));
    },
  );
});
