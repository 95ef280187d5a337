/**
 * Golden pairs: `testdata/gateway/name.in.yaml` -> `name.out.yaml`; each is also loaded by the real
 * Envoy.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { Goldens, goldenInputs } from "../../platform/testing-goldens.ts";
import { buildResourceSet } from "../../resources/resource-set.ts";
import { parseDocuments } from "../../resources/parse.ts";
import { ProtoRegistry } from "../protobuf/registry.ts";
import { type EnvoyResources, SnapshotEncoder } from "../xds/snapshot.ts";
import { gatewaySurfaces } from "../../gateway/surfaces.ts";
import { ATTEMPT_PROCESSOR } from "../../llm/surface.ts";
import { compilePolicy } from "../../compile/policy.ts";
import { compileEnvoy } from "./resources.ts";

const root = path.join(import.meta.dirname, "../../..");
const testdata = path.join(import.meta.dirname, "testdata/gateway");
const cases = goldenInputs(testdata);
const goldens = new Goldens(testdata);
const scratch = mkdtempSync(path.join(os.tmpdir(), "svc-golden-"));
const protos = ProtoRegistry.load(path.join(root, "src/gen/envoy.binpb"));
/** Any PEM bundle will do: the golden names a path that need not exist here. */
const CA_FILE = "/etc/ssl/certs/ca-certificates.crt";

afterAll(() => rmSync(scratch, { recursive: true, force: true }));

function compileCase(name: string): EnvoyResources {
  const file = `${name}.in.yaml`;
  const parsed = parseDocuments(readFileSync(path.join(testdata, file), "utf8"), file);
  expect(parsed.problems).toEqual([]);
  const { snapshot } = compilePolicy(buildResourceSet(parsed.resources), {
    env: {},
    now: 0,
    tokenHashesOf: (namespace, agent) => [`hash of ${namespace}/${agent}`],
    guardEndpoint: undefined,
    mockEndpoint: { host: "127.0.0.1", port: 4010, tls: false, basePath: "/v1" },
  });
  return compileEnvoy(snapshot, {
    gateway: { address: "127.0.0.1", port: 8000 },
    external: { address: "127.0.0.1", port: 8080 },
    caFile: CA_FILE,
    runDir: "/run/svc",
    surfaces: gatewaySurfaces({ uploadIdleMs: 15_000 }),
    attempts: ATTEMPT_PROCESSOR,
  });
}

function envoyPath(): string {
  const candidates = [
    process.env["ENVOY_PATH"],
    path.join(root, ".venv/bin/envoy"),
    ...(process.env["PATH"] ?? "").split(":").map((dir) => path.join(dir, "envoy")),
  ];
  const found = candidates.find((file) => file !== undefined && file !== "" && existsSync(file));
  if (found === undefined) throw new Error("no Envoy: run make install");
  return found;
}

/** The bootstrap with the resources as static ones: routes are inside their listeners. */
function validated(config: EnvoyResources, name: string): void {
  const bootstrap = parse(
    readFileSync(path.join(root, "envoy/bootstrap.yaml"), "utf8")
      .replaceAll("${RUN_DIR}", scratch)
      .replaceAll("${NODE_ID}", "golden")
      .replaceAll("${MAX_HEAP_BYTES}", "1073741824"),
    { merge: true },
  ) as {
    static_resources: { clusters: unknown[]; listeners?: unknown[] };
    dynamic_resources?: unknown;
  };
  delete bootstrap.dynamic_resources;
  const inlined = JSON.parse(JSON.stringify(config.listener), (key, value: unknown) => {
    if (key !== "typedConfig" || typeof value !== "object" || value === null || !("rds" in value))
      return value;
    const { rds, ...rest } = value as { rds: { routeConfigName: string } };
    return {
      ...rest,
      routeConfig: config.route.find((route) => route.name === rds.routeConfigName),
    };
  }) as unknown[];
  const own = path.join(scratch, "ca.pem");
  writeFileSync(own, readFileSync(path.join(import.meta.dirname, "testdata/ca.pem")));
  bootstrap.static_resources.listeners = inlined;
  bootstrap.static_resources.clusters.push(...config.cluster);
  const file = path.join(scratch, `${name}.json`);
  writeFileSync(file, JSON.stringify(bootstrap).replaceAll(CA_FILE, own));
  execFileSync(envoyPath(), ["--mode", "validate", "-c", file, "--log-level", "error"], {
    stdio: ["ignore", "pipe", "pipe"],
  });
}

describe("Envoy's configuration", () => {
  afterAll(() => goldens.checkOrphans(".out.yaml"));

  test.each(cases)("%s", (name) => {
    const config = compileCase(name);
    const text = stringify(config, { aliasDuplicateObjects: false, lineWidth: 0 });
    goldens.check(`${name}.out.yaml`, text);
    new SnapshotEncoder(protos).encode(config);
    validated(config, name);
  });
});
