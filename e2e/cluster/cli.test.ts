/** The command line on a real cluster, with a real installation and an agent that makes a call. */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { CheckResult } from "../../src/cli/checks.ts";
import type { ProxyReport } from "../../src/cli/proxies.ts";
import type { ObjectView } from "../../src/cli/backend.ts";
import { install, manifest, SYSTEM, uninstall } from "../support/cluster/installation.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { svc, type SvcResult, withToken } from "../support/cluster/svc.ts";
import { until } from "../support/wait.ts";

const namespace = `cli-${randomBytes(4).toString("hex")}`;
const folder = mkdtempSync(path.join(os.tmpdir(), "svc-cluster-"));
const AGENT = { image: "localhost/agent:dev", imagePullPolicy: "Never", models: ["mock/small"] };
let lab: Lab;

const run = (...args: readonly string[]): Promise<SvcResult> => svc(lab.kubeconfig, args);
const inTeam = (...args: readonly string[]): Promise<SvcResult> => run(...args, "-n", namespace);
const apply = (text: string): Promise<SvcResult> =>
  svc(
    lab.kubeconfig,
    ["apply", "-f", "-"],
    text.replaceAll('"name":', `"namespace":"${namespace}","name":`),
  );

/** Runs a command in the agent's container. */
const inAgent = (...command: readonly string[]): Promise<string> => {
  const exec = ["exec", "deployment/svc-helper", "--container", "agent", "--"];
  return lab.kubectl(["-n", namespace, ...exec, ...command]);
};

/** What a command printed; it must succeed. */
async function said(result: Promise<SvcResult>): Promise<string> {
  const { code, stdout, stderr } = await result;
  expect({ code, stderr }).toMatchObject({ code: 0 });
  return stdout;
}

beforeAll(async () => {
  lab = attachLab();
  await install(lab);
  await lab.kubectl(["create", "namespace", namespace]);
  await said(
    apply(
      manifest("ModelProvider", "mock", { provider: "mock", externalAccess: { enabled: true } }),
    ),
  );
  await said(apply(manifest("Agent", "helper", AGENT)));
  await said(inTeam("status", "agent/helper", "--wait", "--timeout", "90s"));
});

afterAll(async () => {
  await lab.kubectl(["delete", "namespace", namespace, "--ignore-not-found"]);
  await uninstall(lab);
  rmSync(folder, { recursive: true });
});

describe("apply, get and delete", () => {
  test("say what has changed, and what is in force", async () => {
    const text = manifest("Provider", "gone", {
      type: "github",
      auth: { type: "token", secretRef: "none" },
    });
    expect(await said(apply(text))).toBe(
      `provider/gone created in namespace ${namespace}: not in use: SecretDoesNotExist: ` +
        `Secret ${namespace}/none does not exist\n`,
    );
    expect(await said(apply(text))).toContain("provider/gone unchanged");
    expect(await said(inTeam("delete", "provider", "gone"))).toBe("provider/gone deleted\n");
    expect((await inTeam("get", "provider", "gone")).code).toBe(1);
  });

  test("nothing is written if one object is refused", async () => {
    const { code, stderr } = await apply(
      manifest("ModelProvider", "fine", { provider: "mock" }) +
        manifest("ModelProvider", "bad", { provider: "nobody" }),
    );
    expect([code, stderr]).toEqual([1, expect.stringContaining("spec.provider: must be one of")]);
    expect(await said(inTeam("get", "model-providers", "-o", "name"))).toBe(
      "model-provider/mock\n",
    );
  });

  test("a namespace that does not exist is the API server's to refuse", async () => {
    const { code, stderr } = await svc(
      lab.kubeconfig,
      ["apply", "-f", "-"],
      manifest("ModelProvider", "x", { provider: "mock" }).replace(
        '"name":',
        '"namespace":"nowhere","name":',
      ),
    );
    expect([code, stderr]).toEqual([
      1,
      'svc: ModelProvider nowhere/x: namespaces "nowhere" not found\n',
    ]);
  });

  test("create model-provider writes a Secret whose value is never shown", async () => {
    const file = path.join(folder, "key");
    writeFileSync(file, "sk-hidden");
    const flags = ["--provider", "openai", "--api-key-file", file];
    await said(inTeam("create", "model-provider", "vendor", ...flags));
    expect((await inTeam("create", "model-provider", "vendor", ...flags)).stderr).toContain(
      "exists already",
    );
    const secret = await said(inTeam("get", "secret", "vendor", "-o", "yaml"));
    expect(secret).toContain("- api-key");
    expect(secret).not.toContain("hidden");
    expect(secret).not.toContain(Buffer.from("sk-hidden").toString("base64"));
    await said(inTeam("delete", "model-provider", "vendor"));
  });
});

test("an AccessKey from creation to revocation", async () => {
  const first = await said(
    inTeam("access-key", "create", "--name", "laptop", "--model-provider", "mock"),
  );
  expect(first).toMatch(/^svc_\w+\n$/);
  const second = await said(inTeam("access-key", "rotate", "laptop", "--grace", "1h"));
  expect(second).not.toBe(first);
  expect(await said(inTeam("access-key", "list"))).toMatch(/^laptop +mock +yes +Ready/m);
  expect(await said(inTeam("access-key", "revoke", "laptop"))).toBe("access-key/laptop revoked\n");
  const key = JSON.parse(await said(inTeam("get", "ak", "laptop", "-o", "json"))) as ObjectView;
  expect(key.status).toMatchObject({ ready: false, reason: "KeyRevoked" });
  await said(inTeam("access-key", "delete", "laptop"));
});

describe("a call of the agent", () => {
  beforeAll(async () => {
    const script =
      `const r = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {method: "POST", ` +
      `headers: {authorization: "Bearer " + process.env.OPENAI_API_KEY, "content-type": ` +
      `"application/json"}, body: JSON.stringify({model: "mock/small", messages: [{role: "user", ` +
      `content: "hi"}]})}); if (!r.ok) throw new Error(await r.text())`;
    await inAgent("node", "--input-type=module", "--eval", script);
  });

  test("is counted in svc get agents", async () => {
    await until(
      async () => /^helper +yes +Ready +\d+ +1 /m.test(await said(inTeam("get", "agents"))),
      {
        what: "the agent's usage",
      },
    );
  });

  test("is in the metrics, by pod", async () => {
    expect(await said(run("get", "metrics", "-o", "wide"))).toMatch(
      /^svc_\w+\{pod="svc-gateway-[^"]+",.*mock.*\} \d+$/m,
    );
  });

  test("is in the audit chain, which verifies", async () => {
    const records = await said(inTeam("audit", "helper", "-o", "json"));
    expect(
      records
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as object),
    ).toContainEqual(
      expect.objectContaining({
        type: "LLM_CALL",
        fields: expect.objectContaining({ workload: `${namespace}/helper` }) as unknown,
      }),
    );
    const { code, stdout, stderr } = await run("audit", "verify");
    expect({ code, stderr }).toMatchObject({ code: 0 });
    expect(stdout).toMatch(/^svc-gateway-\S+: good/m);
    expect(stdout).toMatch(/^sidecar-svc-helper-\S+: good/m);
    expect(stdout).not.toContain("BAD");
  });

  test("was made with the token that svc token prints", async () => {
    const token = await said(inTeam("token", "helper"));
    const inPod = await inAgent("node", "--print", "process.env.OPENAI_API_KEY");
    expect(token).toBe(inPod);
  });
});

test("proxy-status shows what each Envoy accepted", async () => {
  const { gateways, sidecars } = JSON.parse(
    await said(run("proxy-status", "-o", "json")),
  ) as ProxyReport;
  expect(gateways).toHaveLength(1);
  expect(gateways[0]?.envoys[0]?.types.map(({ state }) => state)).toEqual([
    "acknowledged",
    "acknowledged",
    "acknowledged",
  ]);
  expect(sidecars.find((one) => one.namespace === namespace)).toMatchObject({
    agent: "helper",
    ready: true,
    policy: "in-force",
  });
});

describe("check", () => {
  const checks = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { stdout } = await run("check", "-o", "json", ...args);
    return (JSON.parse(stdout) as CheckResult[]).map(({ level, name }) => `${level} ${name}`);
  };

  test("finds nothing wrong with an installation", async () => {
    const found = await checks();
    expect(found.filter((line) => line.startsWith("FAIL"))).toEqual([]);
    for (const name of ["kinds", "gateway", "workload key", "nodes", "pod security", "your rights"])
      expect(found).toContain(`OK ${name}`);
  });

  test("finds a namespace that does not admit agents, and one without an installation", async () => {
    const label = "pod-security.kubernetes.io/enforce";
    await lab.kubectl(["label", "namespace", namespace, `${label}=baseline`]);
    expect(await checks()).toContain("FAIL pod security");
    await lab.kubectl(["label", "namespace", namespace, `${label}-`]);
    expect(await checks("--system-namespace", namespace)).toContain("FAIL deployments");
  });
});

test("a user without rights is told which one is missing", async () => {
  const account = ["-n", namespace, "create"];
  await lab.kubectl([...account, "serviceaccount", "nobody"]);
  const token = (await lab.kubectl([...account, "token", "nobody"])).trim();
  const file = path.join(folder, "nobody.kubeconfig");
  writeFileSync(file, withToken(readFileSync(lab.kubeconfig, "utf8"), token));
  const { code, stderr } = await svc(file, ["get", "agents", "-n", namespace]);
  expect([code, stderr]).toEqual([
    1,
    `svc: agents.svc.io is forbidden: User "system:serviceaccount:${namespace}:nobody" cannot ` +
      `list resource "agents" in API group "svc.io" in the namespace "${namespace}". Ask an ` +
      "administrator of the cluster for this right.\n",
  ]);
  const { stdout } = await svc(file, ["check"]);
  expect(stdout).toContain("WARN  your rights");
});

test("install --dry-run prints the manifests, and changes nothing", async () => {
  const before = await lab.helm(["history", "svc", "-n", SYSTEM]);
  const text = await said(run("install", "--dry-run", "--set", "images.registry=localhost"));
  expect(text).toContain("kind: CustomResourceDefinition");
  expect(text).toContain("image: localhost/svc-proxy");
  expect(await lab.helm(["history", "svc", "-n", SYSTEM])).toBe(before);
});
