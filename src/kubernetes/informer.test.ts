import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { KubeClient } from "./client.ts";
import { Informer, type InformerOptions } from "./informer.ts";
import { CORE, type KubeObject } from "./objects.ts";
import { FakeApiServer } from "./testing.ts";
import { eventually } from "../../e2e/support/wait.ts";

let server: FakeApiServer;
let clock: FakeClock;
let log: CapturedLog;
let informer: Informer;
/** Calls of listeners: `+name` (added), `~name` (changed), `-name` (deleted). */
let told: string[];

const at = (name: string): string => `/api/v1/namespaces/a/configmaps/${name}`;
const put = (name: string, value = "1"): KubeObject =>
  server.put(at(name), {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name },
    data: { value },
  });
const lists = () => server.requests.filter(({ query }) => query.get("watch") === null).length;
const watched = () => server.requests.filter(({ query }) => query.get("watch") === "true");

beforeEach(async () => {
  server = await FakeApiServer.start();
  clock = new FakeClock();
  log = new CapturedLog();
  told = [];
});

afterEach(async () => {
  await informer.stop();
  await server.stop();
});

function start(options: Partial<InformerOptions> = {}): Informer {
  informer = new Informer({
    client: new KubeClient(server.connect(), "test"),
    kind: CORE.configMap,
    clock,
    random: () => 1,
    log: log.log,
    ...options,
  });
  informer.onChange((name, object, before) => {
    const sign = object === undefined ? "-" : before === undefined ? "+" : "~";
    told.push(`${sign}${name}`);
  });
  return informer.start();
}

describe("list and watch", () => {
  test("lists what is there, and follows what changes", async () => {
    put("one");
    await start().synced;
    expect([...informer.objects.keys()]).toEqual(["a/one"]);
    expect(informer.objects.get("a/one")).toMatchObject({ apiVersion: "v1", kind: "ConfigMap" });
    await eventually(() => expect(server.watches).toBe(1));
    put("two");
    put("one", "2");
    server.remove(at("two"));
    await eventually(() => expect(told).toEqual(["+a/one", "+a/two", "~a/one", "-a/two"]));
    expect(informer.objects.get("a/one")?.["data"]).toEqual({ value: "2" });
    expect(lists()).toBe(1);
  });

  test("reads a list page by page", async () => {
    for (let i = 0; i < 1_201; i += 1) put(`object-${i}`);
    await start().synced;
    expect(informer.objects.size).toBe(1_201);
    expect(server.requests.map(({ query }) => query.get("continue")).slice(0, 3)).toEqual([
      null,
      "500",
      "1000",
    ]);
  });

  test("keeps what it is told to keep, and never the account of fields", async () => {
    server.put(at("one"), {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "one", managedFields: [{ manager: "x" }] },
      data: { value: "1" },
    });
    await start().synced;
    expect(informer.objects.get("a/one")?.metadata.managedFields).toBeUndefined();
    await informer.stop();
    await start({ keep: ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }) })
      .synced;
    expect(informer.objects.get("a/one")).not.toHaveProperty("data");
  });

  test("sees only what it selects", async () => {
    put("one");
    put("two");
    await start({ namespace: "a", selector: { fieldSelector: "metadata.name=two" } }).synced;
    expect([...informer.objects.keys()]).toEqual(["a/two"]);
  });
});

describe("a watch that ends", () => {
  test("is resumed from the newest bookmark, without a list", async () => {
    put("one");
    await start().synced;
    await eventually(() => expect(server.watches).toBe(1));
    server.bookmark();
    const version = String(Number(put("two").metadata.resourceVersion) - 1);
    server.remove(at("two"));
    await eventually(() => expect(told).toContain("-a/two"));
    server.bookmark();
    server.endWatches();
    await eventually(() => expect(watched()).toHaveLength(2));
    expect(Number(watched()[1]?.query.get("resourceVersion"))).toBeGreaterThan(Number(version));
    put("three");
    await eventually(() => expect(told).toContain("+a/three"));
    expect(lists()).toBe(1);
    expect(told).toEqual(["+a/one", "+a/two", "-a/two", "+a/three"]);
  });

  test("at once, each time, is asked for less and less often", async () => {
    server.answer = ({ query }) => (query.get("watch") === "true" ? { status: 200 } : undefined);
    await start().synced;
    await eventually(() => expect(clock.pending).toEqual([1_000]));
    clock.advance(1_000);
    await eventually(() => expect(clock.pending).toEqual([2_000]));
  });

  test("with 410 begins again with a list, at once, and tells what was deleted meanwhile", async () => {
    put("one");
    put("two");
    await start().synced;
    await eventually(() => expect(server.watches).toBe(1));
    server.bookmark();
    // Nobody watches while these happen, and then nothing is known of them.
    server.cut();
    await eventually(() => expect(clock.pending).toHaveLength(1));
    server.remove(at("one"));
    put("two", "2");
    server.forget();
    clock.advance(500);
    await eventually(() => expect(told).toEqual(["+a/one", "+a/two", "~a/two", "-a/one"]));
    expect([...informer.objects.keys()]).toEqual(["a/two"]);
  });

  test("with 410 again and again is not asked for without end", async () => {
    server.answer = ({ query }) =>
      query.get("watch") === "true"
        ? { status: 200, body: { type: "ERROR", object: { code: 410, reason: "Expired" } } }
        : undefined;
    await start().synced;
    await eventually(() => expect(clock.pending).toHaveLength(1));
    expect(lists()).toBe(2);
  });
});

describe("a server with trouble", () => {
  test("429 is obeyed", async () => {
    server.answer = () => ({ status: 429, headers: { "retry-after": "7" } });
    start();
    await eventually(() => expect(clock.pending).toEqual([7_000]));
    server.answer = () => undefined;
    put("one");
    clock.advance(7_000);
    await informer.synced;
    expect(told).toEqual(["+a/one"]);
  });

  test("a broken connection is resumed without a list; delays double up to 30 s", async () => {
    put("one");
    await start().synced;
    await eventually(() => expect(server.watches).toBe(1));
    server.bookmark();
    const delays: number[] = [];
    for (let i = 0; i < 9; i += 1) {
      server.cut();
      await eventually(() => expect(clock.pending).toHaveLength(1));
      delays.push(clock.pending[0] ?? 0);
      const seen = watched().length;
      clock.advance(clock.pending[0] ?? 0);
      await eventually(() => expect(watched().length).toBe(seen + 1));
      await eventually(() => expect(server.watches).toBe(1));
    }
    expect(delays.slice(0, 4)).toEqual([500, 1_000, 2_000, 4_000]);
    expect(delays.at(-1)).toBe(30_000);
    expect(lists()).toBe(1);
    put("two");
    await eventually(() => expect(told).toContain("+a/two"));
    server.cut();
    await eventually(() => expect(clock.pending).toEqual([500]));
  });

  test.each([
    [404, "install the CustomResourceDefinition of ConfigMap"],
    [403, "grant get, list and watch of configmaps"],
    [401, "renew the credentials"],
  ])("%i is logged with its remedy, and tried again", async (status, remedy) => {
    server.answer = () => ({ status, body: { message: "the server's own words" } });
    start();
    await eventually(() => expect(clock.pending).toHaveLength(1));
    expect(log.lines[0]).toMatchObject({ status, error: "the server's own words" });
    expect(log.lines[0]?.["fix"]).toContain(remedy);
    server.answer = () => undefined;
    clock.advance(500);
    await informer.synced;
  });

  test("a line that is not JSON is a failure of the watch, and not of the process", async () => {
    put("one");
    server.answer = ({ query }) =>
      query.get("watch") === "true" ? { status: 200, body: "no event" } : undefined;
    await start().synced;
    await eventually(() => expect(clock.pending).toHaveLength(1));
    server.answer = () => undefined;
    clock.advance(500);
    await eventually(() => expect(server.watches).toBe(1));
  });

  test("stops while a list does not end", async () => {
    server.answer = () => "hang";
    start();
    await eventually(() => expect(server.requests).toHaveLength(1));
    await informer.stop();
  });
});

test("a listener that throws is logged, and the others are called", async () => {
  start();
  informer.onChange(() => {
    throw new Error("a defect");
  });
  const last: string[] = [];
  informer.onChange((name) => last.push(name));
  put("one");
  await eventually(() => expect(last).toEqual(["a/one"]));
  put("two");
  await eventually(() => expect(last).toEqual(["a/one", "a/two"]));
  expect(JSON.stringify(log.lines)).toContain("a listener failed");
});
