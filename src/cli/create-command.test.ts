import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseAllDocuments } from "yaml";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Ran } from "./testing.ts";
import { CliWorld } from "./testing.ts";

const KEY = "sk-proj-${NOT_A_VARIABLE}";

let dir: string;
let world: CliWorld;

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  world = new CliWorld();
});

afterEach(() => rmSync(dir, { recursive: true }));

const create = (...args: string[]): Promise<Ran> => world.run("create", "model-provider", ...args);
const manifests = (): unknown[] =>
  (parseAllDocuments(world.backend.received.join("---\n")) as { toJS(): unknown }[]).map(
    (document) => document.toJS(),
  );

test.each<[string, () => readonly string[]]>([
  ["a flag", () => ["--api-key", KEY]],
  ["standard input", () => ["--api-key", "-"]],
  ["a file", () => ["--api-key-file", path.join(dir, "key")]],
  ["the terminal", () => []],
])("the key from %s goes into a Secret as it is, and is not shown", async (_name, flags) => {
  world.stdin = `${KEY}\n`;
  world.typed = KEY;
  writeFileSync(path.join(dir, "key"), `${KEY}\r\n`);
  const ran = await create("openai", "--provider", "openai", ...flags());
  expect(ran).toEqual({
    code: 0,
    stdout: "secret/openai created\nmodel-provider/openai created\n",
    stderr: "",
  });
  expect(manifests()).toEqual([
    {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "openai", namespace: "default" },
      data: { "api-key": Buffer.from(KEY).toString("base64") },
    },
    {
      apiVersion: "svc.io/v1",
      kind: "ModelProvider",
      metadata: { name: "openai", namespace: "default" },
      spec: { provider: "openai", apiKeySecretRef: { name: "openai", key: "api-key" } },
    },
  ]);
  expect(world.asked.join("")).not.toContain(KEY);
});

test("with the other flags", async () => {
  world.stdin = KEY;
  await create(
    "az",
    "-n",
    "team",
    "--provider",
    "azure-openai",
    "--base-url",
    "https://x.openai.azure.com/openai/v1",
    "--allowed-model",
    "a*",
    "--allowed-model",
    "b",
    "--external-access",
    "--api-key",
    "-",
  );
  expect(manifests()[1]).toMatchObject({
    metadata: { namespace: "team" },
    spec: {
      baseURL: "https://x.openai.azure.com/openai/v1",
      allowedModels: ["a*", "b"],
      externalAccess: { enabled: true },
    },
  });
});

test("kinds that need no key get no Secret", async () => {
  world.typed = "must not be asked";
  expect((await create("mock", "--provider", "mock")).stdout).toBe("model-provider/mock created\n");
  expect(world.asked).toEqual([]);
  expect(manifests()).toHaveLength(1);
});

test("one that is there stays, unless it is to be replaced", async () => {
  await create("openai", "--provider", "openai", "--api-key", "one");
  expect(await create("openai", "--provider", "openai", "--api-key", "two")).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringContaining("exists already") as unknown,
  });
  expect(
    (await create("openai", "--provider", "openai", "--api-key", "two", "--replace")).stdout,
  ).toBe("secret/openai configured\nmodel-provider/openai configured\n");
});

test.each<[string, readonly string[], string, number, string]>([
  ["no kind", ["x"], "", 2, "required option '--provider <kind>' not specified"],
  ["an unknown kind", ["x", "--provider", "opnai"], "", 2, "Allowed choices are openai, anthropic"],
  [
    "no key and no terminal",
    ["x", "--provider", "openai"],
    "",
    2,
    "the kind openai needs an API key: --api-key -, or --api-key-file <file>",
  ],
  [
    "two keys",
    ["x", "--provider", "openai", "--api-key", KEY, "--api-key-file", "f"],
    "",
    2,
    "give two keys",
  ],
  [
    "an empty one",
    ["x", "--provider", "openai", "--api-key", "-"],
    " \n",
    1,
    "the text on standard input is empty",
  ],
  [
    "two lines",
    ["x", "--provider", "openai", "--api-key", "-"],
    `${KEY}\n${KEY}\n`,
    1,
    "the text on standard input is not a key",
  ],
  [
    "one that no header can carry",
    ["x", "--provider", "openai", "--api-key", `${KEY}é`],
    "",
    1,
    "the value of --api-key is not a key",
  ],
  [
    "a file that is not there",
    ["x", "--provider", "openai", "--api-key-file", "/nonexistent/key"],
    "",
    1,
    "--api-key-file: the file cannot be read (ENOENT)",
  ],
  [
    "a name that is none",
    ["X/..", "--provider", "openai", "--api-key", KEY],
    "",
    1,
    "metadata.name: must be",
  ],
  [
    "a base URL where none is meant",
    ["x", "--provider", "mock", "--base-url", "http://x"],
    "",
    1,
    "does not apply to the kind mock",
  ],
])("%s", async (_name, args, stdin, code, words) => {
  world.stdin = stdin;
  const ran = await create(...args);
  expect([ran.code, ran.stdout]).toEqual([code, ""]);
  expect(ran.stderr).toContain(words);
  expect(ran.stderr).not.toContain(KEY);
  expect(world.backend.objects.size).toBe(0);
});
