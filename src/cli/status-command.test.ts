import { beforeEach, describe, expect, test } from "vitest";
import type { PublishedStatus } from "../policy/status.ts";
import { CliError } from "./errors.ts";
import { CliWorld } from "./testing.ts";

let world: CliWorld;
beforeEach(() => {
  world = new CliWorld();
});

function object(name: string, more: Partial<PublishedStatus> = {}): PublishedStatus {
  return {
    kind: "Agent",
    namespace: "default",
    name,
    ready: true,
    reason: "Ready",
    message: "",
    conditions: [],
    ...more,
  };
}

const waiting = { ready: false, reason: "PodsNotReady", message: "0 of 1 pods" } as const;

function show(...objects: readonly PublishedStatus[]): void {
  world.backend.gateway = { ...world.backend.gateway, objects };
}

describe("svc status of named objects", () => {
  beforeEach(() => show(object("a"), object("b"), object("a", { namespace: "team" })));

  test.each([
    [["agent/b"], ["default/b"]],
    [["agents/a", "-n", "team"], ["team/a"]],
    [["-n", "team"], ["team/a"]],
    [[], ["default/a", "default/b", "team/a"]],
  ])("%j", async (args, shown) => {
    const { code, stdout } = await world.run("status", ...args, "-o", "json");
    const { objects } = JSON.parse(stdout) as { objects: { namespace: string; name: string }[] };
    expect(objects.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual(shown);
    expect(code).toBe(0);
  });

  test("one that does not exist", async () => {
    const { code, stderr } = await world.run("status", "agent/none");
    expect([code, stderr]).toEqual([1, "svc: agent/none does not exist in namespace default\n"]);
  });

  test.each([["agent"], ["agent/"], ["agent/a/b"], ["nothing/a"]])(
    "%s is a usage error",
    async (text) => {
      expect((await world.run("status", text)).code).toBe(2);
    },
  );
});

describe("svc status --wait", () => {
  test("waits until all are ready, and says what for", async () => {
    show(object("a", waiting), object("b"));
    world.onSleep = () => {
      if (world.slept === 3_000) show(object("a"), object("b"));
      return Promise.resolve();
    };
    const { code, stdout, stderr } = await world.run("status", "--wait");
    expect([code, world.slept]).toEqual([0, 3_000]);
    expect(stderr).toBe("Waiting for:\n  Agent default/a: PodsNotReady: 0 of 1 pods\n");
    expect(stdout).toContain("Agent  default/a  yes");
  });

  test("waits only for what is named, and for it to exist", async () => {
    show(object("a", waiting));
    world.onSleep = () => {
      show(object("a", waiting), object("b"));
      return Promise.resolve();
    };
    const { code, stderr } = await world.run("status", "agent/b", "--wait");
    expect([code, stderr]).toEqual([
      0,
      "Waiting for:\n  agent/b does not exist in namespace default\n",
    ]);
  });

  test("an object that is skipped is no reason to wait", async () => {
    show(object("a", { ready: false, reason: "Skipped" }));
    expect((await world.run("status", "--wait")).code).toBe(0);
    expect(world.slept).toBe(0);
  });

  test("gives up in time, with the reasons", async () => {
    show(object("a", waiting));
    world.backend.gateway = { ...world.backend.gateway, ready: false, reason: "Envoy is new" };
    const { code, stderr } = await world.run("status", "--wait", "--timeout", "5s");
    expect([code, world.slept]).toEqual([1, 5_000]);
    expect(stderr).toContain(
      "svc: not ready in time:\nsvc:   Envoy is new\nsvc:   Agent default/a: PodsNotReady",
    );
  });

  test("a gateway that does not answer yet is waited for", async () => {
    const status = world.backend.gateway;
    world.backend.status = () => Promise.reject(new CliError("nothing answers"));
    world.onSleep = () => {
      world.backend.status = () => Promise.resolve(status);
      return Promise.resolve();
    };
    const { code, stderr } = await world.run("status", "--wait");
    expect([code, stderr]).toEqual([0, "Waiting for:\n  nothing answers\n"]);
  });

  test("--timeout alone is a usage error", async () => {
    expect((await world.run("status", "--timeout", "5s")).code).toBe(2);
  });
});
