/**
 * The CustomResourceDefinitions at a real API server: it must judge every object as the parser
 * does, and set the same defaults.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Explanation, explainIssues } from "../../src/resources/explain.ts";
import { KINDS, isResourceKind } from "../../src/resources/kinds.ts";
import { API_VERSION } from "../../src/resources/metadata.ts";
import { formatPath } from "../../src/resources/problem.ts";
import { readDocuments } from "../../src/resources/yaml.ts";
import { attachLab, type Lab } from "../support/cluster/lab.ts";
import { CommandError } from "../support/cluster/run.ts";
import { RESOURCE_SAMPLES, type ResourceSample } from "../support/cluster/resource-samples.ts";

const ROOT = path.resolve(import.meta.dirname, "../..");
const NAMESPACE = `crds-${randomBytes(4).toString("hex")}`;

let lab: Lab;
const kubectl = (args: readonly string[], input?: unknown): Promise<string> =>
  lab.kubectl(
    ["--namespace", NAMESPACE, ...args],
    input === undefined ? undefined : JSON.stringify(input),
  );

beforeAll(async () => {
  lab = attachLab();
  // A chart that was installed before owns the same fields.
  await lab.kubectl([
    "apply",
    "--server-side",
    "--force-conflicts",
    "--field-manager=svc-e2e",
    `--filename=${path.join(ROOT, "crds")}`,
  ]);
  await lab.kubectl([
    "wait",
    "--for=condition=Established",
    `--filename=${path.join(ROOT, "crds")}`,
    "--timeout=180s",
  ]);
  await lab.kubectl(["create", "namespace", NAMESPACE]);
});

afterAll(() =>
  lab.kubectl(["delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false"]),
);

type ApiObject = Readonly<Record<string, unknown>> & {
  readonly spec: Readonly<Record<string, unknown>>;
};

type Verdict =
  | { readonly kind: "accepted"; readonly object: ApiObject }
  | { readonly kind: "refused"; readonly message: string };

/** Asks the API server to create an object, without storing it. */
async function submit(object: unknown): Promise<Verdict> {
  try {
    const text = await kubectl(
      ["create", "--dry-run=server", "--validate=strict", "--output=json", "--filename=-"],
      object,
    );
    return { kind: "accepted", object: JSON.parse(text) as ApiObject };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    return { kind: "refused", message: error.stderr };
  }
}

type Parsed =
  | { readonly kind: "valid"; readonly spec: unknown }
  | { readonly kind: "invalid"; readonly findings: readonly Explanation[] };

/**
 * Parses an object by the schema of its kind. Fields that no process acts on yet are not refused:
 * the API server must know them.
 */
function parse(object: { readonly kind: string }): Parsed {
  if (!isResourceKind(object.kind)) throw new Error(`no kind ${object.kind}`);
  const { schema } = KINDS[object.kind];
  const result = schema.safeParse(object);
  if (!result.success)
    return { kind: "invalid", findings: explainIssues(result.error.issues, object, schema) };
  // A member that is unset is left out, as in the API server's answer.
  const { spec } = JSON.parse(JSON.stringify(result.data)) as ApiObject;
  return { kind: "valid", spec };
}

/** The fields at which the parser finds something wrong. */
function faults(object: { readonly kind: string }): readonly string[] {
  const parsed = parse(object);
  return parsed.kind === "valid" ? [] : parsed.findings.map(({ path: at }) => formatPath(at));
}

/** A row of a table of tests, whose title is not shortened. */
function titled(sample: ResourceSample): readonly [title: string, sample: ResourceSample] {
  const { title, fault, onlyParser } = sample;
  const reason = onlyParser === undefined ? "" : ` (only by the parser: ${onlyParser})`;
  return [`${title}${fault === undefined ? "" : `: ${fault}`}${reason}`, sample];
}

const VALID = RESOURCE_SAMPLES.filter(({ fault }) => fault === undefined);
const INVALID = RESOURCE_SAMPLES.filter(({ fault }) => fault !== undefined);

describe("a valid object", () => {
  test.each(VALID.map(titled))("%s", async (_, { object }) => {
    const verdict = await submit(object);
    if (verdict.kind === "refused") throw new Error(verdict.message);
    expect(parse(object)).toEqual({ kind: "valid", spec: verdict.object.spec });
  });

  test.each(examples())("$file: $kind $name", async ({ object }) => {
    expect(parse(object)).toMatchObject({ kind: "valid" });
    expect(await submit(object)).toMatchObject({ kind: "accepted" });
  });
});

interface Example {
  readonly file: string;
  readonly kind: string;
  readonly name: string;
  readonly object: { readonly kind: string };
}

/** The objects of our own kinds in `examples`. */
function examples(): readonly Example[] {
  const folder = path.join(ROOT, "examples");
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".yaml"))
    .flatMap((file) =>
      readDocuments(readFileSync(path.join(folder, file), "utf8")).map(({ document }) => ({
        file,
        object: document.toJS() as {
          readonly apiVersion: string;
          readonly kind: string;
          readonly metadata: { readonly name: string };
        },
      })),
    )
    .filter(({ object }) => object.apiVersion === API_VERSION && isResourceKind(object.kind))
    .map(({ file, object }) => ({
      file,
      object,
      kind: object.kind,
      name: object.metadata.name,
    }));
}

describe("an invalid object", () => {
  test.each(INVALID.filter(({ onlyParser }) => onlyParser === undefined).map(titled))(
    "%s",
    async (_, { object, fault = "" }) => {
      expect(faults(object).join(" ")).toContain(fault);
      const verdict = await submit(object);
      if (verdict.kind === "accepted") throw new Error("the API server has accepted it");
      expect(verdict.message).toContain(fault);
    },
  );

  test.each(INVALID.filter(({ onlyParser }) => onlyParser !== undefined).map(titled))(
    "%s",
    async (_, { object }) => {
      expect(faults(object)).not.toEqual([]);
      expect(await submit(object)).toMatchObject({ kind: "accepted" });
    },
  );
});

test("the table is a table", () => {
  expect(RESOURCE_SAMPLES.length).toBeGreaterThan(150);
  const samples = new Set(RESOURCE_SAMPLES.map(({ kind }) => kind));
  expect([...samples].toSorted()).toEqual(
    Object.values(KINDS)
      .filter(({ crd }) => crd !== undefined)
      .map(({ kind }) => kind)
      .toSorted(),
  );
});

/** A rule says the same in the API server's answer as in the parser's. */
test.each([
  ["Agent", { variant: "task" }],
  ["Agent", { image: "i", env: [{ name: "LD_PRELOAD", value: "x" }] }],
  ["Agent", { image: "i", volumes: [{ mountPath: "/a", secret: {} }] }],
  ["ModelProvider", { provider: "anthropic" }],
  ["AccessKey", { keySHA256: "0".repeat(64) }],
  ["GuardBinding", { classifier: { type: "custom" } }],
])("%s %j: both say the same", async (kind, spec) => {
  const object = { apiVersion: API_VERSION, kind, metadata: { name: "x" }, spec };
  const parsed = parse(object);
  if (parsed.kind === "valid") throw new Error("the parser has accepted it");
  expect(await submit(object)).toMatchObject({
    kind: "refused",
    message: expect.stringContaining(parsed.findings[0]?.message ?? "no message"),
  });
});

describe("kubectl", () => {
  beforeAll(() =>
    kubectl(["create", "--filename=-"], {
      apiVersion: API_VERSION,
      kind: "Agent",
      metadata: { name: "columns" },
      spec: {},
      status: { costTodayUSD: 5 },
    }),
  );

  test("explain prints the text of a field", async () => {
    const explain = async (field: string) =>
      (await kubectl(["explain", field])).replaceAll(/\s+/g, " ");
    expect(await explain("agent.spec.models")).toContain(
      "Models it may use, each `<provider>/<model>`",
    );
    expect(await explain("agent")).toContain("A program driven by an LLM");
    expect(await explain("modelprovider.spec.retries.attempts")).toContain("Attempts at this");
    expect(await explain("session.status.phase")).toContain("State.");
  });

  test("get shows the columns of a status, which spec writers cannot set", async () => {
    const json = async () =>
      JSON.parse(await kubectl(["get", "agent", "columns", "--output=json"])) as {
        readonly status?: unknown;
        readonly metadata: { readonly generation: number };
      };
    expect((await json()).status).toBeUndefined();
    await patchStatus("columns", {
      ready: true,
      reason: "Ready",
      costTodayUSD: 1.25,
      observedGeneration: 1,
      conditions: [condition({})],
    });
    expect((await json()).metadata.generation).toBe(1);
    const [header = "", row = ""] = (await kubectl(["get", "ag"])).split("\n");
    expect(header.split(/\s+/)).toEqual(["NAME", "READY", "REASON", "PHASE", "COST", "AGE"]);
    expect(row).toMatch(/^columns\s+true\s+Ready\s+1\.25\s/);
  });

  test("get svc-io shows all our kinds, and get svc still Services", async () => {
    // Categories are part of what kubectl remembers of a server.
    const cache = mkdtempSync(path.join(tmpdir(), "svc-kubectl-"));
    try {
      const get = (kinds: string, namespace: string) =>
        lab.kubectl([
          "get",
          kinds,
          "--output=name",
          `--namespace=${namespace}`,
          `--cache-dir=${cache}`,
        ]);
      expect(await get("svc-io", NAMESPACE)).toContain("agent.svc.io/columns\n");
      expect(await get("svc", "default")).toBe("service/kubernetes\n");
    } finally {
      rmSync(cache, { recursive: true });
    }
  });
});

const condition = (more: object) => ({
  type: "Ready",
  status: "True",
  reason: "Ready",
  message: "",
  lastTransitionTime: "2027-01-31T12:00:00Z",
  ...more,
});

const patchStatus = (name: string, status: object): Promise<string> =>
  kubectl([
    "patch",
    "agent",
    name,
    "--subresource=status",
    "--type=merge",
    `--patch=${JSON.stringify({ status })}`,
  ]);

describe("a status", () => {
  beforeAll(() =>
    kubectl(["create", "--filename=-"], {
      apiVersion: API_VERSION,
      kind: "Agent",
      metadata: { name: "status" },
      spec: {},
    }),
  );

  test.each([
    ["a condition that is neither True nor False", { conditions: [condition({ status: "Yes" })] }],
    ["a condition without a reason", { conditions: [condition({ reason: undefined })] }],
    ["two conditions of one type", { conditions: [condition({}), condition({})] }],
    ["a text as ready", { ready: "yes" }],
    ["a fraction of a generation", { observedGeneration: 1.5 }],
  ])("%s is refused", async (_, status) => {
    await expect(patchStatus("status", status)).rejects.toThrow("status.");
  });
});

test("a Session's spec cannot be changed, its metadata can", async () => {
  const session = (title: string, labels: object) => ({
    apiVersion: API_VERSION,
    kind: "Session",
    metadata: { name: "fixed", labels },
    spec: { agent: "a", title },
  });
  await kubectl(["apply", "--filename=-"], session("one", {}));
  await kubectl(["apply", "--filename=-"], session("one", { a: "b" }));
  await expect(kubectl(["apply", "--filename=-"], session("two", {}))).rejects.toThrow(
    "cannot be changed: create another Session",
  );
});
