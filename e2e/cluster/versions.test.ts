/**
 * An upgrade from the previous build, step by step, while a task of that build calls all the time:
 * its pod keeps the old sidecar to its end. On the way, new sidecars meet the old gateway.
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { BUSY_SCRIPT, type BusyReport, reportsOf } from "../support/cluster/busy-agent.ts";
import { install, manifest, secret, SYSTEM, uninstall } from "../support/cluster/installation.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { run } from "../support/cluster/run.ts";
import { Outside } from "../support/services.ts";
import { until } from "../support/wait.ts";

/**
 * Commit of the previous build. With another one, record the files of
 * src/controller/testdata/previous-build anew.
 */
const PREVIOUS = "97c3449d1e6379c373b3cc8630aa5358676322ae";
const SCRIPT = path.join(ROOT, "e2e/cluster/previous.sh");
const BUILT = path.join(ROOT, "images/out/previous", PREVIOUS);
const PULLS = "https://api.github.com/repos/acme/app/pulls";
const ISSUES = "https://api.github.com/repos/acme/app/issues";
/** A busy node takes its time to see that a gateway is going. */
const VALUES = {
  "agents.sidecar.upstreamCaConfigMap": "test-roots",
  "gateway.drainDelaySeconds": 10,
};
/** The first run builds the previous version. */
const BUILD_TIMEOUT_MS = 900_000;
const UPGRADE_TIMEOUT_MS = 600_000;

const namespace = `versions-${randomBytes(4).toString("hex")}`;
const folder = mkdtempSync(path.join(os.tmpdir(), "svc-cluster-"));
let lab: Lab;
let outside: Outside;
/** Name of the task's pod. */
let pod: string;

const kubectl = (...args: readonly string[]): Promise<string> =>
  lab.kubectl(["--namespace", namespace, ...args]);
const system = (...args: readonly string[]): Promise<string> =>
  lab.kubectl(["--namespace", SYSTEM, ...args]);
const apply = (...texts: readonly string[]): Promise<string> =>
  lab.kubectl(["--namespace", namespace, "apply", "-f", "-"], texts.join(""));

/** Status of a call through a sidecar. */
async function callThrough(target: string, url: string): Promise<number> {
  const curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", url];
  return Number(await kubectl("exec", target, "--container", "agent", "--", ...curl));
}

/** The image tags of a container in the pods with a label. */
async function tagsOf(label: string, where: string, container: string): Promise<readonly string[]> {
  const one = `.spec['containers','initContainers'][?(@.name=="${container}")].image`;
  const output = `jsonpath={.items[*]${one}}`;
  const images = await lab.kubectl(["-n", where, "get", "pods", "-l", label, "-o", output]);
  return images.split(" ").map((image) => image.replace(/^.*:/, ""));
}
const gatewayTags = (): Promise<readonly string[]> =>
  tagsOf("app.kubernetes.io/component=gateway", SYSTEM, "gateway");
const sidecarTags = (agent: string): Promise<readonly string[]> =>
  tagsOf(`svc.io/agent=${agent}`, namespace, "svc-sidecar");

const taskLog = (): Promise<string> => kubectl("logs", pod, "--container", "agent");

/** The task's report after some more calls. */
async function laterReport(): Promise<BusyReport> {
  const seen = reportsOf(await taskLog()).length;
  return until(
    async () =>
      reportsOf(await taskLog())
        .slice(seen + 1)
        .at(-1),
    {
      what: "further calls of the task",
    },
  );
}

const deny = (...actions: readonly string[]): Promise<string> => {
  const patch = JSON.stringify({ spec: { policy: { deny: actions } } });
  return kubectl("patch", "provider/github", "--type=merge", "-p", patch);
};

const agent = (name: string, spec: object): string =>
  manifest("Agent", name, {
    image: "localhost/agent:dev",
    imagePullPolicy: "Never",
    models: ["mock/small"],
    providers: ["github"],
    ...spec,
  });

beforeAll(async () => {
  lab = attachLab();
  await run([SCRIPT, PREVIOUS]);
  for (const name of ["svc", "svc-proxy"])
    await lab.importImage(path.join(BUILT, "images", `${name}.tar`));
  const server = net.createServer().listen(443, lab.hostAddress);
  await once(server, "listening");
  outside = await Outside.start(["api.github.com"], lab.hostAddress, {
    dns: dgram.createSocket("udp4").bind(0, "127.0.0.1"),
    tls: server,
  });
  outside.handler = (_request, response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end("[]");
  outside.writeCa(path.join(folder, "ca.crt"));
  await lab.setHosts({ "api.github.com": lab.hostAddress });
  const chart = path.join(BUILT, "source/charts/svc");
  await install(lab, { chart, values: { ...VALUES, "images.tag": "previous" } });
  await lab.kubectl(["create", "namespace", namespace]);
  await kubectl("create", "configmap", "test-roots", `--from-file=${folder}/ca.crt`);
  const auth = { type: "token", secretRef: "github" };
  await apply(
    secret("github", { token: "ghp_of_this_test" }),
    manifest("ModelProvider", "mock", { provider: "mock" }),
    manifest("Provider", "github", { type: "github", auth, policy: { allow: ["*"] } }),
    agent("task", {
      variant: "task",
      command: ["node", "--input-type=module", "--eval", BUSY_SCRIPT],
    }),
    agent("service", {}),
  );
  await kubectl("wait", "--for=condition=Ready", "agent/service", "--timeout=180s");
  await kubectl("wait", "--for=condition=Ready", "pod", "-l", "svc.io/agent=task");
  pod = await kubectl(
    "get",
    "pods",
    "--selector=svc.io/agent=task",
    "--output=jsonpath={.items[*].metadata.name}",
  );
}, BUILD_TIMEOUT_MS);

afterAll(async () => {
  await lab.kubectl(["delete", "namespace", namespace, "--ignore-not-found"]);
  await uninstall(lab);
  await lab.setHosts({});
  await outside.close();
  rmSync(folder, { recursive: true });
});

test("a checkout without the history is told how to get it", async () => {
  await expect(run([SCRIPT, "0".repeat(40)])).rejects.toThrow(/does not have .* git fetch/);
});

test(
  "an upgrade: new sidecars work with the old gateway, an old one with everything new",
  async () => {
    expect([await gatewayTags(), await sidecarTags("task")]).toEqual([["previous"], ["previous"]]);
    expect((await laterReport()).failed, await taskLog()).toBe(0);

    // Only the gateway stays as it is, as when its rollout cannot go on.
    await system("rollout", "pause", "deployment/svc-gateway");
    await install(lab, { values: VALUES, wait: false });
    await system("rollout", "status", "deployment/svc-controller", "--timeout=180s");
    await until(async () => (await sidecarTags("service")).every((tag) => tag === "dev"), {
      what: "new sidecars",
    });
    await kubectl("wait", "--for=condition=Ready", "agent/service", "--timeout=180s");
    expect(await gatewayTags()).toEqual(["previous"]);
    const script =
      "const { OPENAI_BASE_URL: url, OPENAI_API_KEY: key } = process.env;" +
      'const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };' +
      'const messages = [{ role: "user", content: "Hello" }];' +
      'const body = JSON.stringify({ model: "mock/small", messages });' +
      'const answer = await fetch(`${url}/chat/completions`, { method: "POST", headers, body });' +
      "console.log(answer.status);";
    const inService = ["exec", "deployment/svc-service", "--container", "agent", "--"];
    const node = ["node", "--input-type=module", "--eval", script];
    expect((await kubectl(...inService, ...node)).trim()).toBe("200");
    expect(await callThrough("deployment/svc-service", PULLS)).toBe(200);
    await deny("pulls:*");
    await until(async () => (await callThrough("deployment/svc-service", PULLS)) === 403, {
      what: "the new sidecar to deny",
    });
    expect(await callThrough("deployment/svc-service", ISSUES)).toBe(200);
    await until(async () => (await callThrough(pod, PULLS)) === 403, {
      what: "the old sidecar to deny",
    });

    // The gateway follows; the task goes on with its old sidecar.
    await system("rollout", "resume", "deployment/svc-gateway");
    await system("rollout", "status", "deployment/svc-gateway", "--timeout=180s");
    await until(async () => (await gatewayTags()).join() === "dev", {
      what: "the old gateway to be gone",
    });
    await deny();
    await until(async () => (await callThrough(pod, PULLS)) === 200, {
      what: "the old sidecar to allow again",
    });
    expect(await sidecarTags("task")).toEqual(["previous"]);
    const restarts = await kubectl(
      "get",
      `pod/${pod}`,
      "--output=jsonpath={.status.initContainerStatuses[*].restartCount}",
    );
    expect(restarts).toBe("0 0");
    // Of all calls since before the upgrade.
    const { calls, failed } = await laterReport();
    expect(failed, await taskLog()).toBe(0);
    expect(calls).toBeGreaterThan(100);
  },
  UPGRADE_TIMEOUT_MS,
);
