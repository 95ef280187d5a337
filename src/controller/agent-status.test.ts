import { describe, expect, test } from "vitest";
import type { KubeObject } from "../kubernetes/objects.ts";
import { agentState, type EndedRun } from "./agent-status.ts";
import type { Plan } from "./plan.ts";

const READY = { ready: true, reason: "Ready", message: "" } as const;

const planOf = (variant: Plan["variant"], blocked?: Plan["blocked"]) =>
  ({ variant, blocked, run: variant === "task" ? "new" : undefined }) as Plan;

const deployment = (status: object, replicas = 2): KubeObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "svc-writer", generation: 3 },
  spec: { replicas },
  status,
});

const job = (status: object): KubeObject => ({
  apiVersion: "batch/v1",
  kind: "Job",
  metadata: { name: "svc-writer" },
  status,
});

const waiting = (reason: string, message = ""): KubeObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "pod" },
  status: { containerStatuses: [{ name: "agent", state: { waiting: { reason, message } } }] },
});

const current = { observedGeneration: 3, updatedReplicas: 2, replicas: 2, readyReplicas: 2 };

describe("a service", () => {
  const of = (workload: KubeObject | undefined, pods: readonly KubeObject[] = []) =>
    agentState(READY, planOf("service"), { workload, pods }, undefined);

  test("is ready when all pods of its newest template are", () => {
    expect(of(deployment(current))).toMatchObject({ ready: true, phase: "Running" });
    expect(of(deployment({ observedGeneration: 3 }, 0))).toMatchObject({ ready: true });
  });

  test.each([
    ["there is no Deployment", undefined, "Pending"],
    ["an older generation was observed", { ...current, observedGeneration: 2 }, "Running"],
    ["old pods are left", { ...current, replicas: 3 }, "Running"],
    ["pods are not updated", { ...current, updatedReplicas: 1 }, "Running"],
    ["pods are not ready", { ...current, readyReplicas: 0 }, "Pending"],
  ] as const)("is not ready while %s", (_what, status, phase) => {
    const state = of(status === undefined ? undefined : deployment(status));
    expect(state).toMatchObject({ ready: false, reason: "PodsNotReady", phase });
  });

  test("says why its pods may not be made", () => {
    const message = 'violates PodSecurity "restricted:latest"';
    const failing = { type: "ReplicaFailure", status: "True", message };
    const status = { ...current, readyReplicas: 0, updatedReplicas: 0, conditions: [failing] };
    expect(of(deployment(status)).message).toBe(`0 of 2 pods are ready; ${message}`);
    const past = { ...status, conditions: [{ ...failing, status: "False" }] };
    expect(of(deployment(past)).message).toBe("0 of 2 pods are ready");
  });

  test("says why containers cannot start, once each, and not what passes", () => {
    const pods = [
      waiting("ImagePullBackOff", "no such image"),
      waiting("ImagePullBackOff", "no such image"),
      waiting("ContainerCreating"),
    ];
    expect(of(deployment({}), pods).message).toBe(
      "0 of 2 pods are ready; container agent: ImagePullBackOff: no such image",
    );
  });
});

describe("a task", () => {
  const of = (status: object | undefined, ended?: EndedRun) =>
    agentState(
      READY,
      planOf("task"),
      { workload: status === undefined ? undefined : job(status), pods: [] },
      ended,
    );
  const condition = (type: string) => ({ conditions: [{ type, status: "True", message: "why" }] });

  test.each([
    ["runs", { ready: 1 }, undefined, { ready: true, phase: "Running", completedRun: undefined }],
    ["waits", {}, undefined, { ready: false, phase: "Pending", reason: "PodsNotReady" }],
    ["completes", condition("Complete"), undefined, { phase: "Complete", completedRun: "new" }],
    ["fails", condition("Failed"), undefined, { ready: false, phase: "Failed" }],
    [
      "stays complete without its Job",
      undefined,
      { run: "new", phase: "Complete" },
      { ready: true, phase: "Complete", completedRun: "new" },
    ],
    [
      "stays failed without its Job",
      undefined,
      { run: "new", phase: "Failed" },
      { ready: false, phase: "Failed", reason: "TaskFailed" },
    ],
    [
      "waits for its next run",
      undefined,
      { run: "old", phase: "Complete" },
      { phase: "Pending", completedRun: "old" },
    ],
  ] as const)("%s", (_what, status, ended, state) => {
    expect(of(status, ended)).toMatchObject(state);
  });
});

describe("a refused Agent", () => {
  const nothing = { workload: undefined, pods: [] };

  test("that cannot run as it is written has failed", () => {
    const blocked = { reason: "RunsAsRoot", message: "no" } as const;
    const state = agentState(READY, planOf("service", blocked), nothing, undefined);
    expect(state).toMatchObject({ ready: false, reason: "RunsAsRoot", phase: "Failed" });
  });

  test("that was never valid has no plan", () => {
    const verdict = { ready: false, reason: "InvalidSpec", message: "no" } as const;
    expect(agentState(verdict, undefined, nothing, undefined)).toMatchObject({ phase: "Failed" });
  });

  test("whose pods run keeps their phase", () => {
    const blocked = { reason: "DegradedProviders", message: "no" } as const;
    const observed = { workload: deployment(current), pods: [] };
    expect(agentState(READY, planOf("service", blocked), observed, undefined)).toMatchObject({
      ready: false,
      reason: "DegradedProviders",
      phase: "Running",
    });
  });

  test("a template has no phase", () => {
    const state = agentState(READY, planOf("template"), nothing, undefined);
    expect(state).toMatchObject({ ready: true, phase: undefined });
  });
});
