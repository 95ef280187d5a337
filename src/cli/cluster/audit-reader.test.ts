/** The life of a reader's pod, at an API server in memory. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { CORE, type KubeObject } from "../../kubernetes/objects.ts";
import type { AtEnd } from "../temporary-folder.ts";
import { type ClaimReader, withReader } from "./audit-reader.ts";
import { FakeInstallation } from "./testing.ts";

const READER: ClaimReader = {
  namespace: "team",
  claim: "chains",
  image: "svc-proxy:1",
  pullPolicy: "IfNotPresent",
  pullSecrets: ["pull"],
  user: 65_533,
  groups: [65_532],
};
const PODS = "/api/v1/namespaces/team/pods";

let installation: FakeInstallation;
/** Steps that a signal would run. */
let steps: (() => Promise<void>)[];
const atEnd: AtEnd = (step) => {
  steps.push(step);
  return step;
};

beforeEach(async () => {
  steps = [];
  installation = await FakeInstallation.start();
});
afterEach(() => installation.close());

/** Lets the kubelet of the pods' node say so of each reader. */
function kubelet(status: object): void {
  installation.api.handle(({ method, path }) => {
    const [, name] = /\/pods\/(svc-audit-reader-\w+)$/.exec(path) ?? [];
    const pod = name === undefined ? undefined : find(name);
    return method === "GET" && pod !== undefined
      ? { status: 200, body: { ...pod, status } }
      : undefined;
  });
}

const find = (name: string): KubeObject | undefined =>
  installation.api.find(CORE.pod, "team", name);
const run = <Result>(action: (pod: string) => Promise<Result>, timeoutMs?: number) =>
  withReader(installation.session, READER, atEnd, action, timeoutMs);
const written = (method: string): string[] =>
  installation.api.requests.filter((one) => one.method === method).map(({ path }) => path);

test("the pod runs during the action, and is deleted after it", async () => {
  kubelet({ phase: "Running" });
  let pod: KubeObject | undefined;
  expect(await run(async (name) => Promise.resolve((pod = find(name)) === undefined))).toBe(false);
  expect(pod).toMatchObject({
    metadata: { labels: { "app.kubernetes.io/component": "audit-reader" } },
    spec: {
      restartPolicy: "Never",
      activeDeadlineSeconds: 3_600,
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: "pull" }],
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 65_533,
        supplementalGroups: [65_532],
        seccompProfile: { type: "RuntimeDefault" },
      },
      containers: [
        {
          image: "svc-proxy:1",
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
          volumeMounts: [{ mountPath: "/var/lib/svc", readOnly: true }],
        },
      ],
      volumes: [{ persistentVolumeClaim: { claimName: "chains" } }],
    },
  });
  expect(JSON.stringify(pod)).not.toContain("fsGroup");
  expect(find(pod?.metadata.name ?? "")).toBeUndefined();
});

test("it is deleted after an action that fails, and by a signal while it is being created", async () => {
  kubelet({ phase: "Running" });
  await expect(run(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(written("DELETE")).toHaveLength(1);
  kubelet({ phase: "Pending" });
  const running = run(() => Promise.resolve());
  await expect.poll(() => steps.length).toBe(2);
  await steps[1]?.();
  await expect(running).rejects.toThrow("has ended before it was used");
  const created = installation.api.requests.findIndex(
    ({ method, path }, i) => method === "POST" && path === PODS && i > 0,
  );
  expect(created).toBeGreaterThan(0);
  expect(written("DELETE").length).toBeGreaterThanOrEqual(2);
});

describe("an error says", () => {
  test("which rights are missing", async () => {
    installation.api.handle(({ method, path }) =>
      method === "POST" && path === PODS
        ? { status: 403, body: { kind: "Status", message: 'cannot create resource "pods"' } }
        : undefined,
    );
    installation.api.handle(({ method }) =>
      method === "DELETE" ? { status: 403, body: { message: "nor delete it" } } : undefined,
    );
    await expect(run(() => Promise.resolve())).rejects.toThrow(
      'a pod that reads it could not be created: cannot create resource "pods". Where no running ' +
        "pod mounts the claim, svc audit needs the rights create, get and delete of pods and " +
        "create of pods/exec in the namespace team",
    );
  });

  test.each([
    [
      "its image cannot be pulled",
      {
        containerStatuses: [{ name: "reader", state: { waiting: { reason: "ImagePullBackOff" } } }],
      },
      "does not start: ImagePullBackOff",
    ],
    [
      "no node takes it",
      { conditions: [{ type: "PodScheduled", status: "False", message: "0/1 nodes" }] },
      "does not start: 0/1 nodes",
    ],
    ["nothing is known", {}, "does not start: it is pending"],
  ])("why the pod does not start: %s", async (_name, status, said) => {
    kubelet({ phase: "Pending", ...status });
    await expect(run(() => Promise.resolve(), 0)).rejects.toThrow(said);
    expect(written("DELETE")).toHaveLength(1);
  });

  test("that the pod could not be deleted", async () => {
    kubelet({ phase: "Running" });
    installation.api.handle(({ method }) =>
      method === "DELETE" ? { status: 500, body: { message: "no quorum" } } : undefined,
    );
    await expect(run(() => Promise.resolve())).rejects.toThrow(
      /^pod team\/svc-audit-reader-\w+ could not be deleted: no quorum$/,
    );
  });
});

test("readers that have ended are deleted; others are not", async () => {
  kubelet({ phase: "Running" });
  const labels = { "app.kubernetes.io/component": "audit-reader" };
  for (const [name, phase] of [
    ["ended", "Failed"],
    ["running", "Running"],
  ] as const)
    installation.put(CORE.pod, {
      metadata: { name, namespace: "team", labels },
      status: { phase },
    });
  await run(() => Promise.resolve());
  expect([find("ended"), find("running")?.metadata.name]).toEqual([undefined, "running"]);
});
