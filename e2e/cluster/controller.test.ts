/** The controller at a real API server: what it makes, keeps and deletes. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { CORE, type KubeKind, type KubeObject } from "../../src/kubernetes/objects.ts";
import { kubeKindOf } from "../../src/sources/kubernetes/own-informers.ts";
import { ApiProxy } from "../support/cluster/api-proxy.ts";
import { ControllerBed } from "../support/cluster/controller-bed.ts";
import { ControllerProcess } from "../support/cluster/controller-process.ts";
import { attachLab } from "../support/cluster/lab.ts";
import { until } from "../support/wait.ts";

let bed: ControllerBed;
let proxy: ApiProxy;
let controller: ControllerProcess;
let count = 0;

/** A name of its own for each test. */
const fresh = (): string => `agent-${(count += 1)}`;

beforeAll(async () => {
  const lab = attachLab();
  bed = await ControllerBed.open(lab);
  proxy = await ApiProxy.start(lab.kubeconfig);
  controller = await new ControllerProcess({
    kubeconfig: proxy.kubeconfig(bed.folder),
    folder: bed.folder,
    pod: "controller-0",
    namespace: bed.system,
    namespaces: [bed.namespace],
  }).start();
  await controller.ready();
});

afterEach(({ task }) => {
  if (task.result?.state === "fail") process.stderr.write(controller.output.slice(-4_000));
});

afterAll(async () => {
  await controller.stop();
  await proxy.stop();
  await bed.close();
});

/** Declares a Provider with its Secret, and waits until it is ready. */
async function boundProvider(name: string): Promise<void> {
  await bed.secret(`${name}-secret`, "ghp_first");
  await bed.provider(name);
}

async function made(agent: string): Promise<ReadonlyMap<string, KubeObject>> {
  return until(
    async () => {
      const found = await bed.generated(agent);
      return found.has(`Deployment/svc-${agent}`) && found;
    },
    { what: `the Deployment of ${agent}` },
  );
}

async function get(kind: KubeKind, name: string): Promise<KubeObject> {
  const found = await bed.find(kind, name);
  if (found === undefined) throw new Error(`there is no ${kind.kind} ${name}`);
  return found;
}

const deploymentOf = async (agent: string): Promise<KubeObject> =>
  get(CORE.deployment, `svc-${agent}`);

test("an Agent gets its objects, which it owns", async () => {
  const agent = fresh();
  const { metadata } = await bed.agent(agent);
  const found = await made(agent);
  expect([...found.keys()].toSorted()).toEqual([
    `ConfigMap/svc-${agent}-providers`,
    `Deployment/svc-${agent}`,
    `NetworkPolicy/svc-${agent}`,
    `Secret/svc-token-${agent}`,
  ]);
  for (const { metadata: its } of found.values())
    expect(its.ownerReferences).toMatchObject([{ uid: metadata.uid, controller: true }]);
  await bed.reason(agent, "PodsNotReady");
});

test("every object that is deleted comes back as it was", async () => {
  const agent = fresh();
  await boundProvider(`${agent}-github`);
  await bed.agent(agent, { providers: [`${agent}-github`], triggers: [{ webhook: {} }] });
  await made(agent);
  await until(async () => (await bed.status(agent)).webhookUrl !== undefined);
  const before = await bed.state();
  const objects = await bed.generated(agent);
  expect(objects.size).toBe(5);
  for (const { apiVersion, kind, metadata } of objects.values()) {
    const kinds = Object.values(CORE).find((one) => one.kind === kind);
    if (kinds === undefined) throw new Error(`${apiVersion} ${kind}`);
    if (metadata.name === `svc-webhook-${agent}`) continue;
    await bed.client.delete(kinds, bed.name(metadata.name), metadata.uid);
    await until(async () => {
      const again = await bed.find(kinds, metadata.name);
      return again !== undefined && again.metadata.uid !== metadata.uid;
    });
  }
  expect(await bed.settled()).toEqual({ ...before, ...(await bed.state()) });
  for (const [name, value] of Object.entries(await bed.state()))
    if (!name.startsWith("Agent/")) expect([name, value]).toEqual([name, before[name]]);
});

describe("an edit by hand is undone", () => {
  interface Edit {
    readonly what: string;
    readonly kind: KubeKind;
    readonly object: (agent: string) => string;
    readonly patch: object;
  }
  const container = { name: "extra", image: "localhost/extra:dev" };
  const edits: readonly Edit[] = [
    {
      what: "an image",
      kind: CORE.deployment,
      object: (agent) => `svc-${agent}`,
      patch: { spec: { template: { spec: { containers: [container] } } } },
    },
    {
      what: "the network of the node",
      kind: CORE.deployment,
      object: (agent) => `svc-${agent}`,
      patch: { spec: { template: { spec: { hostNetwork: true, hostPID: true } } } },
    },
    {
      what: "the number of pods",
      kind: CORE.deployment,
      object: (agent) => `svc-${agent}`,
      patch: { spec: { replicas: 3 } },
    },
    {
      what: "a key that is changed",
      kind: CORE.configMap,
      object: (agent) => `svc-${agent}-providers`,
      patch: { data: { "providers.json": "{}", "sidecar.json": "{}" } },
    },
    {
      what: "a key that is added",
      kind: CORE.configMap,
      object: (agent) => `svc-${agent}-providers`,
      patch: { data: { other: "1" } },
    },
    {
      what: "a token",
      kind: CORE.secret,
      object: (agent) => `svc-token-${agent}`,
      patch: { data: { token: "QQ==" } },
    },
    {
      what: "a policy that allows everything",
      kind: CORE.networkPolicy,
      object: (agent) => `svc-${agent}`,
      patch: { spec: { egress: [{}], ingress: [{}] } },
    },
    {
      what: "a policy of other types",
      kind: CORE.networkPolicy,
      object: (agent) => `svc-${agent}`,
      patch: { spec: { policyTypes: ["Ingress"] } },
    },
    {
      what: "the label by which it is found",
      kind: CORE.networkPolicy,
      object: (agent) => `svc-${agent}`,
      patch: { metadata: { labels: { "svc.io/agent": null } } },
    },
    {
      what: "its owner",
      kind: CORE.configMap,
      object: (agent) => `svc-${agent}-providers`,
      patch: { metadata: { ownerReferences: null } },
    },
  ];

  test.each(edits)("$what of a $kind.kind", async ({ kind, object, patch }) => {
    const agent = fresh();
    await bed.agent(agent);
    await made(agent);
    await bed.reason(agent, "PodsNotReady");
    const own = async (): Promise<unknown> => {
      const { spec, data, metadata } = await get(kind, object(agent));
      const { labels, ownerReferences } = metadata;
      return { spec, data, labels, ownerReferences };
    };
    const before = await own();
    await bed.client.merge(kind, bed.name(object(agent)), patch);
    await until(
      async () => {
        expect(await own()).toEqual(before);
        return true;
      },
      { what: "the edit to be undone" },
    );
  });

  test("but `kubectl rollout restart` is not", async () => {
    const agent = fresh();
    await bed.agent(agent);
    await made(agent);
    await bed.reason(agent, "PodsNotReady");
    await bed.lab.kubectl([
      "rollout",
      "restart",
      `deployment/svc-${agent}`,
      "--namespace",
      bed.namespace,
    ]);
    // An edit after it is undone, and leaves the restart.
    await bed.client.merge(CORE.deployment, bed.name(`svc-${agent}`), {
      spec: { template: { spec: { hostNetwork: true } } },
    });
    const deployment = await until(async () => {
      const found = await deploymentOf(agent);
      return JSON.stringify(found["spec"]).includes("hostNetwork") ? undefined : found;
    });
    expect(JSON.stringify(deployment["spec"])).toContain("kubectl.kubernetes.io/restartedAt");
  });
});

test("an object of somebody else is not overwritten, and the Agent says so", async () => {
  const agent = fresh();
  await bed.client.create(CORE.secret, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: bed.name(`svc-token-${agent}`),
    data: { theirs: "QQ==" },
  });
  await bed.agent(agent);
  expect((await bed.reason(agent, "NameTaken")).message).toContain(`Secret svc-token-${agent}`);
  expect((await get(CORE.secret, `svc-token-${agent}`))["data"]).toEqual({ theirs: "QQ==" });
  expect(await bed.find(CORE.deployment, `svc-${agent}`)).toBeUndefined();
  await bed.client.delete(CORE.secret, bed.name(`svc-token-${agent}`));
  await made(agent);
});

test("what the API server refuses is told by the Agent, until it is put right", async () => {
  const agent = fresh();
  const resources = { requests: { memory: "2Gi" }, limits: { memory: "1Gi" } };
  await bed.agent(agent, { resources });
  expect((await bed.reason(agent, "ApplyRefused")).message).toContain("memory limit");
  await bed.agent(agent, {});
  await made(agent);
});

test("deleting an Agent deletes all that was made for it", async () => {
  const agent = fresh();
  await bed.agent(agent, { triggers: [{ webhook: {} }] });
  await made(agent);
  await until(async () => (await bed.status(agent)).webhookUrl !== undefined);
  await bed.remove("Agent", agent);
  await until(async () => (await bed.generated(agent)).size === 0);
});

test("an Agent that would run as root fails, and has no Deployment", async () => {
  const agent = fresh();
  await bed.agent(agent, { runAsUser: 0 });
  const status = await bed.reason(agent, "RunsAsRoot");
  expect(status).toMatchObject({ phase: "Failed", ready: false });
  expect(await bed.generated(agent)).toEqual(new Map());
  await bed.agent(agent, { runAsUser: 1000 });
  await made(agent);
});

describe("guards", () => {
  /** Waits until the status of a GuardBinding has a reason. */
  const judged = (name: string, reason: string) =>
    until(
      async () => {
        const object = await bed.find(kubeKindOf("GuardBinding"), name);
        const status = object?.["status"] as { reason?: string } | undefined;
        return status?.reason === reason && status;
      },
      { what: `GuardBinding ${name} to have the reason ${reason}` },
    );
  const classifier = { type: "stub", endpoint: "http://guard:8200" };

  test("an override that relaxes one is rejected; the Agent and the GuardBinding tell it", async () => {
    const agent = fresh();
    const guard = { binding: `${agent}-guard` };
    await bed.declare("GuardBinding", guard.binding, { classifier, enforcement: "enforce" });
    await judged(guard.binding, "Ready");
    await bed.agent(agent, { guards: [{ ...guard, enforcement: "audit" }] });
    expect(await bed.reason(agent, "RelaxedGuard")).toMatchObject({ ready: false });
    expect(await judged(guard.binding, "RelaxedGuard")).toMatchObject({
      ready: false,
      message: expect.stringContaining(`Agent ${agent}`) as unknown,
      conditions: [{ type: "Ready", status: "False", reason: "RelaxedGuard" }],
    });
    expect(await bed.find(CORE.deployment, `svc-${agent}`)).toBeUndefined();
    await bed.agent(agent, { guards: [guard] });
    await made(agent);
    expect(await judged(guard.binding, "Ready")).toMatchObject({ ready: true });
    const { data } = (await get(CORE.configMap, `svc-${agent}-guards`)) as {
      data?: Record<string, string>;
    };
    expect(JSON.parse(data?.["guards.json"] ?? "{}")).toMatchObject({
      workload: `${bed.namespace}/${agent}`,
      guards: [{ binding: guard.binding, enforcement: "enforce" }],
    });
  });

  test("an Agent waits for a GuardBinding that does not exist", async () => {
    const agent = fresh();
    const binding = `${agent}-guard`;
    await bed.agent(agent, { guards: [{ binding }] });
    expect(await bed.reason(agent, "UnknownGuardBinding")).toMatchObject({ ready: false });
    expect(await bed.find(CORE.deployment, `svc-${agent}`)).toBeUndefined();
    await bed.declare("GuardBinding", binding, { classifier });
    await made(agent);
    await bed.remove("GuardBinding", binding);
    await bed.reason(agent, "UnknownGuardBinding");
  });

  test("a GuardBinding tells what its classifier lacks", async () => {
    const name = `${fresh()}-guard`;
    await bed.declare("GuardBinding", name, { classifier: { type: "stub" } });
    expect(await judged(name, "GuardServiceNotAvailable")).toMatchObject({ ready: false });
    await bed.declare("GuardBinding", name, {
      classifier: { ...classifier, type: "custom", auth: { secretRef: `${name}-secret` } },
    });
    await judged(name, "SecretDoesNotExist");
    await bed.secret(`${name}-secret`, "token");
    expect(await judged(name, "Ready")).toMatchObject({ ready: true });
  });
});

test("a webhook has an address, and another one when its Secret is deleted", async () => {
  const agent = fresh();
  await bed.agent(agent, { triggers: [{ webhook: {} }] });
  const url = async (): Promise<string | undefined> => (await bed.status(agent)).webhookUrl;
  const first = await until(url);
  expect(first).toMatch(
    new RegExp(`^http://[^/]+/webhooks/${bed.namespace}/${agent}/[A-Za-z0-9_-]{43}$`),
  );
  await bed.client.delete(CORE.secret, bed.name(`svc-webhook-${agent}`));
  const second = await until(async () => {
    const now = await url();
    return now !== undefined && now !== first && now;
  });
  const secret = await get(CORE.secret, `svc-webhook-${agent}`);
  const { token } = secret["data"] as { readonly token: string };
  expect(second.endsWith(`/${Buffer.from(token, "base64").toString()}`)).toBe(true);
});

test.each([
  ["there is no Provider", async () => undefined],
  ["the Provider's Secret is missing", async (name: string) => bed.provider(name)],
] as const)("nothing is half made while %s", async (_what, prepare) => {
  const agent = fresh();
  const provider = `${agent}-github`;
  await prepare(provider);
  await bed.agent(agent, { providers: [provider] });
  const status = await bed.reason(agent, "DegradedProviders");
  expect(status.ready).toBe(false);
  expect(status.message).toContain(provider);
  expect(await bed.generated(agent)).toEqual(new Map());
  await boundProvider(provider);
  const found = await made(agent);
  expect(JSON.stringify(found.get(`ConfigMap/svc-${agent}-providers`))).toContain(provider);
});

describe("the template changes exactly when a pod must be replaced", () => {
  async function bound(): Promise<string> {
    const agent = fresh();
    await boundProvider(`${agent}-a`);
    await boundProvider(`${agent}-b`);
    await bed.secret(`${agent}-other`, "ghp_first");
    await bed.agent(agent, { providers: [`${agent}-a`] });
    await made(agent);
    await bed.reason(agent, "PodsNotReady");
    await bed.settled();
    return agent;
  }

  const edits: readonly [string, (agent: string) => Promise<unknown>][] = [
    [
      "spec.providers",
      async (agent) => bed.agent(agent, { providers: [`${agent}-a`, `${agent}-b`] }),
    ],
    [
      "auth.secretRef",
      async (agent) =>
        bed.provider(`${agent}-a`, { auth: { type: "token", secretRef: `${agent}-other` } }),
    ],
    ["the value of the Secret", async (agent) => bed.secret(`${agent}-a-secret`, "ghp_second")],
    [
      "the hosts of a Provider",
      async (agent) => bed.provider(`${agent}-a`, { hosts: ["github.example.com"] }),
    ],
  ];

  test.each(edits)("once: %s", async (_what, edit) => {
    const agent = await bound();
    const before = await deploymentOf(agent);
    await edit(agent);
    await until(
      async () => (await deploymentOf(agent)).metadata.generation !== before.metadata.generation,
    );
    await bed.settled();
    const after = await deploymentOf(agent);
    expect(after.metadata.generation).toBe((before.metadata.generation ?? 0) + 1);
  });

  test("never: a policy, limits, another key of the Secret", async () => {
    const agent = await bound();
    const before = await deploymentOf(agent);
    const specs = async (): Promise<string> =>
      JSON.stringify((await get(CORE.configMap, `svc-${agent}-providers`))["data"]);
    await bed.provider(`${agent}-a`, { policy: { allow: ["pulls:read"] } });
    await until(async () => (await specs()).includes("pulls:read"));
    await bed.client.merge(CORE.secret, bed.name(`${agent}-a-secret`), { data: { other: "QQ==" } });
    await bed.agent(agent, { providers: [`${agent}-a`], rateLimits: { requestsPerMinute: 9 } });
    await bed.reason(agent, "PodsNotReady");
    await bed.settled();
    expect((await deploymentOf(agent)).metadata.generation).toBe(before.metadata.generation);
  });
});

describe("a task", () => {
  const task = { variant: "task", job: { ttlSecondsAfterFinished: 0 } };

  const jobOf = async (agent: string): Promise<KubeObject> =>
    until(async () => bed.find(CORE.job, `svc-${agent}`), { what: `the Job of ${agent}` });

  /** Does what a kubelet does when a pod has ended well. */
  async function complete(agent: string): Promise<void> {
    const [pod] = await until(async () => {
      const pods = await bed.all(CORE.pod, `svc.io/agent=${agent}`);
      return pods.length > 0 && pods;
    });
    if (pod === undefined) throw new Error("there is no pod");
    await bed.lab.kubectl([
      "patch",
      "pod",
      pod.metadata.name,
      "--namespace",
      bed.namespace,
      "--subresource=status",
      "--type=merge",
      `--patch=${JSON.stringify({ status: { phase: "Succeeded" } })}`,
    ]);
  }

  test("runs once, also when its Job is deleted after its end; another spec is another run", async () => {
    const agent = fresh();
    await bed.agent(agent, { ...task, args: ["first"] });
    const first = await jobOf(agent);
    await complete(agent);
    await until(async () => (await bed.status(agent)).phase === "Complete");
    await until(async () => (await bed.find(CORE.job, `svc-${agent}`)) === undefined, {
      what: "the Job to be deleted by its time to live",
    });
    await bed.settled();
    expect(await bed.find(CORE.job, `svc-${agent}`)).toBeUndefined();
    // What needs no run makes none.
    await bed.agent(agent, { ...task, args: ["first"], rateLimits: { requestsPerMinute: 5 } });
    await bed.reason(agent, "Ready");
    await bed.settled();
    expect(await bed.find(CORE.job, `svc-${agent}`)).toBeUndefined();
    await bed.agent(agent, { ...task, args: ["second"] });
    expect((await jobOf(agent)).metadata.uid).not.toBe(first.metadata.uid);
  });

  test("comes back when its Job is deleted before its end", async () => {
    const agent = fresh();
    await bed.agent(agent, task);
    const { metadata } = await jobOf(agent);
    await bed.client.delete(CORE.job, bed.name(`svc-${agent}`));
    await until(async () => (await jobOf(agent)).metadata.uid !== metadata.uid);
  });

  test("is run again when its spec changes while it runs", async () => {
    const agent = fresh();
    await bed.agent(agent, { ...task, args: ["first"] });
    await jobOf(agent);
    await bed.agent(agent, { ...task, args: ["second"] });
    await until(async () => JSON.stringify((await jobOf(agent))["spec"]).includes("second"));
  });

  test("cannot be suspended by hand", async () => {
    const agent = fresh();
    await bed.agent(agent, task);
    await jobOf(agent);
    await bed.client.merge(CORE.job, bed.name(`svc-${agent}`), { spec: { suspend: true } });
    await until(
      async () => ((await jobOf(agent))["spec"] as { suspend?: boolean }).suspend === false,
    );
  });
});

test("what is settled costs no request, also after a restart and beside other changes", async () => {
  const agent = fresh();
  await boundProvider(`${agent}-github`);
  // A quantity in a form that the API server changes.
  const resources = { limits: { cpu: "1000m", memory: "1024Mi" } };
  await bed.agent(agent, { providers: [`${agent}-github`], resources });
  await made(agent);
  await bed.reason(agent, "PodsNotReady");
  await bed.settled();
  const before = await bed.versions();
  const writes = proxy.writes.length;
  await bed.secret("unrelated", "1");
  const own = kubeKindOf("Agent");
  await bed.client.merge(own, bed.name(agent), { metadata: { annotations: { note: "1" } } });
  await controller.stop();
  await controller.start();
  await controller.ready();
  await bed.client.merge(own, bed.name(agent), { metadata: { annotations: { note: "2" } } });
  await bed.settled();
  const after = await bed.versions();
  const key = `Agent/${bed.namespace}/${agent}`;
  expect({ ...after, [key]: "" }).toEqual({ ...before, [key]: "" });
  const since = proxy.writes.slice(writes);
  // The server writes "1000m" as "1": a new process finds out once that this is no difference.
  expect(since.filter(({ path }) => !path.endsWith(`/deployments/svc-${agent}`))).toEqual([]);
  expect(since.length).toBeLessThanOrEqual(1);
});

describe("an API server with trouble", () => {
  afterEach(() => {
    proxy.answer = () => undefined;
  });

  test("that asks for patience is asked again after it", async () => {
    const agent = fresh();
    let refused = 0;
    proxy.answer = ({ method, url = "" }) => {
      if (method !== "PATCH" || !url.includes(`/deployments/svc-${agent}`) || refused >= 3)
        return undefined;
      refused += 1;
      return { status: 429, body: { kind: "Status", message: "too many requests" } };
    };
    await bed.agent(agent);
    await made(agent);
    expect(refused).toBe(3);
  });

  test("that refuses is named in the log, with the remedy", async () => {
    proxy.answer = ({ url = "" }) =>
      url.includes("/guardbindings")
        ? { status: 403, body: { kind: "Status", message: "guardbindings is forbidden" } }
        : undefined;
    proxy.cut();
    await until(() => controller.output.includes("grant get, list and watch of guardbindings"));
    const agent = fresh();
    await bed.agent(agent);
    await made(agent);
  });

  test("that is away is waited for: another process leads, and goes on", async () => {
    proxy.answer = () => "broken";
    proxy.cut();
    await until(() => !controller.isRunning, { what: "the leader to give up" });
    expect(controller.output).toContain("could not be renewed in time");
    const agent = fresh();
    await bed.agent(agent);
    await controller.start();
    await until(() => /watching failed/.test(controller.output.slice(-2_000)));
    proxy.answer = () => undefined;
    await controller.ready();
    await made(agent);
  });
});
