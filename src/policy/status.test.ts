import { describe, expect, test } from "vitest";
import {
  type ObjectStatus,
  type PublishedStatus,
  statusOf,
  type Verdict,
  withProgrammed,
  withTransitionTimes,
} from "./status.ts";

const verdict: Verdict = {
  kind: "ModelProvider",
  namespace: "default",
  name: "m",
  ready: true,
  reason: "Ready",
  message: "",
};
const agent: Verdict = { ...verdict, kind: "Agent", name: "a" };

describe("statusOf", () => {
  test("says in a condition what the verdict says", () => {
    expect(statusOf(verdict, undefined)).toEqual({
      ...verdict,
      conditions: [{ type: "Ready", status: "True", reason: "Ready", message: "" }],
    });
    const skipped = { ...verdict, ready: false, reason: "Skipped", message: "X" } as const;
    expect(statusOf(skipped, 3)).toEqual({
      ...skipped,
      observedGeneration: 3,
      conditions: [
        { type: "Ready", status: "False", reason: "Skipped", message: "X", observedGeneration: 3 },
      ],
    });
  });

  test("an Agent whose newest version was refused has failed, whatever serves", () => {
    const refused = { ...agent, reason: "InvalidSpec" } as const;
    expect(statusOf(refused, undefined)).toMatchObject({ phase: "Failed", ready: true });
    expect(statusOf({ ...agent, reason: "UnknownProvider" }, undefined).phase).toBeUndefined();
    expect(statusOf({ ...verdict, reason: "InvalidSpec" }, undefined).phase).toBeUndefined();
  });
});

describe("withProgrammed", () => {
  const status = statusOf(verdict, 2);

  test("an accepted one is as it was, with the condition", () => {
    expect(withProgrammed(status, { kind: "accepted" })).toEqual({
      ...status,
      conditions: [
        ...status.conditions,
        {
          type: "Programmed",
          status: "True",
          reason: "Programmed",
          message: "",
          observedGeneration: 2,
        },
      ],
    });
  });

  test("without an answer nothing is known", () => {
    const pending = withProgrammed(status, { kind: "pending", message: "no Envoy" });
    expect(pending).toMatchObject({ ready: true, reason: "Ready" });
    expect(pending.conditions[1]).toMatchObject({
      type: "Programmed",
      status: "Unknown",
      reason: "Pending",
      message: "no Envoy",
    });
  });

  test("a rejected one is not ready, with Envoy's message", () => {
    const rejected = withProgrammed(status, { kind: "rejected", message: "bad CA" });
    expect(rejected).toMatchObject({
      ready: false,
      reason: "EnvoyRejected",
      message: "Envoy rejected its clusters: bad CA",
    });
    expect(rejected.conditions).toMatchObject([
      { type: "Ready", status: "False", reason: "EnvoyRejected" },
      { type: "Programmed", status: "False", reason: "EnvoyRejected" },
    ]);
  });
});

test("a message that is too long is cut, in its condition too", () => {
  const message = "mock/a: ModelProvider mock is not ready; ".repeat(1_000);
  const long = statusOf({ ...verdict, message }, undefined);
  expect(long.message).toBe(`${message.slice(0, 4_096)}...`);
  expect(long.conditions[0]?.message).toBe(long.message);
  const exact = "x".repeat(4_096);
  expect(statusOf({ ...verdict, message: exact }, undefined).message).toBe(exact);
});

describe("withTransitionTimes", () => {
  const T0 = Date.UTC(2026, 10, 22, 12);
  const times = (statuses: readonly PublishedStatus[]) =>
    statuses.map(({ conditions }) =>
      conditions.map(({ lastTransitionTime }) => lastTransitionTime),
    );
  const failing: ObjectStatus = statusOf(
    { ...verdict, ready: false, reason: "SecretDoesNotExist", message: "x" },
    undefined,
  );

  test("a condition keeps its time while its status is the same", () => {
    const first = withTransitionTimes([failing], [], T0 + 999);
    expect(times(first)).toEqual([["2026-11-22T12:00:00Z"]]);
    const other = statusOf(
      { ...verdict, ready: false, reason: "SecretKeyDoesNotExist", message: "y" },
      undefined,
    );
    const second = withTransitionTimes([other], first, T0 + 60_000);
    expect(times(second)).toEqual([["2026-11-22T12:00:00Z"]]);
    expect(second[0]?.conditions[0]).toMatchObject({ reason: "SecretKeyDoesNotExist" });
    const third = withTransitionTimes([statusOf(verdict, undefined)], second, T0 + 120_000);
    expect(times(third)).toEqual([["2026-11-22T12:02:00Z"]]);
  });

  test("each object and each condition has its own", () => {
    const first = withTransitionTimes([failing], [], T0);
    const both = [withProgrammed(failing, { kind: "accepted" }), statusOf(agent, undefined)];
    expect(times(withTransitionTimes(both, first, T0 + 1_000))).toEqual([
      ["2026-11-22T12:00:00Z", "2026-11-22T12:00:01Z"],
      ["2026-11-22T12:00:01Z"],
    ]);
  });
});
