/** The Helm chart, rendered without a cluster: golden files, refusals, rules for all objects. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { controllerConfigSchema } from "../../src/controller/config.ts";
import { gatewayConfigSchema } from "../../src/pod/gateway-config.ts";
import { Goldens, goldenInputs } from "../../src/platform/testing-goldens.ts";
import { CHART, helm, render } from "../support/cluster/helm.ts";
import { REFUSED_VALUES } from "./chart-refusals.ts";

const TESTDATA = path.join(import.meta.dirname, "testdata/chart");
const CASES = goldenInputs(TESTDATA);
const goldens = new Goldens(TESTDATA);
const input = (name: string): string =>
  readFileSync(path.join(TESTDATA, `${name}.in.yaml`), "utf8");

interface ManifestSpec {
  readonly type?: string;
  readonly template?: {
    readonly metadata: { readonly annotations?: unknown };
    readonly spec: PodSpec;
  };
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Record<string, string> };
  readonly spec?: ManifestSpec;
  readonly data?: Record<string, string>;
}

function rendered(values: string): string {
  const { code, stdout, stderr } = render(values);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return stdout;
}

const manifests = (yaml: string): Manifest[] =>
  parseAllDocuments(yaml, { uniqueKeys: true }).flatMap((document) => {
    expect(document.errors).toEqual([]);
    const value = document.toJSON() as Manifest | null;
    return value === null ? [] : [value];
  });

test("helm lint --strict", () => {
  const { code, stdout, stderr } = helm(["lint", "--strict", CHART]);
  expect(stdout + stderr).toContain("0 chart(s) failed");
  expect(code).toBe(0);
});

describe.each(CASES)("%s", (name) => {
  test("renders as its golden file", () => {
    goldens.check(`${name}.out.yaml`, stable(rendered(input(name))));
  });

  test("every object has the common labels, and every pod meets Pod Security restricted", () => {
    const all = manifests(rendered(input(name)));
    expect(all.length).toBeGreaterThan(5);
    for (const { kind, metadata, spec } of all) {
      const where = `${kind} ${metadata.name}`;
      expect(Object.keys(metadata.labels ?? {}), where).toEqual(
        expect.arrayContaining(
          ["name", "instance", "component", "managed-by"].map((key) => `app.kubernetes.io/${key}`),
        ),
      );
      const pod = podSpec(kind, spec);
      if (pod !== undefined) expectRestricted(pod, where);
    }
  });
});

afterAll(() => {
  goldens.checkOrphans(".out.yaml");
});

/** Without what is generated elsewhere (CustomResourceDefinitions) or at random. */
function stable(yaml: string): string {
  return yaml
    .split(/^---\n/m)
    .filter((document) => !document.includes("\nkind: CustomResourceDefinition\n"))
    .map((document) => document.replace(/^( {2}redis-password: ).*$/m, "$1<random>"))
    .map((document) => document.replaceAll(/[ \t]+$/gm, ""))
    .join("---\n");
}

interface PodSpec {
  readonly securityContext?: Record<string, unknown>;
  readonly containers: readonly { readonly securityContext?: Record<string, unknown> }[];
  readonly hostNetwork?: boolean;
}

function podSpec(kind: string, spec: ManifestSpec | undefined): PodSpec | undefined {
  if (kind === "Pod") return spec as unknown as PodSpec;
  return spec?.template?.spec;
}

function expectRestricted(pod: PodSpec, where: string): void {
  expect(pod.hostNetwork, where).toBeUndefined();
  expect(pod.securityContext, where).toMatchObject({
    runAsNonRoot: true,
    seccompProfile: { type: "RuntimeDefault" },
  });
  for (const container of pod.containers)
    expect(container.securityContext, where).toMatchObject({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
}

test.each(REFUSED_VALUES)("refuses $values", ({ values, message }) => {
  const { code, stderr } = render(values);
  expect(stderr.replaceAll(/\s+/g, " ")).toContain(message);
  expect(code).not.toBe(0);
});

describe("the configuration files", () => {
  const SCHEMAS = { gateway: gatewayConfigSchema, controller: controllerConfigSchema } as const;
  const configOf = (component: keyof typeof SCHEMAS, values: string): unknown => {
    const configMap = manifests(rendered(values)).find(
      ({ kind, data }) => kind === "ConfigMap" && data?.[`${component}.yaml`] !== undefined,
    );
    return SCHEMAS[component].parse(parse(configMap?.data?.[`${component}.yaml`] ?? ""));
  };

  test.each(CASES)("of %s are what the programs read", (name) => {
    configOf("gateway", input(name));
    configOf("controller", input(name));
  });

  test("have the programs' own defaults", () => {
    expect(configOf("gateway", "{}")).toEqual(gatewayConfigSchema.parse({}));
    const { gateway, images, ...rest } = controllerConfigSchema.parse({
      images: { proxy: "svc-proxy:0.1.0", svc: "svc:0.1.0" },
      gateway: { host: "svc-gateway.svc-system.svc.cluster.local" },
    });
    expect(configOf("controller", "{}")).toEqual({
      ...rest,
      images,
      gateway: { ...gateway, podLabels: GATEWAY_LABELS },
    });
  });

  test("take numbers as quantities of the sidecar", () => {
    expect(
      configOf("controller", "{agents: {sidecar: {resources: {limits: {cpu: 1}}}}}"),
    ).toMatchObject({ sidecar: { resources: { limits: { cpu: "1", memory: "256Mi" } } } });
  });
});

const GATEWAY_LABELS = {
  "app.kubernetes.io/name": "svc",
  "app.kubernetes.io/instance": "svc",
  "app.kubernetes.io/component": "gateway",
};

test("shows every problem of the values at once", () => {
  const { stderr } = render(
    "{guard: {enabled: true}, gateway: {maxSurge: 1, envoy: {heapBytes: 4294967296}}}",
  );
  expect(stderr).toContain("guard.type is promptGuard, but there is no model");
  expect(stderr).toContain("gateway.resources.limits.memory (2Gi)");
});

describe("custom resource definitions", () => {
  const crds = (values: string): Manifest[] =>
    manifests(rendered(values)).filter(({ kind }) => kind === "CustomResourceDefinition");

  test("are part of the release, so that an upgrade changes them and an uninstall keeps them", () => {
    const all = crds("{}");
    expect(all.length).toBeGreaterThan(3);
    for (const { metadata } of all)
      expect(metadata).toMatchObject({
        annotations: { "helm.sh/resource-policy": "keep" },
        labels: { "app.kubernetes.io/name": "svc" },
      });
  });

  test("may be left out", () => {
    expect(crds("{crds: {install: false}}")).toEqual([]);
  });

  test("the annotation that keeps them cannot be overridden", () => {
    const [first] = crds("{crds: {annotations: {helm.sh/resource-policy: none, a: b}}}");
    expect(first?.metadata).toMatchObject({
      annotations: { "helm.sh/resource-policy": "keep", a: "b" },
    });
  });
});

describe("a changed configuration rolls exactly the pods that read it", () => {
  const checksums = (values: string): Record<string, unknown> =>
    Object.fromEntries(
      manifests(rendered(values))
        .filter(({ kind }) => kind === "Deployment" || kind === "StatefulSet")
        .map(({ metadata, spec }) => [metadata.name, spec?.template?.metadata.annotations]),
    );
  const before = checksums("{}");
  const changed = (values: string): string[] => {
    const after = checksums(values);
    return Object.keys(before).filter(
      (name) => JSON.stringify(after[name]) !== JSON.stringify(before[name]),
    );
  };

  test.each([
    ["{gateway: {redisTimeoutMs: 50}}", ["svc-gateway"]],
    ["{agents: {sidecar: {pollSeconds: 10}}}", ["svc-controller"]],
    ["{watchNamespaces: [a]}", ["svc-controller", "svc-gateway"]],
    ["{gateway: {service: {annotations: {a: b}}}}", []],
    ["{guard: {enabled: true, type: stub}}", ["svc-controller", "svc-gateway"]],
  ])("%s", (values, pods) => {
    expect(changed(values).toSorted()).toEqual(pods);
  });
});

test("the rights limited to namespaces include no ClusterRole", () => {
  const kinds = manifests(rendered("{watchNamespaces: [team-a]}")).map(({ kind }) => kind);
  expect(kinds).not.toContain("ClusterRole");
  expect(kinds).not.toContain("ClusterRoleBinding");
});

describe("the classifier", () => {
  const find = (values: string, kind: string): Manifest | undefined =>
    manifests(rendered(values)).find(
      (one) => one.kind === kind && one.metadata.name === "svc-guard",
    );
  const stub = "{guard: {enabled: true, type: stub}}";

  test("does not exist unless it is enabled", () =>
    expect(rendered("{}")).not.toMatch(/svc-guard|guardEndpoint/));

  test("is known to the gateway, which asks it, and to the controller, which tells its state", () => {
    const url = "guardEndpoint: http://svc-guard.svc-system.svc.cluster.local:8200\n";
    const configs = manifests(rendered(stub)).flatMap(({ kind, data }) =>
      kind === "ConfigMap" ? Object.values(data ?? {}) : [],
    );
    expect(configs.filter((text) => text.includes(url))).toHaveLength(2);
    expect(find(stub, "Service")?.spec).toMatchObject({ ports: [{ port: 8200 }] });
  });

  test("has no token of the API server", () =>
    expect(find(stub, "Deployment")?.spec?.template?.spec).toMatchObject({
      automountServiceAccountToken: false,
    }));

  test.each([
    ["stub", stub, { policyTypes: ["Ingress", "Egress"], egress: [] }],
    ["llamaGuard", input("guard-upstream"), { policyTypes: ["Ingress"] }],
  ])("of the type %s is open to the gateway alone", (_, values, egress) => {
    const gateway = { podSelector: { matchLabels: GATEWAY_LABELS } };
    const { podSelector: _selector, ...rules } = (find(values, "NetworkPolicy")?.spec ??
      {}) as Record<string, unknown>;
    expect(rules).toEqual({ ingress: [{ ports: [{ port: "http" }], from: [gateway] }], ...egress });
  });

  test("gets the phrases of the stub, and tokens only from a Secret", () => {
    const environment = (values: string): unknown =>
      find(values, "Deployment")?.spec?.template?.spec.containers.map(
        (container) => (container as { readonly env?: unknown }).env,
      );
    expect(environment(stub)).toEqual([undefined]);
    expect(
      environment('{guard: {enabled: true, type: stub, stub: {patterns: ["a b", c]}}}'),
    ).toEqual([[{ name: "SVC_GUARD_STUB_INJECTION", value: "a b,c" }]]);
    expect(environment(input("guard-upstream"))).toEqual([
      [
        {
          name: "SVC_GUARD_TOKEN",
          valueFrom: { secretKeyRef: { name: "llama", key: "api-key" } },
        },
      ],
    ]);
  });
});

test("what is published reaches only the external port", () => {
  const all = manifests(rendered(input("ha"))).concat(manifests(rendered(input("gateway-api"))));
  const published = all.filter(
    ({ kind, spec }) => kind === "Ingress" || kind === "HTTPRoute" || spec?.type === "LoadBalancer",
  );
  expect(published.map(({ kind }) => kind).toSorted()).toEqual(["HTTPRoute", "Ingress", "Service"]);
  for (const { spec } of published) {
    expect(JSON.stringify(spec)).toMatch(/"targetPort":"external"|-gateway-external"/);
    expect(JSON.stringify(spec)).not.toMatch(/8000|"targetPort":"http"|-gateway"/);
  }
});

test("another chart may depend on it", () => {
  const parent = mkdtempSync(path.join(tmpdir(), "svc-parent-"));
  try {
    cpSync(CHART, path.join(parent, "charts/svc"), { recursive: true });
    writeFileSync(
      path.join(parent, "Chart.yaml"),
      "{apiVersion: v2, name: parent, version: 1.0.0, dependencies: [{name: svc, version: '*'}]}",
    );
    const values = "{global: {imageRegistry: r.example, other: 1}, svc: {enabled: true}}";
    const { code, stdout, stderr } = helm(["template", "a", parent, "-f", "-"], values);
    expect(stderr).toBe("");
    expect(code).toBe(0);
    expect(stdout).toMatch(/image: r\.example\/svc-proxy:/);
  } finally {
    rmSync(parent, { recursive: true });
  }
});

test("the values in docs/mesh.md can be used", () => {
  const page = readFileSync(path.join(CHART, "../../docs/mesh.md"), "utf8");
  const blocks = [...page.matchAll(/```yaml\n# values\.yaml\n([\s\S]*?)```/g)];
  expect(blocks.length).toBeGreaterThan(3);
  for (const [, values = ""] of blocks) rendered(values);
});
