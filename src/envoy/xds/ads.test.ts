/** The discovery service over real gRPC, with a client that plays Envoy. */
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AdsServer } from "./ads.ts";
import { ProtoRegistry } from "../protobuf/registry.ts";
import { type ResourceType, SnapshotEncoder, TypeUrl } from "./snapshot.ts";

const protos = ProtoRegistry.load(path.join(import.meta.dirname, "../../gen/envoy.binpb"));
const same = (bytes: Buffer): Buffer => bytes;
const cluster = (name: string, timeout = "1s"): JsonObject => ({ name, connectTimeout: timeout });
const route = (name: string): JsonObject => ({ name });

interface Response {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources?: readonly { readonly name: string; readonly version: string }[];
  readonly removedResources?: readonly string[];
}

/** Simulates one Envoy: subscribes, and answers each response as configured. */
class FakeEnvoy {
  readonly received: Response[] = [];
  readonly #call: grpc.ClientDuplexStream<Buffer, Buffer>;
  readonly #waiting: ((response: Response) => void)[] = [];
  readonly #unread: Response[] = [];

  constructor(client: grpc.Client) {
    this.#call = client.makeBidiStreamRequest(
      "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources",
      same,
      same,
    );
    this.#call.on("error", () => undefined);
    this.#call.on("data", (bytes: Buffer) => {
      const response = protos.decodeToJson(
        "envoy.service.discovery.v3.DeltaDiscoveryResponse",
        bytes,
      ) as unknown as Response;
      this.received.push(response);
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#unread.push(response);
      else waiting(response);
    });
  }

  send(type: ResourceType, fields: JsonObject = {}): void {
    const json = { node: { id: "envoy-1" }, typeUrl: TypeUrl[type], ...fields };
    this.#call.write(
      Buffer.from(protos.encode("envoy.service.discovery.v3.DeltaDiscoveryRequest", json)),
    );
  }

  next(): Promise<Response> {
    const unread = this.#unread.shift();
    return unread === undefined
      ? new Promise((resolve) => this.#waiting.push(resolve))
      : Promise.resolve(unread);
  }

  ack(type: ResourceType, response: Response): void {
    this.send(type, { responseNonce: response.nonce });
  }

  nack(type: ResourceType, response: Response, message: string): void {
    this.send(type, { responseNonce: response.nonce, errorDetail: { message } });
  }

  close(): void {
    this.#call.cancel();
  }
}

const names = (response: Response): string[] =>
  (response.resources ?? []).map((resource) => resource.name).toSorted();

let dir: string;
let server: grpc.Server;
let client: grpc.Client;
let ads: AdsServer;
let nacks: string[];
/** Called whenever the server reports progress. */
let checks: Set<() => void>;
let encoder: SnapshotEncoder;

beforeEach(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-ads-"));
  nacks = [];
  checks = new Set();
  encoder = new SnapshotEncoder(protos);
  ads = new AdsServer({
    registry: protos,
    onNack: (node, type, nack) => nacks.push(`${node} ${type} ${nack.message}`),
    onProgress: () => {
      for (const check of checks) check();
    },
  });
  server = new grpc.Server();
  ads.register(server);
  const address = `unix:${path.join(dir, "s.sock")}`;
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(address, grpc.ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    ),
  );
  client = new grpc.Client(address, grpc.credentials.createInsecure());
});

afterEach(() => {
  client.close();
  server.forceShutdown();
  rmSync(dir, { recursive: true, force: true });
});

function set(clusters: JsonObject[], routes: JsonObject[] = []): void {
  ads.setSnapshot(encoder.encode({ cluster: clusters, listener: [], route: routes }));
}

test("everything first, then only what changed, then what went", async () => {
  set([cluster("a"), cluster("b")]);
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  const first = await envoy.next();
  expect(names(first)).toEqual(["a", "b"]);
  envoy.ack("cluster", first);
  set([cluster("a"), cluster("b", "2s"), cluster("c")]);
  const second = await envoy.next();
  expect(names(second)).toEqual(["b", "c"]);
  envoy.ack("cluster", second);
  set([cluster("c")]);
  const third = await envoy.next();
  expect(names(third)).toEqual([]);
  expect(third.removedResources?.toSorted()).toEqual(["a", "b"]);
});

test("what is referred to goes first, and is acknowledged before what refers to it is sent", async () => {
  set([cluster("a")], [route("r")]);
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  envoy.send("route", { resourceNamesSubscribe: ["r"] });
  const first = await envoy.next();
  expect(first.typeUrl).toBe(TypeUrl.cluster);
  envoy.ack("cluster", first);
  expect((await envoy.next()).typeUrl).toBe(TypeUrl.route);
});

test("a removal waits until what might refer to it has changed", async () => {
  set([cluster("a"), cluster("b")], [route("r")]);
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  envoy.ack("cluster", await envoy.next());
  envoy.send("route", { resourceNamesSubscribe: ["r"] });
  envoy.ack("route", await envoy.next());
  set([cluster("b")], [{ name: "r", virtualHosts: [{ name: "v", domains: ["*"] }] }]);
  const first = await envoy.next();
  expect(first.typeUrl).toBe(TypeUrl.route);
  envoy.ack("route", first);
  expect(await envoy.next()).toMatchObject({ typeUrl: TypeUrl.cluster, removedResources: ["a"] });
});

test("a refusal is reported and shown, not repeated, and gone when the resource is mended", async () => {
  set([cluster("a")]);
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  envoy.nack("cluster", await envoy.next(), "bad cluster a");
  set([cluster("a"), cluster("b")]);
  const second = await envoy.next();
  expect(names(second)).toEqual(["b"]);
  expect(nacks).toEqual(["envoy-1 cluster bad cluster a"]);
  expect(ads.status()[0]?.nacks).toEqual([
    { type: "cluster", message: "bad cluster a", resources: ["a"] },
  ]);
  envoy.ack("cluster", second);
  set([cluster("a", "3s"), cluster("b")]);
  const third = await envoy.next();
  expect(names(third)).toEqual(["a"]);
  envoy.ack("cluster", third);
  set([cluster("a", "3s"), cluster("b", "4s")]);
  await envoy.next();
  expect(ads.status()[0]?.nacks).toEqual([]);
});

test("each type has its version, and the node's answer for it", async () => {
  const typeOf = (type: ResourceType) => ads.status()[0]?.types.find((one) => one.type === type);
  set([cluster("a"), cluster("b")]);
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  const first = await envoy.next();
  const pending = typeOf("cluster");
  expect(pending).toMatchObject({ resources: 2, state: "pending" });
  expect(typeOf("listener")).toMatchObject({ resources: 0, state: "pending" });
  envoy.ack("cluster", first);
  await until(() => typeOf("cluster")?.state === "acknowledged");
  expect(typeOf("cluster")?.version).toBe(pending?.version);
  // The order of resources is no difference.
  set([cluster("b"), cluster("a")]);
  expect(typeOf("cluster")).toEqual({ ...pending, state: "acknowledged" });
  set([cluster("a", "9s"), cluster("b")]);
  expect(typeOf("cluster")?.version).not.toBe(pending?.version);
  envoy.nack("cluster", await envoy.next(), "bad cluster a");
  await until(() => typeOf("cluster")?.state === "rejected");
});

/** Waits until the server has heard what makes a condition true. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise<void>((resolve) => checks.add(resolve));
}

/** Waits until the server's answers for some clusters are as wanted. */
async function answered(wanted: Readonly<Record<string, string>>): Promise<void> {
  const actual = () =>
    Object.fromEntries(
      Object.keys(wanted).map((name) => {
        const answer = ads.answerFor(name.split(" "));
        return [
          name,
          answer.kind === "accepted" ? "accepted" : `${answer.kind}: ${answer.message}`,
        ];
      }),
    );
  await new Promise<void>((resolve) => {
    const check = () => {
      if (JSON.stringify(actual()) === JSON.stringify(wanted)) resolve();
    };
    checks.add(check);
    check();
  });
}

test("a rejection counts for the cluster that it names, until another version is accepted", async () => {
  const [a, b] = ["upstream/n/p@http://h:80", "upstream/n/p@http://h:8080"];
  set([cluster(a), cluster(b), cluster("c")]);
  await answered({ [a]: "pending: no Envoy is connected" });
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  const first = await envoy.next();
  expect(ads.answerFor([a])).toEqual({ kind: "pending", message: "there is no answer yet" });
  const message = `Error adding/updating cluster(s) ${a}: no CA`;
  envoy.nack("cluster", first, message);
  await answered({
    [a]: `rejected: ${a}: no CA`,
    [b]: "accepted",
    c: "accepted",
    [`c ${a}`]: `rejected: ${a}: no CA`,
    d: "pending: it was not sent yet",
  });
  // A change of another cluster of the same response.
  set([cluster(a), cluster(b, "2s"), cluster("c")]);
  envoy.ack("cluster", await envoy.next());
  await answered({ [a]: `rejected: ${a}: no CA`, [b]: "accepted" });
  set([cluster(a, "2s"), cluster(b, "2s"), cluster("c")]);
  const third = await envoy.next();
  expect(names(third)).toEqual([a]);
  envoy.ack("cluster", third);
  await answered({ [a]: "accepted" });
  set([cluster(b, "2s"), cluster("c")]);
  envoy.ack("cluster", await envoy.next());
  await answered({ [a]: "pending: it was not sent yet" });
  envoy.close();
  await answered({ c: "pending: no Envoy is connected" });
});

test("a rejection that names nothing counts for everything that it answers", async () => {
  set([cluster("a"), cluster("b")]);
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  envoy.nack("cluster", await envoy.next(), "out of memory");
  await answered({ a: "rejected: out of memory", b: "rejected: out of memory" });
});

test("an Envoy that comes back with what it has is sent only what it lacks", async () => {
  set([cluster("a"), cluster("b")]);
  const before = new FakeEnvoy(client);
  before.send("cluster");
  const all = await before.next();
  before.close();
  set([cluster("a"), cluster("b"), cluster("c")]);
  const versions = Object.fromEntries(
    (all.resources ?? []).map((resource) => [resource.name, resource.version]),
  );
  const after = new FakeEnvoy(client);
  after.send("cluster", { initialResourceVersions: { ...versions, gone: "1" } });
  const first = await after.next();
  expect(names(first)).toEqual(["c"]);
  after.ack("cluster", first);
  expect((await after.next()).removedResources).toEqual(["gone"]);
});

test("several nodes at once, each at its own pace", async () => {
  set([cluster("a")]);
  const slow = new FakeEnvoy(client);
  slow.send("cluster");
  const unanswered = await slow.next();
  const quick = new FakeEnvoy(client);
  quick.send("cluster", { node: { id: "envoy-2" } });
  quick.ack("cluster", await quick.next());
  set([cluster("a"), cluster("b")]);
  expect(names(await quick.next())).toEqual(["b"]);
  expect(slow.received).toHaveLength(1);
  slow.ack("cluster", unanswered);
  expect(names(await slow.next())).toEqual(["b"]);
  expect(
    ads
      .status()
      .map((node) => node.node)
      .toSorted(),
  ).toEqual(["envoy-1", "envoy-2"]);
});

test("resources are encoded again only when they changed", () => {
  const first = encoder.encode({ cluster: [cluster("a"), cluster("b")], listener: [], route: [] });
  const second = encoder.encode({
    cluster: [cluster("a"), cluster("b", "2s")],
    listener: [],
    route: [],
  });
  expect(second.cluster.get("a")).toBe(first.cluster.get("a"));
  expect(second.cluster.get("b")?.version).not.toBe(first.cluster.get("b")?.version);
});

test("a resource that does not fit its message names the field", () => {
  expect(() => set([{ name: "a", conectTimeout: "1s" }])).toThrow(/conectTimeout/);
  expect(() => set([cluster("a"), cluster("a", "2s")])).toThrow(/two cluster resources named a/);
});

test("settled: when every node has answered for everything, or too late", async () => {
  const timers: (() => void)[] = [];
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    after: (_ms: number, callback: () => void) => (timers.push(callback), () => undefined),
  };
  expect(await ads.settled(1, clock)).toBe(true); // no Envoy is connected
  ads.setSnapshot(
    encoder.encode({
      cluster: [cluster("a")],
      listener: [cluster("l")].map(({ name }) => ({ name: name as string })),
      route: [route("r")],
    }),
  );
  const envoy = new FakeEnvoy(client);
  envoy.send("cluster");
  const clusters = await envoy.next();
  const settled = ads.settled(1, clock);
  envoy.ack("cluster", clusters);
  envoy.send("listener");
  envoy.ack("listener", await envoy.next());
  envoy.send("route", { resourceNamesSubscribe: ["r"] });
  envoy.ack("route", await envoy.next());
  expect(await settled).toBe(true);
  set([cluster("a", "2s")], [route("r")]);
  await envoy.next();
  const late = ads.settled(1, clock);
  timers.at(-1)?.();
  expect(await late).toBe(false);
});
