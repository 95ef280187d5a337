/**
 * An agent in a real cluster, as its users see it: the chart is installed, an Agent is applied, and
 * its container calls a model with an official SDK and clones a repository, without a credential.
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BUSY_SCRIPT, reportsOf } from "../support/cluster/busy-agent.ts";
import { install, manifest, secret, uninstall } from "../support/cluster/installation.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { CommandError } from "../support/cluster/run.ts";
import { spawnSvc, svc, type SvcResult, withToken } from "../support/cluster/svc.ts";
import { GitBackend } from "../support/git-backend.ts";
import { Outside } from "../support/services.ts";
import { until } from "../support/wait.ts";

const TOKEN = `ghp_${randomBytes(18).toString("hex")}`;
const namespace = `agents-${randomBytes(4).toString("hex")}`;
const folder = mkdtempSync(path.join(os.tmpdir(), "svc-cluster-"));
let lab: Lab;
let outside: Outside;
let git: GitBackend;

const kubectl = (args: readonly string[], input?: string): Promise<string> =>
  lab.kubectl(["--namespace", namespace, ...args], input);

/** Runs a command in the agent's container. */
const inAgent = (...command: readonly string[]): Promise<string> =>
  kubectl(["exec", "deployment/svc-helper", "--container", "agent", "--", ...command]);

const nodeScript = (text: string): Promise<string> =>
  inAgent("node", "--input-type=module", "--eval", text);

/** Runs a command that must fail, and returns what it said. */
async function refused(...command: readonly string[]): Promise<string> {
  try {
    const said = await inAgent(...command);
    throw new Error(`${command.join(" ")} succeeded: ${said}`);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return error.stderr;
  }
}

/** A volume on the node's disk, which outlives the pods. */
async function auditVolume(): Promise<void> {
  const size = { storage: "1Gi" };
  const common = { accessModes: ["ReadWriteMany"], storageClassName: "" };
  const hostPath = { path: `/var/tmp/${namespace}`, type: "DirectoryOrCreate" };
  await lab.exec(["mkdir", "--mode=0777", "--parents", hostPath.path]);
  await kubectl(
    ["apply", "-f", "-"],
    JSON.stringify({
      apiVersion: "v1",
      kind: "List",
      items: [
        {
          apiVersion: "v1",
          kind: "PersistentVolume",
          metadata: { name: namespace },
          spec: { ...common, hostPath, capacity: size },
        },
        {
          apiVersion: "v1",
          kind: "PersistentVolumeClaim",
          metadata: { name: "svc-audit" },
          spec: { ...common, volumeName: namespace, resources: { requests: size } },
        },
      ],
    }),
  );
}

beforeAll(async () => {
  lab = attachLab();
  git = new GitBackend(TOKEN);
  git.create("acme/app", ["main"]);
  const server = net.createServer().listen(443, lab.hostAddress);
  await once(server, "listening");
  outside = await Outside.start(["github.com", "api.github.com"], lab.hostAddress, {
    dns: dgram.createSocket("udp4").bind(0, "127.0.0.1"),
    tls: server,
  });
  outside.handler = (request, response) => {
    if (request.host === "github.com") return git.serve(request, response);
    response.writeHead(200, { "content-type": "application/json" }).end("[]");
  };
  outside.writeCa(path.join(folder, "ca.crt"));
  await lab.setHosts({ "github.com": lab.hostAddress, "api.github.com": lab.hostAddress });
  await install(lab, {
    values: {
      "agents.sidecar.upstreamCaConfigMap": "test-roots",
      "agents.audit.claim": "svc-audit",
    },
  });
  await lab.kubectl(["create", "namespace", namespace]);
  await auditVolume();
  await kubectl(["create", "configmap", "test-roots", `--from-file=${folder}/ca.crt`]);
  await kubectl(
    ["apply", "-f", "-"],
    [
      secret("github", { token: TOKEN }),
      manifest("ModelProvider", "mock", { provider: "mock" }),
      manifest("Provider", "github", {
        type: "github",
        auth: { type: "token", secretRef: "github" },
        policy: { allow: ["*"] },
      }),
      manifest("Agent", "helper", {
        image: "localhost/agent:dev",
        imagePullPolicy: "Never",
        models: ["mock/small"],
        providers: ["github"],
      }),
    ].join(""),
  );
  await kubectl(["wait", "--for=condition=Ready", "agent/helper", "--timeout=180s"]);
});

afterAll(async () => {
  await lab.kubectl(["delete", "namespace", namespace, "--ignore-not-found"]);
  await lab.kubectl(["delete", "persistentvolume", namespace, "--ignore-not-found"]);
  await lab.exec(["rm", "--recursive", "--force", `/var/tmp/${namespace}`]);
  await uninstall(lab);
  await lab.setHosts({});
  await outside.close();
  git.remove();
  rmSync(folder, { recursive: true });
});

/** The pods that read claims. */
const READERS = ["get", "pods", "-l", "app.kubernetes.io/component=audit-reader", "-o", "name"];

describe("what the agent can do", () => {
  test("an official SDK calls a model through the gateway, with no setting of its own", async () => {
    const said = await nodeScript(`
      import OpenAI from "openai";
      const answer = await new OpenAI().chat.completions.create({
        model: "mock/small", messages: [{ role: "user", content: "Hello" }],
      });
      console.log(answer.choices[0].message.content);`);
    expect(said.trim()).toBe("You said: Hello");
  });

  test("the Anthropic SDK streams", async () => {
    const said = await nodeScript(`
      import Anthropic from "@anthropic-ai/sdk";
      const stream = new Anthropic().messages.stream({
        model: "mock/small", max_tokens: 64, messages: [{ role: "user", content: "Hello" }],
      });
      console.log(await stream.finalText());`);
    expect(said.trim()).toBe("You said: Hello");
  });

  test("git clones through the sidecar, which adds the credential", async () => {
    const said = await inAgent(
      "sh",
      "-c",
      "cd /tmp && git clone -q https://github.com/acme/app.git && git -C app log --format=%an",
    );
    expect(said.trim()).toBe("tester");
    const sent = outside.requests.findLast(({ url }) => url.includes("git-upload-pack"));
    const [, password] = Buffer.from((sent?.headers.authorization ?? "").slice(6), "base64")
      .toString()
      .split(":");
    expect(password).toBe(TOKEN);
  });

  test("its usage is in the status", async () => {
    await until(
      async () =>
        Number(await kubectl(["get", "agent/helper", "-o", "jsonpath={.status.requestsToday}"])) >=
        2,
      { what: "the Agent's requestsToday" },
    );
  });
});

describe("what the agent cannot do", () => {
  test("it finds no credential: not in its environment, its files, or the processes it sees", async () => {
    const all = await inAgent(
      "sh",
      "-c",
      "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; " +
        "grep -rs ghp_ /etc /run /tmp/app/.git /var 2>/dev/null; true",
    );
    expect(all).not.toContain(TOKEN);
    expect(all).not.toContain("envoy");
  });

  test("it has no service-account token", async () => {
    expect(await refused("ls", "/var/run/secrets/kubernetes.io")).toContain("No such file");
  });

  test("it runs as an ordinary user, who cannot become another", async () => {
    const status = await inAgent("cat", "/proc/self/status");
    expect(status).toMatch(/^Uid:\t65532\t65532\t65532\t65532$/m);
    expect(status).toMatch(/^CapBnd:\t0000000000000000$/m);
    expect(status).toMatch(/^NoNewPrivs:\t1$/m);
    expect(status).toMatch(/^Seccomp:\t2$/m);
  });

  test.each([
    ["the real service by its address", () => `https://${lab.hostAddress}/`],
    ["the Kubernetes API", () => "https://10.97.0.1/"],
    ["the node", () => `http://${lab.nodeAddress}:10250/`],
    ["the gateway's external port", () => "http://svc-gateway.svc-system.svc.cluster.local:8080/"],
    ["the sidecar's metrics", () => "http://127.0.0.1:8090/metrics"],
  ])("there is no way to %s", async (_name, url) => {
    const said = await refused("curl", "-sSk", "--max-time", "5", url());
    expect(said).toMatch(/Failed to connect|Connection refused|Couldn't connect|reset by peer/);
  });

  test("nor to the sidecar's metrics by the pod's own address", async () => {
    const [address = ""] = (await inAgent("hostname", "-i")).trim().split(" ");
    const said = await refused("curl", "-sS", "--max-time", "5", `http://${address}:8090/metrics`);
    expect(said).toMatch(/Failed to connect|Connection refused|reset by peer/);
  });

  test("a DNS server outside of the pod does not answer it", async () => {
    const ask = `dig +time=1 +tries=1 @${lab.dnsAddress} github.com || echo code $?`;
    expect(await inAgent("sh", "-c", ask)).toContain("code 9");
  });

  test("its own DNS knows the bound hosts and the gateway, and nothing else", async () => {
    expect(await inAgent("dig", "+short", "api.github.com")).toBe("127.0.0.1\n");
    expect(await inAgent("dig", "evil.example.com")).toContain("NXDOMAIN");
    expect(await inAgent("dig", "kubernetes.default.svc.cluster.local")).toContain("NXDOMAIN");
  });
});

describe("a change of a Provider, while the agent calls all the time", () => {
  const podsOf = async (): Promise<readonly string[]> =>
    (
      await kubectl([
        "get",
        "pods",
        "-l",
        "svc.io/agent=busy",
        "-o",
        "jsonpath={.items[*].metadata.name}",
      ])
    ).split(" ");
  const patch = (kind: string, name: string, spec: object): Promise<string> =>
    kubectl(["patch", kind, name, "--type=merge", "-p", JSON.stringify({ spec })]);
  beforeAll(async () => {
    await kubectl(
      ["apply", "-f", "-"],
      [
        manifest("Provider", "second", {
          type: "github",
          hosts: ["uploads.github.com"],
          auth: { type: "token", secretRef: "github" },
        }),
        manifest("Provider", "busy", {
          type: "github",
          hosts: ["api.github.com"],
          auth: { type: "token", secretRef: "github" },
        }),
        manifest("Agent", "busy", {
          image: "localhost/agent:dev",
          imagePullPolicy: "Never",
          command: ["node", "--input-type=module", "--eval", BUSY_SCRIPT],
          models: ["mock/small"],
          providers: ["busy"],
        }),
      ].join(""),
    );
    await kubectl(["wait", "--for=condition=Ready", "agent/busy", "--timeout=180s"]);
  });

  test("is in force in the sidecar; no pod restarts, and no call fails", async () => {
    const before = await podsOf();
    const denied = async (): Promise<string> =>
      kubectl([
        "exec",
        "deployment/svc-busy",
        "-c",
        "agent",
        "--",
        "curl",
        "-s",
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "https://api.github.com/repos/acme/app/pulls",
      ]);
    expect(await denied()).toBe("200");
    await patch("provider", "busy", { policy: { deny: ["pulls:*"] } });
    await until(async () => (await denied()) === "403", { what: "the sidecar to deny" });
    expect(await podsOf()).toEqual(before);
    const restarts = await kubectl([
      "get",
      "pods",
      "-l",
      "svc.io/agent=busy",
      "-o",
      "jsonpath={.items[*].status.initContainerStatuses[*].restartCount}",
    ]);
    expect(restarts).toBe("0 0");
    const log = await kubectl(["logs", "deployment/svc-busy", "-c", "agent"]);
    expect(reportsOf(log).at(-1)?.failed, log).toBe(0);
  });

  test("another list of Providers makes another pod; the old one's last calls pass", async () => {
    const [before = ""] = await podsOf();
    const log = kubectl(["logs", before, "-c", "agent", "--follow"]);
    await patch("agent", "busy", { providers: ["busy", "second"] });
    const whole = await log;
    expect(whole).toContain("the end");
    expect(reportsOf(whole).at(-1)?.failed, whole).toBe(0);
    await kubectl(["wait", "--for=condition=Ready", "agent/busy", "--timeout=180s"]);
    await until(async () => !(await podsOf()).includes(before), { what: "the old pod to be gone" });
    expect(await podsOf()).toHaveLength(1);
    const hosts = await kubectl([
      "exec",
      "deployment/svc-busy",
      "-c",
      "agent",
      "--",
      "cat",
      "/etc/hosts",
    ]);
    expect(hosts).toContain("uploads.github.com");
  });

  test("so does another value of its Secret: the new credential is in force", async () => {
    const [before = ""] = await podsOf();
    const next = `ghp_${randomBytes(18).toString("hex")}`;
    await kubectl(["apply", "-f", "-"], secret("github", { token: next }));
    await until(async () => !(await podsOf()).includes(before), { what: "the old pod to be gone" });
    await until(
      () => outside.requests.some(({ headers }) => (headers.authorization ?? "").includes(next)),
      { what: "a call with the new token" },
    );
  });
});

test("the audit chains of pods that are gone are read through one that runs, each once", async () => {
  const { code, stdout, stderr } = await svc(lab.kubeconfig, ["audit", "verify"]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const chains = stdout.match(/^sidecar-svc-busy-[a-z0-9-]+: good/gm) ?? [];
  expect(chains.length, stdout).toBeGreaterThanOrEqual(3);
  expect(new Set(chains).size).toBe(chains.length);
  expect(await kubectl(READERS)).toBe("");
});

test("a pod meets Pod Security 'restricted' but for the container that redirects", async () => {
  const restricted = `${namespace}-restricted`;
  await lab.kubectl(["create", "namespace", restricted]);
  const label = "pod-security.kubernetes.io/enforce=restricted";
  await lab.kubectl(["label", "namespace", restricted, label]);
  const { template } = (
    JSON.parse(await kubectl(["get", "deployment/svc-helper", "-o", "json"])) as {
      readonly spec: { readonly template: { readonly spec: PodSpec } };
    }
  ).spec;
  const tried = async (spec: PodSpec): Promise<string> => {
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "tried" }, spec };
    const args = ["--namespace", restricted, "create", "--dry-run=server", "-f", "-"];
    return lab.kubectl(args, JSON.stringify(pod)).catch((error: CommandError) => error.stderr);
  };
  const { initContainers } = template.spec;
  expect(initContainers.map(({ name }) => name)).toEqual(["svc-redirect", "svc-sidecar"]);
  expect(template.spec.automountServiceAccountToken).toBe(false);
  const whole = await tried(template.spec);
  expect(whole).toContain('violates PodSecurity "restricted');
  expect(whole).toContain('container "svc-redirect"');
  expect(whole).not.toMatch(/containers? "(?:agent|svc-sidecar)"/);
  const rest = { ...template.spec, initContainers: initContainers.slice(1) };
  expect(await tried(rest)).toContain("pod/tried created");
  await lab.kubectl(["delete", "namespace", restricted]);
});

describe("when no pod of an agent runs any more", () => {
  const audit = (...args: readonly string[]): Promise<SvcResult> =>
    svc(lab.kubeconfig, ["audit", ...args]);

  beforeAll(async () => {
    await inAgent("curl", "-sS", "https://api.github.com/repos/acme/app/issues");
    await kubectl(["delete", "agents", "--all"]);
    await until(async () => (await kubectl(["get", "pods", "-o", "name"])) === "", {
      what: "the pods to be gone",
    });
    // The pod that reads must be admitted where agents are not.
    const label = "pod-security.kubernetes.io/enforce=restricted";
    await lab.kubectl(["label", "namespace", namespace, label]);
  });

  test("svc audit shows their calls, each once", async () => {
    const { code, stdout, stderr } = await audit("helper", "-n", namespace, "-o", "json");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const records = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as ServiceRecord);
    expect(records).toContainEqual(
      expect.objectContaining({
        type: "SERVICE_CALL",
        chain: expect.stringMatching(/^sidecar-svc-helper-/) as unknown,
        fields: expect.objectContaining({ host: "api.github.com", allowed: true }) as unknown,
      }),
    );
    const places = records.map(({ chain, seq }) => `${chain} ${seq}`);
    expect(new Set(places).size).toBe(places.length);
    // Chains of other agents were not even copied.
    expect(stdout).not.toContain("sidecar-svc-busy");
  });

  test("svc audit verify accepts their chains, and leaves no pod behind", async () => {
    const { code, stdout, stderr } = await audit("verify");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/^sidecar-svc-helper-\S+: good/m);
    await until(async () => (await kubectl(READERS)) === "", { what: "the reader to be gone" });
  });

  test("an interrupted command leaves none behind either", async () => {
    const child = spawnSvc(lab.kubeconfig, ["audit", "verify"]);
    const ended = once(child, "exit");
    await until(async () => (await kubectl(READERS)) !== "", { what: "the reader" });
    child.kill("SIGINT");
    expect(await ended).toEqual([null, "SIGINT"]);
    await until(async () => (await kubectl(READERS)) === "", { what: "the reader to be gone" });
  });

  test("a user who may not create pods is told so, and reads the chains of pods that run", async () => {
    const rights = "configmaps,persistentvolumeclaims,pods/exec";
    const role = ["--verb=get,list,create", `--resource=${rights}`];
    await lab.kubectl(["create", "clusterrole", namespace, ...role]);
    await lab.kubectl([
      "create",
      "clusterrole",
      `${namespace}-pods`,
      "--verb=list",
      "--resource=pods",
    ]);
    const account = `--serviceaccount=${namespace}:auditor`;
    await kubectl(["create", "serviceaccount", "auditor"]);
    for (const name of [namespace, `${namespace}-pods`])
      await lab.kubectl(["create", "clusterrolebinding", name, `--clusterrole=${name}`, account]);
    const file = path.join(folder, "auditor.kubeconfig");
    const token = (await kubectl(["create", "token", "auditor"])).trim();
    writeFileSync(file, withToken(readFileSync(lab.kubeconfig, "utf8"), token));
    const { code, stdout, stderr } = await svc(file, ["audit", "verify"]);
    for (const name of [namespace, `${namespace}-pods`])
      await lab.kubectl(["delete", `clusterrole/${name}`, `clusterrolebinding/${name}`]);
    expect(stderr).toContain(`svc: the chains of claim ${namespace}/svc-audit were not read: `);
    expect(stderr).toContain('cannot create resource "pods"');
    expect(stderr).toContain(`needs the rights create, get and delete of pods`);
    expect(stdout).toMatch(/^svc-gateway-\S+: good/m);
    expect(code).toBe(1);
  });
});

interface ServiceRecord {
  readonly chain: string;
  readonly seq: number;
}

interface PodSpec {
  readonly automountServiceAccountToken: boolean;
  readonly initContainers: readonly { readonly name: string }[];
}
