import { beforeEach, describe, expect, test } from "vitest";
import { newAccessKey } from "../access/access-keys.ts";
import { hashKey } from "../access/credentials.ts";
import { NOW, CliWorld } from "./testing.ts";

let world: CliWorld;
/** Keys that the fake generates, in order. */
let keys: string[];

beforeEach(() => {
  world = new CliWorld();
  const foreseen = new CliWorld();
  keys = [0, 1].map(() => newAccessKey(foreseen.random(32)));
});

const specOf = (name: string, namespace = "default"): unknown =>
  world.backend.objects.get(`AccessKey/${namespace}/${name}`)?.spec;

function neverHanded(key: string): void {
  expect(world.backend.received.join("\n")).not.toContain(key);
}

describe("create", () => {
  test("prints the key alone, and hands on its hash alone", async () => {
    const { code, stdout, stderr } = await world.run(
      "access-key",
      "create",
      "--name",
      "laptop",
      "--model-provider",
      "openai",
    );
    expect([code, stdout]).toEqual([0, `${keys[0]}\n`]);
    expect(stderr).toBe("AccessKey laptop created. Its key is not shown again.\n");
    expect(specOf("laptop")).toEqual({
      modelProvider: "openai",
      keySHA256: hashKey(keys[0] as string),
      revoked: false,
      restrictions: {},
      limits: {},
    });
    neverHanded(keys[0] as string);
  });

  test("with all that narrows it", async () => {
    const flags = [
      "--allowed-model",
      "gpt-5*",
      "--allowed-model",
      "o3",
      "--allowed-cidr",
      "10.0.0.0/8",
      "--allowed-cidr",
      "::1/128",
      "--expires",
      "90d",
      "--max-tokens-per-day",
      "1000",
      "--max-requests-per-day",
      "0",
    ];
    const { stderr } = await world.run(
      "access-key",
      "create",
      "--name",
      "ci",
      "-n",
      "team",
      "--model-provider",
      "openai",
      ...flags,
    );
    expect(specOf("ci", "team")).toMatchObject({
      expiresAt: "2026-09-13T12:00:00.000Z",
      restrictions: { allowedModels: ["gpt-5*", "o3"], allowedCIDRs: ["10.0.0.0/8", "::1/128"] },
      limits: { maxTokensPerDay: 1000, maxRequestsPerDay: 0 },
    });
    expect(stderr).toContain("it expires at 2026-09-13T12:00:00.000Z");
  });

  test("for tools of an MCP server", async () => {
    const flags = ["--allowed-mcp-tool", "read", "--allowed-mcp-tool", "search"];
    flags.push("--denied-mcp-tool", "delete", "--denied-mcp-tool", "drop");
    const command = ["access-key", "create", "--name", "a", "--provider", "tracker"];
    const { code } = await world.run(...command, ...flags);
    expect(code).toBe(0);
    expect(specOf("a")).toMatchObject({
      provider: "tracker",
      restrictions: { allowedMcpTools: ["read", "search"], deniedMcpTools: ["delete", "drop"] },
    });
    expect((await world.run("access-key", "list", "-o", "wide")).stdout).toContain(
      "read,search  delete,drop",
    );
  });

  test("wrapped on request", async () => {
    expect(
      (await world.run("access-key", "create", "--name", "a", "--model-provider", "p", "--wrapped"))
        .stdout,
    ).toBe(`sk-ant-api03-${keys[0]}-AA\n`);
    expect(specOf("a")).toMatchObject({ keySHA256: hashKey(keys[0] as string) });
  });

  test("says what keeps it from being used, beside the key", async () => {
    world.backend.statusOf = () => ({
      ready: false,
      reason: "ExternalAccessDisabled",
      message: "externalAccess.enabled is not true",
    });
    const { code, stdout, stderr } = await world.run(
      "access-key",
      "create",
      "--name",
      "a",
      "--model-provider",
      "p",
    );
    expect([code, stdout]).toEqual([0, `${keys[0]}\n`]);
    expect(stderr).toContain(
      "It is not in use: ExternalAccessDisabled: externalAccess.enabled is not true",
    );
  });

  test("a name that is taken is refused, and no key is printed", async () => {
    await world.run("access-key", "create", "--name", "a", "--model-provider", "p");
    expect(await world.run("access-key", "create", "--name", "a", "--model-provider", "p")).toEqual(
      { code: 1, stdout: "", stderr: "svc: AccessKey default/a exists already\n" },
    );
    expect(specOf("a")).toMatchObject({ keySHA256: hashKey(keys[0] as string) });
  });

  test.each<[readonly string[], number, string]>([
    [["--model-provider", "p"], 2, "required option '--name <name>' not specified"],
    [["--name", "a"], 2, "name the provider of the key"],
    [
      ["--name", "a", "--model-provider", "p", "--provider", "q"],
      2,
      "name the provider of the key",
    ],
    [
      ["--name", "a", "--model-provider", "p", "--expires", "soon"],
      2,
      "--expires 'soon' is neither a duration",
    ],
    [
      ["--name", "a", "--model-provider", "p", "--expires", "2026-01-01T00:00:00Z"],
      2,
      "is in the past",
    ],
    [
      ["--name", "a", "--model-provider", "p", "--expires", "2027-01-01"],
      2,
      "is neither a duration",
    ],
    [["--name", "a", "--model-provider", "p", "--expires", "0s"], 2, "is neither a duration"],
    [
      ["--name", "a", "--model-provider", "p", "--max-tokens-per-day", "-1"],
      2,
      "expected a whole number",
    ],
    [
      ["--name", "a", "--model-provider", "p", "--max-tokens-per-day", "1e3"],
      2,
      "expected a whole number",
    ],
    [["--name", "A", "--model-provider", "p"], 1, "metadata.name: must be a DNS-1123 label"],
    [
      ["--name", "a", "--model-provider", "p", "--allowed-cidr", "10.0.0.0"],
      1,
      "spec.restrictions.allowedCIDRs[0]: must be a CIDR block",
    ],
    [
      ["--name", "a", "--model-provider", "p", "--allowed-mcp-tool", "t"],
      1,
      "allowedMcpTools and deniedMcpTools are for keys of a provider",
    ],
  ])("%j: %i", async (flags, code, words) => {
    const ran = await world.run("access-key", "create", ...flags);
    expect([ran.code, ran.stdout]).toEqual([code, ""]);
    expect(ran.stderr).toContain(words);
    expect(world.backend.objects.size).toBe(0);
  });

  test("takes a time of another offset as it is", async () => {
    await world.run(
      "access-key",
      "create",
      "--name",
      "a",
      "--model-provider",
      "p",
      "--expires",
      "2027-01-31T12:00:00+02:00",
    );
    expect(specOf("a")).toMatchObject({ expiresAt: "2027-01-31T12:00:00+02:00" });
  });
});

describe("rotate", () => {
  const OLD = "a".repeat(64);

  beforeEach(() =>
    world.backend.add("AccessKey", "k", { spec: { modelProvider: "p", keySHA256: OLD } }),
  );

  test("the old key is refused at once", async () => {
    const { code, stdout, stderr } = await world.run("access-key", "rotate", "k");
    expect([code, stdout]).toEqual([0, `${keys[0]}\n`]);
    expect(stderr).toContain("The old one is refused from now on.");
    expect(specOf("k")).toEqual({ modelProvider: "p", keySHA256: hashKey(keys[0] as string) });
    neverHanded(keys[0] as string);
  });

  test("or after a grace period", async () => {
    const until = new Date(NOW + 5_400_000).toISOString();
    const { stderr } = await world.run(
      "access-key",
      "rotate",
      "k",
      "--grace",
      "1h30m",
      "--wrapped",
    );
    expect(stderr).toContain(`taken until ${until}`);
    expect(specOf("k")).toMatchObject({
      keySHA256: hashKey(keys[0] as string),
      previous: { keySHA256: OLD, expiresAt: until },
    });
    await world.run("access-key", "rotate", "k", "--grace", "0s");
    expect(specOf("k")).toEqual({ modelProvider: "p", keySHA256: hashKey(keys[1] as string) });
  });

  test("demands the version that it looked at", async () => {
    await world.run("access-key", "rotate", "k");
    expect(JSON.parse(world.backend.received[0] ?? "")).toMatchObject({
      metadata: { resourceVersion: "v1" },
    });
  });

  test("prints no key where it fails", async () => {
    world.backend.patch = () => Promise.reject(new Error("lost"));
    expect(await world.run("access-key", "rotate", "k")).toMatchObject({ code: 1, stdout: "" });
    expect(await world.run("access-key", "rotate", "none")).toEqual({
      code: 1,
      stdout: "",
      stderr: "svc: there is no AccessKey none in namespace default\n",
    });
    expect(await world.run("access-key", "rotate", "k", "--grace", "long")).toMatchObject({
      code: 2,
      stdout: "",
    });
  });

  test("one that is revoked stays so", async () => {
    await world.run("access-key", "revoke", "k");
    expect(await world.run("access-key", "rotate", "k")).toEqual({
      code: 1,
      stdout: "",
      stderr: "svc: AccessKey k is revoked: create another one\n",
    });
  });
});

test("revoke refuses the key before a rotation as well, and can be said twice", async () => {
  world.backend.add("AccessKey", "k", { spec: { keySHA256: "x", previous: { keySHA256: "y" } } });
  expect((await world.run("access-key", "revoke", "k")).stdout).toBe("access-key/k revoked\n");
  expect(specOf("k")).toEqual({ keySHA256: "x", revoked: true });
  expect((await world.run("access-key", "revoke", "k")).stdout).toBe(
    "access-key/k was revoked before\n",
  );
  expect((await world.run("access-key", "revoke", "none")).code).toBe(1);
});

test("delete", async () => {
  world.backend.add("AccessKey", "k", {}, "team");
  expect((await world.run("access-key", "delete", "k")).stderr).toBe(
    "svc: there is no AccessKey k in namespace default\n",
  );
  expect((await world.run("access-key", "delete", "k", "-n", "team")).stdout).toBe(
    "access-key/k deleted\n",
  );
});

test("list shows no hash", async () => {
  expect(await world.run("access-key", "list")).toEqual({
    code: 0,
    stdout: "",
    stderr: "No access-keys in namespace default.\n",
  });
  world.backend.add("AccessKey", "k", {
    spec: {
      modelProvider: "p",
      keySHA256: "c0ffee",
      expiresAt: new Date(NOW + 86_400_000 * 30).toISOString(),
    },
  });
  for (const output of ["table", "wide", "name"])
    expect((await world.run("access-key", "list", "-o", output)).stdout).not.toContain("c0ffee");
  expect((await world.run("access-key", "list")).stdout).toBe(
    "NAME  PROVIDER  READY  REASON  TOKENS  REQUESTS  EXPIRES\nk     p         " +
      "yes    Ready   -       -         in 30d\n",
  );
});
