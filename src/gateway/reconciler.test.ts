/**
 * The gateway's configuration from a source to statuses, with a source and an Envoy of the test.
 */
import { createHash } from "node:crypto";
import path from "node:path";
import { expect, test } from "vitest";
import { compile } from "../compile/compile.ts";
import { ProtoRegistry } from "../envoy/protobuf/registry.ts";
import { SnapshotEncoder } from "../envoy/xds/snapshot.ts";
import { CapturedLog, FakeClock, settled } from "../platform/testing.ts";
import { PolicyStore } from "../policy/store.ts";
import { parseDocuments } from "../resources/parse.ts";
import { buildResourceSet } from "../resources/resource-set.ts";
import { type LoadResult, NO_GENERATIONS } from "../sources/load-result.ts";
import type { Source } from "../sources/source.ts";
import { Reconciler } from "./reconciler.ts";
import { Rollout } from "./rollout.ts";
import { gatewaySurfaces } from "./surfaces.ts";
import { ATTEMPT_PROCESSOR } from "../llm/surface.ts";
import { StatusPublisher } from "./status-publisher.ts";
import { type StatusSink, StatusTable } from "./status-sink.ts";

const protos = ProtoRegistry.load(path.join(import.meta.dirname, "../gen/envoy.binpb"));
const START = Date.UTC(2026, 10, 22, 12);

const MOCK =
  "apiVersion: svc.io/v1\nkind: ModelProvider\nmetadata: {name: mock}\nspec: {provider: " +
  "mock, externalAccess: {enabled: true}}\n";
const key = (name: string, expiresAt: string): string =>
  `---\napiVersion: svc.io/v1\nkind: AccessKey\nmetadata: {name: ${name}}\nspec: ` +
  `{modelProvider: mock, keySHA256: ${createHash("sha256").update(name).digest("hex")}, ` +
  `expiresAt: "${expiresAt}"}\n`;
const agent = (name: string): string =>
  `---\napiVersion: svc.io/v1\nkind: Agent\nmetadata: {name: ${name}}\nspec: {models: [mock/*]}\n`;

function loadOf(text: string): LoadResult {
  const { resources, problems } = parseDocuments(text, "f.yaml");
  return { resources: buildResourceSet(resources), problems, generations: NO_GENERATIONS };
}

class FakeSource implements Source {
  readonly #listeners = new Set<(load: LoadResult) => void>();
  #load: LoadResult;

  constructor(text: string) {
    this.#load = loadOf(text);
  }

  change(text: string): void {
    this.#load = loadOf(text);
    for (const listener of this.#listeners) listener(this.#load);
  }

  current(): LoadResult {
    return this.#load;
  }

  async refresh(): Promise<LoadResult> {
    return this.#load;
  }

  onChange(listener: (load: LoadResult) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  placeOf(): undefined {
    return undefined;
  }

  async close(): Promise<void> {
    this.#listeners.clear();
  }
}

class World {
  readonly clock = new FakeClock(START);
  readonly captured = new CapturedLog();
  readonly policy = new PolicyStore();
  readonly table = new StatusTable(this.clock);
  /** Names of the objects of each publication. */
  readonly published: string[][] = [];
  /** Answers of Envoy to the configurations that it was sent, in order. */
  readonly answers: ((settled: boolean) => void)[] = [];
  readonly source: FakeSource;
  readonly rollout: Rollout;
  readonly reconciler: Reconciler;
  /** Makes the next compilations fail. */
  broken = false;

  constructor(text: string) {
    const { clock, captured } = this;
    const sink: StatusSink = {
      publish: (statuses) => {
        this.published.push(statuses.map(({ name }) => name));
        this.table.publish(statuses);
      },
    };
    const publisher = new StatusPublisher({
      sinks: [sink],
      answers: { answerFor: () => ({ kind: "accepted" }) },
    });
    this.source = new FakeSource(text);
    this.rollout = new Rollout({
      ads: {
        setSnapshot: () => undefined,
        settled: () => new Promise((resolve) => this.answers.push(resolve)),
      },
      encoder: new SnapshotEncoder(protos),
      policy: this.policy,
      inForce: (compiled) => publisher.inForce(compiled),
      envoy: {
        gateway: { address: "127.0.0.1", port: 8000 },
        external: undefined,
        caFile: "/ca.pem",
        runDir: "/run/svc",
        surfaces: gatewaySurfaces({ uploadIdleMs: 15_000 }),
        attempts: ATTEMPT_PROCESSOR,
      },
      clock,
      log: captured.log,
    });
    this.reconciler = new Reconciler({
      source: this.source,
      compile: (load, now) => {
        if (this.broken) throw new Error("a defect");
        return compile(load, {
          env: {},
          now,
          tokenHashesOf: (namespace, name) => [`${namespace}/${name}`],
          guardEndpoint: undefined,
          mockEndpoint: { host: "127.0.0.1", port: 1, tls: false, basePath: "/v1" },
          service: () => undefined,
        });
      },
      rollout: this.rollout,
      clock,
      log: captured.log,
    });
  }

  async answer(): Promise<void> {
    this.answers.shift()?.(true);
    await settled();
  }

  reasons(): Record<string, string> {
    return Object.fromEntries(this.table.current.map(({ name, reason }) => [name, reason]));
  }
}

test("statuses are published when Envoy has answered, and not before", async () => {
  const world = new World(MOCK + agent("a"));
  expect(world.table.current).toEqual([]);
  await world.answer();
  expect(world.reasons()).toEqual({ a: "Ready", mock: "Ready" });
  world.source.change(MOCK + agent("b"));
  await settled();
  expect(Object.keys(world.reasons())).toEqual(["a", "mock"]);
  await world.answer();
  expect(Object.keys(world.reasons())).toEqual(["b", "mock"]);
});

test("statuses of a superseded compilation are never published", async () => {
  const world = new World(MOCK + agent("a"));
  world.source.change(MOCK + agent("b"));
  world.source.change(MOCK + agent("c"));
  await world.answer();
  await world.answer();
  await world.rollout.idle();
  expect(world.published).toEqual([
    ["a", "mock"],
    ["c", "mock"],
  ]);
});

test("a key expires at its time, and its condition changes then", async () => {
  const world = new World(
    MOCK + key("soon", "2026-11-22T12:10:00Z") + key("later", "2026-11-22T13:00:00Z"),
  );
  await world.answer();
  expect(world.reasons()).toEqual({ soon: "Ready", later: "Ready", mock: "Ready" });
  world.clock.advance(600_000 - 1);
  await settled();
  expect(world.answers).toHaveLength(0);
  world.clock.advance(1);
  await settled();
  await world.answer();
  expect(world.reasons()).toEqual({ soon: "KeyExpired", later: "Ready", mock: "Ready" });
  const conditions = world.table.current.map(({ name, conditions: [ready] }) => [
    name,
    ready?.status,
    ready?.lastTransitionTime,
  ]);
  expect(conditions).toEqual([
    ["later", "True", "2026-11-22T12:00:00Z"],
    ["soon", "False", "2026-11-22T12:10:00Z"],
    ["mock", "True", "2026-11-22T12:00:00Z"],
  ]);
  world.clock.advance(3_000_000);
  await settled();
  await world.answer();
  expect(world.reasons()).toMatchObject({ later: "KeyExpired" });
});

test("a compilation that fails leaves everything as it was, and is logged", async () => {
  const world = new World(MOCK + agent("a"));
  await world.answer();
  const { version } = world.policy.current;
  world.broken = true;
  world.source.change(`${MOCK + agent("b")}---\nkind: [`);
  await settled();
  expect(Object.keys(world.reasons())).toEqual(["a", "mock"]);
  expect(world.policy.current.version).toBe(version);
  expect(world.reconciler.problems).toEqual([]);
  expect(world.captured.lines.at(-1)).toMatchObject({
    msg: "not applied; the last good state stays in force",
  });
  world.broken = false;
  world.source.change(`${MOCK + agent("b")}---\nkind: [`);
  await world.answer();
  expect(Object.keys(world.reasons())).toEqual(["b", "mock"]);
  expect(world.reconciler.problems).toHaveLength(1);
});

test("a problem is logged once, however often the rest changes, and again when it comes back", async () => {
  const broken = "---\nkind: [";
  const world = new World(MOCK + agent("a") + broken);
  const told = () =>
    world.captured.lines.filter(({ msg }) => msg === "resource not in use as written").length;
  expect(told()).toBe(1);
  for (const name of ["b", "c", "d"]) world.source.change(MOCK + agent(name) + broken);
  await settled();
  expect(told()).toBe(1);
  world.source.change(MOCK + agent("d"));
  await settled();
  world.source.change(MOCK + agent("d") + broken);
  await settled();
  expect(told()).toBe(2);
});

test("a first load that cannot be compiled is an error", () => {
  expect(
    () =>
      new Reconciler({
        source: new FakeSource(MOCK),
        compile: () => {
          throw new Error("a defect");
        },
        rollout: { apply: () => undefined },
        clock: new FakeClock(),
        log: new CapturedLog().log,
      }),
  ).toThrow("a defect");
});

test("a closed one follows neither its source nor the time", async () => {
  const world = new World(MOCK + key("soon", "2026-11-22T12:10:00Z"));
  await world.answer();
  world.reconciler.close();
  world.source.change(MOCK + agent("b"));
  world.clock.advance(3_600_000);
  await settled();
  expect(world.reasons()).toEqual({ soon: "Ready", mock: "Ready" });
  expect(world.answers).toHaveLength(0);
});
