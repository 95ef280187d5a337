/**
 * A namespace that enforces the Pod Security Standard "restricted": no init container may have
 * NET_ADMIN, so the sidecar itself listens on the ports that agents call.
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { install, manifest, secret, uninstall } from "../support/cluster/installation.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { Outside } from "../support/services.ts";

const TOKEN = `ghp_${randomBytes(18).toString("hex")}`;
const namespace = `restricted-${randomBytes(4).toString("hex")}`;
const folder = mkdtempSync(path.join(os.tmpdir(), "svc-restricted-"));
let lab: Lab;
let outside: Outside;

const kubectl = (args: readonly string[], input?: string): Promise<string> =>
  lab.kubectl(["--namespace", namespace, ...args], input);

beforeAll(async () => {
  lab = attachLab();
  const server = net.createServer().listen(443, lab.hostAddress);
  await once(server, "listening");
  outside = await Outside.start(["api.github.com"], lab.hostAddress, {
    dns: dgram.createSocket("udp4").bind(0, "127.0.0.1"),
    tls: server,
  });
  outside.writeCa(path.join(folder, "ca.crt"));
  await lab.setHosts({ "api.github.com": lab.hostAddress });
  await install(lab, {
    values: {
      "agents.sidecar.upstreamCaConfigMap": "test-roots",
      "agents.interception": "sysctl",
    },
  });
  await lab.kubectl(["create", "namespace", namespace]);
  await lab.kubectl([
    "label",
    "namespace",
    namespace,
    "pod-security.kubernetes.io/enforce=restricted",
  ]);
  await kubectl(["create", "configmap", "test-roots", `--from-file=${folder}/ca.crt`]);
  await kubectl(
    ["apply", "-f", "-"],
    [
      secret("github", { token: TOKEN }),
      manifest("ModelProvider", "mock", { provider: "mock" }),
      manifest("Provider", "github", {
        type: "github",
        auth: { type: "token", secretRef: "github" },
      }),
      manifest("Agent", "helper", {
        image: "localhost/agent:dev",
        imagePullPolicy: "Never",
        models: ["mock/small"],
        providers: ["github"],
      }),
      manifest("Agent", "once", {
        variant: "task",
        image: "localhost/agent:dev",
        imagePullPolicy: "Never",
        command: ["sh", "-c", "curl -sf https://api.github.com/user && echo done"],
        providers: ["github"],
      }),
    ].join(""),
  );
  await kubectl(["wait", "--for=condition=Ready", "agent/helper", "--timeout=180s"]);
});

afterAll(async () => {
  await lab.kubectl(["delete", "namespace", namespace, "--ignore-not-found"]);
  await uninstall(lab);
  await lab.setHosts({});
  await outside.close();
  rmSync(folder, { recursive: true });
});

test("the agent's calls reach the sidecar, on its own ports", async () => {
  const said = await kubectl([
    "exec",
    "deployment/svc-helper",
    "-c",
    "agent",
    "--",
    "curl",
    "-sS",
    "https://api.github.com/repos/acme/app",
  ]);
  expect(said).toBe('{"ok":true}');
  expect(outside.requests.at(-1)?.headers.authorization).toContain(TOKEN);
});

test("a task's Job completes, although its sidecar would run on", async () => {
  await kubectl([
    "wait",
    "--for=jsonpath={.status.phase}=Complete",
    "agent/once",
    "--timeout=180s",
  ]);
  expect(await kubectl(["logs", "job/svc-once", "-c", "agent"])).toContain("done");
});

test("there is no privileged container in its pods", async () => {
  const names = await kubectl([
    "get",
    "pods",
    "-l",
    "svc.io/agent=helper",
    "-o",
    "jsonpath={.items[*].spec.initContainers[*].name}",
  ]);
  expect(names).toBe("svc-sidecar");
});
