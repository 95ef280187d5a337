import { expect, test } from "vitest";
import { settled } from "../../platform/testing.ts";
import { AdmissionQueue, type Place } from "./admission.ts";

const never = new AbortController().signal;

function entered(admission: AdmissionQueue): Place {
  const place = admission.enter();
  if (place === undefined) throw new Error("no place");
  return place;
}

/** Returns whether a promise is resolved by now. */
async function isDone(promise: Promise<void>): Promise<boolean> {
  let done = false;
  void promise.then(() => (done = true));
  await settled();
  return done;
}

test("turns come in order, as requests leave", async () => {
  const admission = new AdmissionQueue({ maxConcurrent: 1, maxQueued: 2 });
  const places = [entered(admission), entered(admission), entered(admission)] as const;
  const turns = places.map((place) => place.turn(never));
  expect(await Promise.all(turns.map(isDone))).toEqual([true, false, false]);
  expect([admission.active, admission.queued]).toEqual([1, 2]);
  places[0].leave();
  expect(await Promise.all(turns.map(isDone))).toEqual([true, true, false]);
  places[1].leave();
  places[2].leave();
});

test("beyond the bound there is no place, until one is left", () => {
  const admission = new AdmissionQueue({ maxConcurrent: 1, maxQueued: 1 });
  const places = [entered(admission), entered(admission)] as const;
  expect(admission.enter()).toBeUndefined();
  places[0].leave();
  expect(admission.enter()).toBeDefined();
  expect(admission.enter()).toBeUndefined();
});

test("a request that is aborted leaves the queue", async () => {
  const admission = new AdmissionQueue({ maxConcurrent: 1, maxQueued: 2 });
  const [first, second, third] = [entered(admission), entered(admission), entered(admission)];
  await first?.turn(never);
  const aborter = new AbortController();
  const aborted = second?.turn(aborter.signal);
  const last = third?.turn(never);
  aborter.abort(new Error("gone"));
  await expect(aborted).rejects.toThrow("gone");
  second?.leave();
  expect([admission.active, admission.queued]).toEqual([1, 1]);
  first?.leave();
  await last;
  expect([admission.active, admission.queued]).toEqual([1, 0]);
  third?.leave();
  expect([admission.active, admission.queued]).toEqual([0, 0]);
});

test("an aborted request gets no turn", async () => {
  const admission = new AdmissionQueue({ maxConcurrent: 1, maxQueued: 0 });
  const place = entered(admission);
  await expect(place.turn(AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  place.leave();
  expect([admission.active, admission.queued]).toEqual([0, 0]);
});
