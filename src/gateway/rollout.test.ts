import path from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { Compiled } from "../compile/compile.ts";
import { ATTEMPT_PROCESSOR } from "../llm/surface.ts";
import type { Clock } from "../platform/clock.ts";
import type { PolicySnapshot, ModelProviderPolicy } from "../policy/snapshot.ts";
import { PolicyStore } from "../policy/store.ts";
import { ProtoRegistry } from "../envoy/protobuf/registry.ts";
import { SnapshotEncoder, type XdsSnapshot } from "../envoy/xds/snapshot.ts";
import { EMPTY_RESOURCE_SET } from "../resources/resource-set.ts";
import { Rollout } from "./rollout.ts";
import { gatewaySurfaces } from "./surfaces.ts";

const protos = ProtoRegistry.load(path.join(import.meta.dirname, "../gen/envoy.binpb"));

/** A policy of one provider at a host. */
function policyAt(version: string, host: string): PolicySnapshot {
  const provider = {
    key: "default/p",
    endpoint: { tls: false, host, port: 80, basePath: "" },
  } as ModelProviderPolicy;
  return {
    version,
    agentsByTokenHash: new Map(),
    keysByHash: new Map(),
    providers: new Map([["default/p", provider]]),
    mcpServers: new Map(),
    closedMcpServers: new Map(),
  };
}

/** The result of compiling a provider at a host. */
function compiledAt(version: string, host: string): Compiled {
  return {
    resources: EMPTY_RESOURCE_SET,
    policy: policyAt(version, host),
    sidecars: new Map(),
    missing: new Map(),
    prices: {},
    statuses: [],
    recheckAt: undefined,
  };
}

class World {
  readonly policy = new PolicyStore();
  /** Versions that came into force, with the version that requests used then. */
  readonly inForce: (readonly [string, string])[] = [];
  readonly pushed: XdsSnapshot[] = [];
  /** Answers of Envoy to pushes, in order. */
  readonly answer: ((settled: boolean) => void)[] = [];
  readonly timers: { readonly ms: number; readonly callback: () => void }[] = [];
  readonly rollout: Rollout;

  constructor() {
    const clock: Clock = {
      now: () => 0,
      monotonic: () => 0,
      after: (ms, callback) => {
        this.timers.push({ ms, callback });
        return () => undefined;
      },
    };
    this.rollout = new Rollout({
      ads: {
        setSnapshot: (snapshot) => void this.pushed.push(snapshot),
        settled: () => new Promise((resolve) => this.answer.push(resolve)),
      },
      encoder: new SnapshotEncoder(protos),
      policy: this.policy,
      inForce: ({ policy }) => this.inForce.push([policy.version, this.policy.current.version]),
      envoy: {
        gateway: { address: "127.0.0.1", port: 8000 },
        external: undefined,
        caFile: "/ca.pem",
        runDir: "/run/svc",
        surfaces: gatewaySurfaces({ uploadIdleMs: 15_000 }),
        attempts: ATTEMPT_PROCESSOR,
      },
      clock,
      log: pino({ level: "silent" }),
    });
  }

  async answered(settled = true): Promise<void> {
    this.answer.shift()?.(settled);
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Hosts of the direct clusters last sent to Envoy. */
  hosts(): string[] {
    return [...(this.pushed.at(-1)?.cluster.keys() ?? [])]
      .filter((name) => name.startsWith("upstream/"))
      .map((name) => new URL(name.slice(name.indexOf("@") + 1)).hostname)
      .toSorted();
  }
}

test("requests see a policy when Envoy has its clusters, and not before", async () => {
  const world = new World();
  world.rollout.apply(compiledAt("1", "a.test"));
  expect(world.hosts()).toEqual(["a.test"]);
  expect(world.policy.current.version).toBe("empty");
  await world.answered();
  expect(world.policy.current.version).toBe("1");
});

test("the old address stays until calls that began before cannot use it any more", async () => {
  const world = new World();
  world.rollout.apply(compiledAt("1", "a.test"));
  await world.answered();
  world.rollout.apply(compiledAt("2", "b.test"));
  expect(world.hosts()).toEqual(["a.test", "b.test"]);
  await world.answered();
  expect(world.hosts()).toEqual(["a.test", "b.test"]);
  world.timers[0]?.callback();
  expect(world.hosts()).toEqual(["b.test"]);
});

test("an address that comes back is not removed by its own retirement", async () => {
  const world = new World();
  for (const [version, host] of [
    ["1", "a.test"],
    ["2", "b.test"],
    ["3", "a.test"],
  ] as const) {
    world.rollout.apply(compiledAt(version, host));
    await world.answered();
  }
  for (const timer of world.timers) timer.callback();
  expect(world.hosts()).toEqual(["a.test"]);
});

test("of several that wait only the newest comes into force", async () => {
  const world = new World();
  world.rollout.apply(compiledAt("1", "a.test"));
  world.rollout.apply(compiledAt("2", "b.test"));
  world.rollout.apply(compiledAt("3", "c.test"));
  await world.answered();
  expect(world.policy.current.version).toBe("1");
  await world.answered();
  expect(world.policy.current.version).toBe("3");
  expect(world.pushed).toHaveLength(2);
});

test("is idle once what was given is in force", async () => {
  const world = new World();
  await world.rollout.idle();
  world.rollout.apply(compiledAt("1", "a.test"));
  world.rollout.apply(compiledAt("2", "b.test"));
  const inForce = world.rollout.idle().then(() => world.policy.current.version);
  await world.answered();
  await world.answered();
  expect(await inForce).toBe("2");
});

test("what is given in the moment that the last comes into force is not forgotten", async () => {
  const world = new World();
  world.rollout.apply(compiledAt("1", "a.test"));
  const swapped = world.policy.swap.bind(world.policy);
  world.policy.swap = (next) => {
    swapped(next);
    if (next.version === "1") queueMicrotask(() => world.rollout.apply(compiledAt("2", "b.test")));
  };
  await world.answered();
  await world.answered();
  expect(world.policy.current.version).toBe("2");
});

test("an Envoy that does not answer holds nothing back for ever", async () => {
  const world = new World();
  world.rollout.apply(compiledAt("1", "a.test"));
  await world.answered(false);
  expect(world.policy.current.version).toBe("1");
});

test("a configuration that cannot be made leaves the last one in force", async () => {
  const world = new World();
  world.rollout.apply(compiledAt("1", "a.test"));
  await world.answered();
  const broken = {
    ...policyAt("2", "b.test"),
    providers: undefined as unknown as PolicySnapshot["providers"],
  };
  world.rollout.apply({ ...compiledAt("2", "b.test"), policy: broken });
  await new Promise((resolve) => setImmediate(resolve));
  expect(world.policy.current.version).toBe("1");
  world.rollout.apply(compiledAt("3", "c.test"));
  await world.answered();
  expect(world.policy.current.version).toBe("3");
});

test("what comes into force is told once requests use it; what is superseded or fails is not", async () => {
  const world = new World();
  world.rollout.apply(compiledAt("1", "a.test"));
  world.rollout.apply(compiledAt("2", "b.test"));
  world.rollout.apply(compiledAt("3", "c.test"));
  expect(world.inForce).toEqual([]);
  await world.answered();
  await world.answered();
  const providers = undefined as unknown as PolicySnapshot["providers"];
  const policy = { ...policyAt("4", "d.test"), providers };
  world.rollout.apply({ ...compiledAt("4", "d.test"), policy });
  await world.rollout.idle();
  expect(world.inForce).toEqual([
    ["1", "1"],
    ["3", "3"],
  ]);
});
