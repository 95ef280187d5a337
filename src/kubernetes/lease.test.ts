import { afterEach, beforeEach, expect, test } from "vitest";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { KubeClient } from "./client.ts";
import { LeaderElection } from "./lease.ts";
import { FakeApiServer } from "./testing.ts";
import { eventually } from "../../e2e/support/wait.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/svc-system/leases/svc-controller";

let server: FakeApiServer;
let log: CapturedLog;
let elections: LeaderElection[];

beforeEach(async () => {
  server = await FakeApiServer.start();
  log = new CapturedLog();
  elections = [];
});

afterEach(async () => {
  server.answer = () => undefined;
  await Promise.all(elections.map(async (election) => election.stop()));
  await server.stop();
});

function candidate(identity: string, clock = new FakeClock()) {
  const events: string[] = [];
  const election = new LeaderElection({
    client: new KubeClient(server.connect(), "test"),
    namespace: "svc-system",
    leaseName: "svc-controller",
    identity,
    leaseSeconds: 15,
    renewSeconds: 10,
    retrySeconds: 2,
    clock,
    log: log.log,
    onStarted: () => events.push("started"),
    onStopped: () => events.push("stopped"),
  });
  elections.push(election);
  return { election, clock, events };
}

const specOf = (): Record<string, unknown> =>
  (server.get(LEASE)?.["spec"] ?? {}) as Record<string, unknown>;

/** Resolves when a candidate waits for its next attempt. */
async function waits({ clock }: { readonly clock: FakeClock }): Promise<void> {
  await eventually(() => expect(clock.pending).toEqual([2_000]));
}

/** Lets time pass for a candidate, attempt by attempt. */
async function pass(one: { readonly clock: FakeClock }, seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left -= 2) {
    await waits(one);
    const seen = server.requests.length;
    one.clock.advance(2_000);
    await eventually(() => expect(server.requests.length).toBeGreaterThan(seen));
    await waits(one);
  }
}

test("the first candidate leads, and renews", async () => {
  const one = candidate("one");
  one.election.start();
  await waits(one);
  expect(one.election.isLeader).toBe(true);
  expect(one.events).toEqual(["started"]);
  const first = specOf()["renewTime"];
  expect(specOf()).toMatchObject({ holderIdentity: "one", leaseDurationSeconds: 15 });
  await pass(one, 2);
  expect(specOf()["renewTime"]).not.toBe(first);
  expect(specOf()["acquireTime"]).toBe(first);
});

test("another one takes a Lease that has not changed for its duration, by its own clock", async () => {
  const one = candidate("one", new FakeClock(0));
  one.election.start();
  await waits(one);
  // The clocks of the two machines are years apart.
  const two = candidate("two", new FakeClock(1_800_000_000_000));
  two.election.start();
  await waits(two);
  await pass(two, 14);
  expect(two.election.isLeader).toBe(false);
  await pass(one, 2);
  await pass(two, 14);
  expect(two.election.isLeader).toBe(false);
  await pass(two, 4);
  expect(two.election.isLeader).toBe(true);
  expect(specOf()).toMatchObject({ holderIdentity: "two", leaseTransitions: 1 });
  await pass(one, 2);
  expect(one.events).toEqual(["started", "stopped"]);
});

test("of two writers one fails", async () => {
  const one = candidate("one");
  const two = candidate("two");
  one.election.start();
  two.election.start();
  await waits(one);
  await waits(two);
  await pass(one, 2);
  await pass(two, 2);
  expect([one, two].filter(({ election }) => election.isLeader)).toHaveLength(1);
});

test("a conflict alone does not end the leadership", async () => {
  const one = candidate("one");
  one.election.start();
  await waits(one);
  server.answer = ({ method }) => (method === "PUT" ? { status: 409, body: {} } : undefined);
  await pass(one, 2);
  expect(one.election.isLeader).toBe(true);
  server.answer = () => undefined;
  await pass(one, 2);
  expect(one.events).toEqual(["started"]);
});

test.each([
  ["refuses", { status: 500, body: {} }],
  ["does not answer", "hang"],
] as const)("a holder gives up in time when the server %s", async (_what, answer) => {
  const one = candidate("one");
  one.election.start();
  await waits(one);
  server.answer = () => answer;
  const startedAt = one.clock.monotonic();
  await eventually(() => {
    const [next = 0] = one.clock.pending;
    one.clock.advance(next);
    expect(one.events).toEqual(["started", "stopped"]);
  });
  // Before another candidate may take it.
  expect(one.clock.monotonic() - startedAt).toBeLessThan(15_000);
});

test("a Lease that was given back is free at once", async () => {
  const one = candidate("one");
  one.election.start();
  await waits(one);
  await one.election.stop();
  expect(one.events).toEqual(["started", "stopped"]);
  expect(specOf()["holderIdentity"]).toBe("");
  const two = candidate("two");
  two.election.start();
  await waits(two);
  expect(two.election.isLeader).toBe(true);
});

test("a process that begins anew with its name goes on at once", async () => {
  const one = candidate("one");
  one.election.start();
  await waits(one);
  const again = candidate("one");
  again.election.start();
  await waits(again);
  expect(again.election.isLeader).toBe(true);
  expect(specOf()["leaseTransitions"]).toBe(0);
});
