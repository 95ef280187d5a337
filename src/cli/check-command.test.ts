import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import net, { type AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type CheckResult, fail, ok, renderChecks, warn } from "./checks.ts";
import { checkPort } from "./machine-checks.ts";
import { CliWorld } from "./testing.ts";

let world: CliWorld;
let dir: string;

beforeEach(() => {
  world = new CliWorld();
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a table with its sum", () => {
  expect(renderChecks([ok("a", "fine")])).toBe(
    "    CHECK  RESULT\nOK  a      fine\n1 checks passed.",
  );
  expect(renderChecks([ok("a"), warn("b", "x"), fail("c", "y")])).toContain(
    "3 checks: 1 failed, 1 with a warning.",
  );
});

describe("of a cluster", () => {
  test.each<[readonly CheckResult[], number]>([
    [[ok("a"), warn("b", "x")], 0],
    [[ok("a"), fail("b", "x")], 1],
  ])("the exit code says whether one failed", async (checks, code) => {
    world.cluster = { ...world.cluster, check: () => Promise.resolve(checks) };
    expect((await world.run("check", "--context", "c", "-o", "json")).code).toBe(code);
  });
});

describe("of this machine", () => {
  const checksOf = async (stateDir: string): Promise<readonly CheckResult[]> => {
    const { stdout } = await world.run("check", "--state-dir", stateDir, "-o", "json");
    return JSON.parse(stdout) as readonly CheckResult[];
  };

  test("a state folder that others can write to", async () => {
    const state = path.join(dir, "state");
    mkdirSync(state);
    chmodSync(state, 0o777);
    expect(await checksOf(state)).toContainEqual(
      expect.objectContaining({
        level: "FAIL",
        name: "state folder",
        message: expect.stringContaining("chmod go-w") as unknown,
      }),
    );
    chmodSync(state, 0o700);
    expect(await checksOf(state)).toContainEqual(
      expect.objectContaining({ level: "OK", name: "state folder" }),
    );
  });

  test("an Envoy that is not there", async () => {
    world.env = { ENVOY_PATH: "/none/envoy" };
    expect(await checksOf(dir)).toContainEqual(
      expect.objectContaining({ level: "FAIL", name: "envoy" }),
    );
  });

  test("a port that is taken", async () => {
    const server = net.createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    expect(await checkPort(port, "--port")).toMatchObject({ level: "FAIL", name: "ports" });
    await new Promise((resolve) => server.close(resolve));
    expect(await checkPort(port, "--port")).toMatchObject({ level: "OK" });
  });
});
