import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { type ByteLease, BytesInFlight } from "./bytes-in-flight.ts";

function create(total: number, perCaller: number) {
  const registry = new Registry();
  const bytes = new BytesInFlight({ total, perCaller, registry });
  const admit = (caller: string, size: number): ByteLease => {
    const admission = bytes.admit(caller, size);
    if (admission.kind === "refused") throw new Error(`refused: ${admission.limit}`);
    return admission.lease;
  };
  const inFlight = async (): Promise<number | undefined> =>
    (await registry.getSingleMetric("svc_request_bytes_in_flight")?.get())?.values[0]?.value;
  return { bytes, admit, inFlight, registry };
}

test("a caller holds its own limit at most, and gets back what it gives back", () => {
  const { bytes, admit } = create(1_000, 100);
  const first = admit("a", 60);
  admit("a", 40);
  expect(bytes.admit("a", 1)).toEqual({ kind: "refused", limit: "caller" });
  admit("b", 100);
  first.release();
  admit("a", 60);
});

test("one caller takes half of the total at most, and others still find room", () => {
  const { bytes, admit } = create(1_000, 1_000);
  for (let n = 0; n < 10; n++) admit("greedy", 50);
  expect(bytes.admit("greedy", 1)).toEqual({ kind: "refused", limit: "total" });
  admit("second", 250);
  admit("third", 125);
  expect(bytes.admit("third", 125)).toEqual({ kind: "refused", limit: "total" });
  admit("fourth", 60);
});

test("a body that is larger than any room is refused at once", () => {
  const { bytes } = create(1_000, 5_000);
  expect(bytes.admit("a", 1_001)).toEqual({ kind: "refused", limit: "total" });
});

test("a lease takes the size that its body has, and is given back once", async () => {
  const { bytes, admit, inFlight } = create(1_000, 500);
  const lease = admit("a", 400);
  lease.resize(10);
  expect(await inFlight()).toBe(10);
  admit("a", 490);
  lease.resize(300);
  expect(await inFlight()).toBe(790);
  lease.release();
  lease.release();
  lease.resize(999);
  expect(await inFlight()).toBe(490);
  expect(bytes.admit("a", 11)).toMatchObject({ kind: "refused" });
});

test("refusals are counted by the limit that refused", async () => {
  const { bytes, admit, registry } = create(100, 60);
  admit("a", 50);
  bytes.admit("a", 50);
  bytes.admit("b", 60);
  expect(await registry.metrics()).toMatch(
    /limit="caller"} 1\nsvc_request_bytes_refused_total{limit="total"} 1/,
  );
});

test("the last byte of the room can be held, and not one more", () => {
  const { bytes, admit } = create(100, 1_000);
  expect(bytes.admit("a", 101)).toEqual({ kind: "refused", limit: "total" });
  const all = admit("a", 100);
  expect(bytes.admit("b", 1)).toEqual({ kind: "refused", limit: "total" });
  all.release();
  expect(bytes.admit("b", 100)).toMatchObject({ kind: "admitted" });
});

test("both counters are there before anything is refused", async () => {
  const { registry } = create(100, 60);
  expect(await registry.metrics()).toMatch(
    /limit="caller"} 0\nsvc_request_bytes_refused_total{limit="total"} 0/,
  );
});
