/** The checks of a cluster, each seen to fail. */
import path from "node:path";
import { readdirSync, readFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { CORE, type KubeObject } from "../../kubernetes/objects.ts";
import { checkCluster } from "./check.ts";
import { FakeInstallation, GATEWAY_STATUS, SYSTEM } from "./testing.ts";
import { addressOf } from "./views.ts";

const ROOT = path.resolve(import.meta.dirname, "../../..");
const CRD = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
};
const NODE = { apiVersion: "v1", kind: "Node", plural: "nodes" };
const DAEMON_SET = { apiVersion: "apps/v1", kind: "DaemonSet", plural: "daemonsets" };
const SERVICE = { apiVersion: "v1", kind: "Service", plural: "services" };
const REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
const READYZ = `/api/v1/namespaces/${SYSTEM}/services/http:svc-gateway:8000/proxy/readyz`;

const version = (minor: string): object => ({ major: "1", minor, gitVersion: `v1.${minor}.0` });
const nodeInfo = (more: object = {}): object => ({
  status: {
    nodeInfo: {
      operatingSystem: "linux",
      architecture: "amd64",
      kernelVersion: "6.1.0-x",
      kubeletVersion: "v1.34.4",
      ...more,
    },
  },
});

let installation: FakeInstallation;

beforeEach(async () => {
  installation = await FakeInstallation.start();
  const { api } = installation;
  api.answer("/version", version("29+"));
  api.handle(({ path: asked }) =>
    asked === REVIEWS ? { status: 201, body: { status: { allowed: true } } } : undefined,
  );
  for (const file of readdirSync(path.join(ROOT, "crds"))) {
    const crd = parse(readFileSync(path.join(ROOT, "crds", file), "utf8")) as KubeObject;
    const conditions = [{ type: "Established", status: "True" }];
    api.put(CRD, { ...crd, status: { conditions } });
  }
  api.put(SERVICE, {
    metadata: {
      name: "svc-gateway",
      namespace: SYSTEM,
      labels: { "app.kubernetes.io/part-of": "svc", "app.kubernetes.io/component": "gateway" },
    },
    spec: { ports: [{ port: 8000 }] },
  });
  api.answer(READYZ, "ok\n");
  api.put(CORE.secret, {
    metadata: { name: "svc-workload-key", namespace: SYSTEM },
    data: { current: Buffer.alloc(32).toString("base64") },
  });
  redis([{ name: "SVC_REDIS_URL" }]);
  api.put(NODE, { metadata: { name: "n1" }, ...nodeInfo() });
  api.put(DAEMON_SET, { metadata: { name: "cilium", namespace: "kube-system" } });
});

afterEach(() => installation.close());

function redis(env: readonly object[]): void {
  installation.deployment("gateway", 1, { template: { spec: { containers: [{ env }] } } });
}

/** An agent in a namespace with a level of Pod Security. */
function agentUnder(level: string): void {
  const labels = { "pod-security.kubernetes.io/enforce": level };
  installation.put(CORE.namespace, { metadata: { name: "team", labels } });
  installation.put(addressOf("Agent"), {
    metadata: { name: "a", namespace: "team" },
    spec: {},
    status: { ready: true, reason: "Ready", message: "" },
  });
}

async function faults(): Promise<readonly string[]> {
  const checks = await checkCluster(installation.session, ROOT);
  return checks
    .filter(({ level }) => level !== "OK")
    .map(({ level, name, message }) => `${level} ${name}: ${message}`);
}

test("an installation that is well", async () => {
  expect(await faults()).toEqual([]);
});

describe("a fault, with its fix", () => {
  test.each<[() => void, string]>([
    [
      () => installation.api.answer("/version", version("28")),
      "FAIL kubernetes: v1.28.0 has no native sidecars: upgrade to 1.29 or later",
    ],
    [
      () =>
        installation.api.handle(({ body, path: asked }) =>
          asked === REVIEWS && JSON.stringify(body).includes('"exec"')
            ? { status: 201, body: { status: { allowed: false } } }
            : undefined,
        ),
      "WARN your rights: you may not create pods/exec in all namespaces, which svc audit " +
        "and svc get tools need. Ask an administrator.",
    ],
    [
      () => installation.put(CRD, { metadata: { name: "agents.svc.io" }, spec: { versions: [] } }),
      "FAIL kinds: agents.svc.io is not served yet. Check again.",
    ],
    [
      () =>
        installation.put(CRD, {
          metadata: { name: "agents.svc.io" },
          spec: { versions: [{ name: "v1", schema: {} }] },
          status: { conditions: [{ type: "Established", status: "True" }] },
        }),
      "FAIL kinds: agents.svc.io is of another version than this command. Install this " +
        "version's: svc install, or kubectl apply --server-side -f crds/.",
    ],
    [
      () => installation.deployment("controller", 0),
      "FAIL deployments: Deployment svc-controller: 0 of 1 pods ready. Install with svc " +
        "install, name another namespace with --system-namespace, or look at the pods: " +
        "kubectl -n svc-system get pods.",
    ],
    [
      () => installation.api.answer(READYZ, { message: "no endpoints" }, 503),
      "FAIL gateway: the Service svc-gateway does not answer through the API server (no " +
        "endpoints). Look at its pods, and at NetworkPolicies between the API server and " +
        "them.",
    ],
    [
      () =>
        installation.gateway("gw-1", {
          ...GATEWAY_STATUS,
          envoys: [{ node: "gw-1", inSync: true, nacks: [{ type: "cluster", message: "bad" }] }],
        }),
      "FAIL gateway: Envoy of pod gw-1 rejected a cluster: bad. Correct the object.",
    ],
    [
      () =>
        installation.put(CORE.secret, {
          metadata: { name: "svc-workload-key", namespace: SYSTEM },
          data: { current: "" },
        }),
      'FAIL workload key: the Secret svc-workload-key has no key "current" of 32 bytes. ' +
        "Delete it, and the controller makes another; all agents then get new tokens.",
    ],
    [
      () => redis([]),
      "WARN redis: not configured: each gateway pod counts limits alone, and from zero " +
        "after a restart. Set redis.enabled=true.",
    ],
    [
      () =>
        installation.put(NODE, {
          metadata: { name: "n1" },
          ...nodeInfo({ operatingSystem: "windows" }),
        }),
      "WARN nodes: n1 runs windows: keep agents off it with a nodeSelector",
    ],
    [
      () =>
        installation.put(NODE, {
          metadata: { name: "n1" },
          ...nodeInfo({ kernelVersion: "5.10.0" }),
        }),
      "WARN nodes: n1 has Linux 5.10.0: spec.filesystem of Agents is enforced by the kernel " +
        "from 5.13 on",
    ],
    [
      () =>
        installation.put(NODE, {
          metadata: { name: "n1" },
          ...nodeInfo({ kubeletVersion: "v1.28.9" }),
        }),
      "FAIL nodes: n1 has kubelet v1.28.9: upgrade to 1.29 or later",
    ],
    [
      () => agentUnder("restricted"),
      'FAIL pod security: the namespace team enforces "restricted", which forbids the init ' +
        "container with NET_ADMIN of agents' pods. Install with agents.interception=sysctl, " +
        "or label the namespace: kubectl label namespace team " +
        "pod-security.kubernetes.io/enforce=privileged --overwrite.",
    ],
    [
      () =>
        installation.put(addressOf("Provider"), {
          metadata: { name: "p", namespace: "team" },
          status: { ready: false, reason: "SecretDoesNotExist", message: "no Secret x" },
        }),
      "FAIL objects: Provider team/p: SecretDoesNotExist: no Secret x",
    ],
    [
      () => installation.api.answer("/api/v1/nodes", { message: "nodes is forbidden" }, 403),
      "WARN nodes: not checked, because you lack a right: nodes is forbidden",
    ],
  ])("%#", async (change, fault) => {
    change();
    expect(await faults()).toEqual([fault]);
  });

  test("Pod Security is no obstacle without the init container", async () => {
    agentUnder("restricted");
    installation.put(CORE.configMap, {
      metadata: {
        name: "svc-controller",
        namespace: SYSTEM,
        labels: {
          "app.kubernetes.io/part-of": "svc",
          "app.kubernetes.io/component": "controller",
        },
      },
      data: { "controller.yaml": "interception: sysctl\n" },
    });
    expect(await faults()).toEqual([]);
  });

  test("no network plugin that enforces policies", async () => {
    installation.put(DAEMON_SET, { metadata: { name: "flannel", namespace: "kube-system" } });
    installation.api.answer("/apis/apps/v1/daemonsets", { items: [] });
    expect(await faults()).toEqual([
      expect.stringContaining("WARN network policies: no network plugin"),
    ]);
  });
});
