import { afterEach, beforeEach, expect, test } from "vitest";
import { KubeClient } from "../kubernetes/client.ts";
import { EventRecorder } from "../kubernetes/events.ts";
import type { KubeObject } from "../kubernetes/objects.ts";
import { FakeApiServer } from "../kubernetes/testing.ts";
import { FakeClock } from "../platform/testing.ts";
import { StatusWriter } from "./status-writer.ts";

const PATH = "/apis/svc.io/v1/namespaces/team/agents/writer";

let server: FakeApiServer;
let clock: FakeClock;
let writer: StatusWriter;

beforeEach(async () => {
  server = await FakeApiServer.start();
  clock = new FakeClock();
  const client = new KubeClient(server.connect(), "svc-controller");
  writer = new StatusWriter(client, new EventRecorder(client, "svc-controller", clock), clock);
  server.put(PATH, { apiVersion: "svc.io/v1", kind: "Agent", metadata: { name: "writer" } });
});

afterEach(() => server.stop());

function found(): KubeObject {
  const object = server.get(PATH);
  if (object === undefined) throw new Error("it does not exist");
  return object;
}

const ready = { ready: true, reason: "Ready", message: "", observedGeneration: 4 } as const;
const failed = {
  ready: false,
  reason: "RunsAsRoot",
  message: "no",
  observedGeneration: 5,
} as const;
const events = () => server.writes.filter(({ path }) => path.endsWith("/events"));
const conditions = () => (found()["status"] as { conditions: readonly object[] }).conditions;

test("writes what differs, and nothing twice", async () => {
  expect(await writer.write(found(), { ...ready, fields: { phase: "Running" } })).toBe(true);
  // The generation that was judged, and not that of the object.
  expect(found()["status"]).toMatchObject({ ready: true, observedGeneration: 4, phase: "Running" });
  expect(await writer.write(found(), { ...ready, fields: { phase: "Running" } })).toBe(false);
  expect(await writer.write(found(), { ...ready, fields: { phase: undefined } })).toBe(true);
  expect(found()["status"]).not.toHaveProperty("phase");
});

test("a condition has the time of its last transition", async () => {
  await writer.write(found(), ready);
  const [first] = conditions() as readonly { lastTransitionTime: string }[];
  clock.step(60_000);
  await writer.write(found(), { ...ready, message: "another" });
  expect(conditions()).toMatchObject([{ lastTransitionTime: first?.lastTransitionTime }]);
  await writer.write(found(), failed);
  expect(conditions()).not.toMatchObject([{ lastTransitionTime: first?.lastTransitionTime }]);
});

test("conditions and fields of others are no difference", async () => {
  await writer.write(found(), ready);
  const status = found()["status"] as object;
  const others = [...conditions(), { type: "Other", status: "True" }];
  server.put(PATH, { ...found(), status: { ...status, conditions: others, tokensToday: 5 } });
  expect(await writer.write(found(), ready)).toBe(false);
});

test("a reason that changes is an event; that a new object is in use is none", async () => {
  await writer.write(found(), ready);
  expect(events()).toEqual([]);
  await writer.write(found(), failed);
  expect(events().map(({ body }) => body)).toMatchObject([
    { type: "Warning", reason: "RunsAsRoot", message: "no", involvedObject: { name: "writer" } },
  ]);
  await writer.write(found(), { ...failed, message: "still" });
  expect(events()).toHaveLength(1);
  await writer.write(found(), ready);
  expect(events()).toHaveLength(2);
});

test("an object that is gone is no error", async () => {
  const gone = found();
  server.remove(PATH);
  expect(await writer.write(gone, ready)).toBe(false);
});
