/**
 * The sidecar's whole Envoy configuration, as a golden file that the real Envoy accepts.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { stringify } from "yaml";
import { compileBodyRules, FORMS } from "../../binding/body-rules.ts";
import type { Bootstrap } from "../../gen/messages.ts";
import { Goldens } from "../../platform/testing-goldens.ts";
import { plugins } from "../../providers/registry.ts";
import { ProtoRegistry } from "../protobuf/registry.ts";
import { type SidecarBodyRule, sidecarBootstrap, type SidecarMcpServer } from "./sidecar.ts";

const goldens = new Goldens(path.join(import.meta.dirname, "testdata/sidecar"));
const CA_FILE = path.join(import.meta.dirname, "testdata/ca.pem");
const root = path.resolve(import.meta.dirname, "../../..");

const RULES: readonly SidecarBodyRule[] = [
  ...compileBodyRules(
    [
      {
        hosts: [],
        methods: ["POST"],
        paths: ["/graphql", "*/info/lfs/objects/batch"],
        maxBytes: 1_048_576,
      },
      {
        hosts: ["*.amazonaws.com"],
        exceptHosts: "(?:.+\\.)?s3\\.amazonaws\\.com",
        methods: undefined,
        paths: ["/*"],
        maxBytes: 8_388_608,
      },
      {
        hosts: ["discord.example"],
        exceptPaths: "/upload/.*",
        exceptContentTypes: "multipart/.*",
        methods: ["POST", "PUT"],
        paths: ["/api/v10/channels/{}/messages"],
        maxBytes: 1_048_576,
      },
    ],
    ["api.github.com", "*.amazonaws.com"],
  ),
  FORMS,
];

const MCP: readonly SidecarMcpServer[] = [
  {
    host: "mcp.example.com",
    path: "/v1/mcp",
    hasMessagePaths: false,
    socket: undefined,
    maxBytes: 1_048_576,
  },
  {
    host: "old.example.com",
    path: "/sse",
    hasMessagePaths: true,
    socket: undefined,
    maxBytes: 1_048_576,
  },
  {
    host: "files.mcp.internal",
    path: "/mcp",
    hasMessagePaths: false,
    socket: "/run/svc/mcp-2.sock",
    maxBytes: 1_048_576,
  },
];

const bootstrap = (
  caFile: string,
  bodies = RULES,
  mcp: readonly SidecarMcpServer[] = [],
): Bootstrap =>
  sidecarBootstrap({
    nodeId: "svc-sidecar",
    runDir: "/run/svc",
    http: { address: "127.0.0.1", port: 8081 },
    https: { address: "127.0.0.1", port: 8443, netns: "/proc/1/ns/net" },
    gateway: { address: "127.0.0.1", port: 8000, target: { address: "127.0.0.1", port: 18_000 } },
    bodies,
    mcp,
    caFile,
  });

test("is as it was", () => {
  const actual = stringify(bootstrap("/ca.pem"), { lineWidth: 0, aliasDuplicateObjects: false });
  goldens.check("bootstrap.out.yaml", actual);
});

test("with MCP servers", () => {
  const actual = stringify(bootstrap("/ca.pem", [FORMS], MCP), {
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
  goldens.check("mcp.out.yaml", actual);
});

test.each([
  ["without MCP servers", []],
  ["with MCP servers", MCP],
])("fits our copy of the definitions, except for the fields that newer.ts lists, %s", (_, mcp) => {
  const protos = ProtoRegistry.load(path.join(root, "src/gen/envoy.binpb"));
  const { staticResources, ...rest } = bootstrap("/ca.pem", RULES, mcp);
  const listeners = staticResources?.listeners
    ?.filter(({ name }) => name !== "svc-https")
    .map((listener) => ({ ...listener, address: undefined }));
  const known = { ...rest, staticResources: { ...staticResources, listeners } };
  const json = JSON.parse(JSON.stringify(known)) as JsonValue;
  expect(() => protos.encode("envoy.config.bootstrap.v3.Bootstrap", json)).not.toThrow();
});

/** The maximum number of hosts of a Provider, with names of maximum length. */
const MANY_HOSTS = Array.from(
  { length: 100 },
  (_, i) => `${`${"a".repeat(62)}.`.repeat(3)}${String(i).padStart(57, "b")}.com`,
);

test.each<[string, readonly SidecarBodyRule[], (readonly SidecarMcpServer[])?]>([
  ["as it is in the golden file", RULES],
  ["with MCP servers", RULES, MCP],
  ...[...plugins.values()].map(
    ({
      providerName,
      bodies,
      defaultHosts,
      hostPatterns,
    }): [string, readonly SidecarBodyRule[]] => [
      `with the bodies of ${providerName}`,
      [
        ...compileBodyRules(bodies, [...defaultHosts, ...hostPatterns]),
        ...compileBodyRules(bodies, MANY_HOSTS),
      ],
    ],
  ),
])("is taken by the real Envoy, %s", (_name, bodies, mcp = []) => {
  const candidates = [
    process.env["ENVOY_PATH"],
    path.join(root, ".venv/bin/envoy"),
    ...(process.env["PATH"] ?? "").split(":").map((dir) => path.join(dir, "envoy")),
  ];
  const envoy = candidates.find((file) => file !== undefined && file !== "" && existsSync(file));
  if (envoy === undefined) throw new Error("no Envoy: run make install");
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-golden-"));
  try {
    writeFileSync(path.join(dir, "envoy.json"), JSON.stringify(bootstrap(CA_FILE, bodies, mcp)));
    execFileSync(
      envoy,
      ["--mode", "validate", "--config-path", path.join(dir, "envoy.json"), "--log-level", "error"],
      { stdio: "pipe" },
    );
  } finally {
    rmSync(dir, { recursive: true });
  }
});
