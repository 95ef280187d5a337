import { expect, test } from "vitest";
import type { KubeObject } from "../kubernetes/objects.ts";
import { CORE } from "../kubernetes/objects.ts";
import { RUN_ANNOTATION } from "./names.ts";
import { taskStep } from "./task.ts";

const spec = { parallelism: 1, suspend: false, backoffLimit: 6 };
const jobOf = (run: string, more: object = {}, deletionTimestamp?: string): KubeObject => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: {
    name: "svc-writer",
    annotations: { [RUN_ANNOTATION]: run },
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  },
  spec: { ...spec, ...more },
});
const plan = {
  workload: { kind: CORE.job, object: jobOf("new") },
  run: "new",
  ttlSeconds: undefined,
} as const;
const ended = { run: "new", phase: "Complete" };

test.each([
  ["without a Job it is run", undefined, undefined, { kind: "create" }],
  ["a run that has ended is not run again", undefined, ended, { kind: "none" }],
  ["another run follows", undefined, { run: "old", phase: "Complete" }, { kind: "create" }],
  ["a run under way goes on", jobOf("new"), undefined, { kind: "none" }],
  ["a Job of another run is deleted", jobOf("old"), undefined, { kind: "delete" }],
  ["one that is being deleted is waited for", jobOf("old", {}, "now"), undefined, { kind: "none" }],
] as const)("%s", (_what, job, before, step) => {
  expect(taskStep(plan, job, before)).toEqual(step);
});

test("what others have changed is put right, and what they have added is removed", () => {
  const job = jobOf("new", { suspend: true, activeDeadlineSeconds: 5 });
  expect(taskStep(plan, job, undefined)).toEqual({
    kind: "patch",
    patch: { spec: { suspend: false, activeDeadlineSeconds: null } },
  });
});

test("a Job has a time to live only when its end is recorded", () => {
  const limited = { ...plan, ttlSeconds: 0 };
  expect(taskStep(limited, jobOf("new"), undefined)).toEqual({ kind: "none" });
  const step = { kind: "patch", patch: { spec: { ttlSecondsAfterFinished: 0 } } };
  expect(taskStep(limited, jobOf("new"), ended)).toEqual(step);
  const done = jobOf("new", { ttlSecondsAfterFinished: 0 });
  expect(taskStep(limited, done, ended)).toEqual({ kind: "none" });
});
