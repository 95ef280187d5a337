/** The Helm chart against a real API server: every object, an upgrade, an uninstall, the rights. */
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseDocument } from "yaml";
import { goldenInputs } from "../../src/platform/testing-goldens.ts";
import { CHART } from "../support/cluster/helm.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";

const TESTDATA = path.join(import.meta.dirname, "testdata/chart");
/** Two releases would own the same CustomResourceDefinitions, so every test uses this one. */
const RELEASE = "svc";
/** Of this run: namespaces of an earlier one may still be terminating. */
const NAMESPACE = `svc-chart-${randomBytes(3).toString("hex")}`;
const TEAM = `${NAMESPACE}-team`;

let lab: Lab;

beforeAll(async () => {
  lab = attachLab();
  await lab.kubectl(["apply", "-f", "-"], `${namespace(NAMESPACE)}---\n${namespace(TEAM)}`);
  await lab.kubectl([
    "label",
    "namespace",
    NAMESPACE,
    "pod-security.kubernetes.io/enforce=restricted",
  ]);
  await lab.kubectl(["apply", "-f", "-"], FOREIGN_KINDS.map(foreignKind).join("---\n"));
  for (const [plural = "", group = ""] of FOREIGN_KINDS)
    await lab.kubectl(["wait", "--for=condition=Established", `crd/${plural}.${group}`]);
});

afterAll(async () => {
  for (const [plural = "", group = ""] of FOREIGN_KINDS)
    await lab.kubectl(["delete", "crd", `${plural}.${group}`]);
  await lab.kubectl(["delete", "namespace", NAMESPACE, TEAM, "--wait=false"]);
});

const namespace = (name: string): string =>
  `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}\n`;

/** Kinds of other projects that the chart may create: their own schemas are not at hand. */
const FOREIGN_KINDS = [
  ["httproutes", "gateway.networking.k8s.io", "HTTPRoute"],
  ["podmonitors", "monitoring.coreos.com", "PodMonitor"],
  ["servicemonitors", "monitoring.coreos.com", "ServiceMonitor"],
] as const;

function foreignKind([plural, group, kind]: (typeof FOREIGN_KINDS)[number]): string {
  return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: ${plural}.${group}
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/gateway-api"}
spec:
  group: ${group}
  scope: Namespaced
  names: {kind: ${kind}, plural: ${plural}}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`;
}

/** Runs `helm install` or `upgrade` without starting pods of ours. */
function apply(command: "install" | "upgrade", chart: string, values = "{}"): Promise<string> {
  const args = ["-n", NAMESPACE, "--take-ownership", "-f", "-"];
  const none = ["--set", "gateway.replicas=0,controller.replicas=0"];
  return lab.helm([command, RELEASE, chart, ...args, ...none], values);
}

const uninstall = (): Promise<string> =>
  lab.helm(["uninstall", RELEASE, "-n", NAMESPACE, "--wait", "--ignore-not-found"]);

test.each(goldenInputs(TESTDATA))("the API server accepts every object of %s", async (name) => {
  const values = path.join(TESTDATA, `${name}.in.yaml`);
  const yaml = await lab.helm([
    "template",
    RELEASE,
    CHART,
    "-n",
    NAMESPACE,
    "-f",
    values,
    "--set",
    "tests.enabled=false",
  ]);
  const here = yaml.replaceAll(/namespace: team-[ab]$/gm, `namespace: ${TEAM}`);
  const applied = await lab.kubectl(
    ["apply", "--dry-run=server", "--validate=strict", "-f", "-"],
    here,
  );
  expect(applied.match(/\(server dry run\)/g)?.length).toBe(here.match(/^kind: /gm)?.length);
});

describe("a release", () => {
  const password = (): Promise<string> =>
    lab.kubectl([
      "get",
      "secret",
      "svc-redis",
      "-n",
      NAMESPACE,
      "-o",
      "jsonpath={.data.redis-password}",
    ]);
  const agentDefinition = (): Promise<string> =>
    lab.kubectl(["get", "crd", "agents.svc.io", "-o", "yaml"]);

  test("keeps the password of Redis in an upgrade, and upgrades the definitions", async () => {
    const old = mkdtempSync(path.join(tmpdir(), "svc-chart-"));
    try {
      cpSync(CHART, old, { recursive: true });
      const file = path.join(old, "files/crds/agents.yaml");
      const definition = parseDocument(readFileSync(file, "utf8"));
      const schema = ["spec", "versions", 0, "schema", "openAPIV3Schema"];
      definition.setIn([...schema, "description"], "Of the old version.");
      writeFileSync(file, definition.toString());
      await apply("install", old);
      expect(await agentDefinition()).toContain("Of the old version.");
      const before = await password();
      expect(before.length).toBeGreaterThan(40);

      const notes = await apply("upgrade", CHART);
      expect(notes).toContain(`helm test ${RELEASE} -n ${NAMESPACE}`);
      expect(await agentDefinition()).not.toContain("Of the old version.");
      expect(await password()).toBe(before);
    } finally {
      rmSync(old, { recursive: true });
      await uninstall();
    }
  });

  test("leaves the definitions and the objects of users when it is uninstalled", async () => {
    await apply("install", CHART);
    await lab.kubectl(["apply", "-n", TEAM, "-f", "-"], AGENT);
    await uninstall();
    expect(await lab.kubectl(["get", "agents.svc.io", "-n", TEAM, "-o", "name"])).toBe(
      "agent.svc.io/kept\n",
    );
    await lab.kubectl(["delete", "agents.svc.io", "kept", "-n", TEAM]);
  });
});

const AGENT = `apiVersion: svc.io/v1
kind: Agent
metadata: {name: kept}
spec: {models: [mock/echo]}
`;

describe.each([
  ["in the whole cluster", "{}"],
  ["limited to namespaces", `{watchNamespaces: [${TEAM}]}`],
])("rights %s", (where, values) => {
  beforeAll(async () => void (await apply("install", CHART, values)));
  afterAll(async () => void (await uninstall()));

  const user = (component: string): string =>
    `--as=system:serviceaccount:${NAMESPACE}:svc-${component}`;
  const can = async (component: string, ...args: string[]): Promise<boolean> => {
    const answer = lab.kubectl(["auth", "can-i", user(component), ...args]);
    return (await answer.catch(() => "no")).trim() === "yes";
  };

  test.each([
    ["gateway", ["watch", "agents.svc.io", "-n", TEAM]],
    ["gateway", ["patch", "modelproviders.svc.io/any", "--subresource=status", "-n", TEAM]],
    ["gateway", ["get", "secret/svc-workload-key", "-n", NAMESPACE]],
    ["gateway", ["watch", "configmap/svc-model-prices", "-n", NAMESPACE]],
    ["gateway", ["update", "lease/svc-gateway-status", "-n", NAMESPACE]],
    ["controller", ["create", "deployments.apps", "-n", TEAM]],
    ["controller", ["patch", "agents.svc.io/any", "--subresource=status", "-n", TEAM]],
    ["controller", ["update", "agents.svc.io/any", "--subresource=finalizers", "-n", TEAM]],
    ["controller", ["create", "secrets", "-n", NAMESPACE]],
    ["controller", ["create", "configmaps", "-n", NAMESPACE]],
    ["controller", ["watch", "service/svc-gateway", "-n", NAMESPACE]],
    ["controller", ["update", "lease/svc-controller", "-n", NAMESPACE]],
  ])("%s may %j", async (component, args) => {
    expect(await can(component, ...args)).toBe(true);
  });

  test.each([
    ["gateway", ["list", "secrets", "-n", NAMESPACE]],
    ["gateway", ["get", "secret/any", "-n", TEAM]],
    ["gateway", ["update", "agents.svc.io/any", "-n", TEAM]],
    ["gateway", ["create", "pods", "-n", TEAM]],
    ["controller", ["create", "pods/exec", "-n", TEAM]],
    ["controller", ["create", "clusterroles"]],
    ["controller", ["get", "nodes"]],
    ["controller", ["create", "serviceaccounts/token", "-n", TEAM]],
  ])("%s may not %j", async (component, args) => {
    expect(await can(component, ...args)).toBe(false);
  });

  test("the controller may reach other namespaces only with rights in the whole cluster", async () => {
    const everywhere = where === "in the whole cluster";
    expect(await can("controller", "create", "deployments.apps", "-n", "default")).toBe(everywhere);
  });

  test("the controller may grant the gateway the Secrets that objects name, and no more", async () => {
    const grant = (rule: string): Promise<string> =>
      lab.kubectl(
        ["create", "--dry-run=server", user("controller"), "-n", TEAM, "-f", "-"],
        role(rule),
      );
    await grant(
      '{apiGroups: [""], resources: [secrets], resourceNames: [key], verbs: [get, list, watch]}',
    );
    await expect(
      grant('{apiGroups: [""], resources: [pods/exec], verbs: [create]}'),
    ).rejects.toThrow("attempting to grant RBAC permissions not currently held");
  });
});

const role = (rule: string): string => `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: svc-gateway-secrets}
rules: [${rule}]
`;
