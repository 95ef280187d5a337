/** The DNS of a sidecar by itself, as in a pod: its policy, edits of it, and its own look-ups. */
import { execFile, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import packet from "dns-packet";
import dgram from "node:dgram";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { SIDECAR_NODE_FLAGS } from "../../src/binding/node-flags.ts";
import { ROOT } from "../support/build.ts";
import { startNetwork } from "../support/clients/network.ts";
import { Outside } from "../support/services.ts";
import { Sidecar } from "../support/sidecar.ts";
import { until } from "../support/wait.ts";

const github = (name: string, hosts: readonly string[]): object => ({
  name,
  type: "github",
  hosts,
  auth: { type: "token", env: { token: "SVC_SECRET_GITHUB_TOKEN" } },
  config: {},
  policy: { allow: ["*"], deny: [], httpRules: [] },
  scope: {},
  audit: { enforcement: "enforce", logRequests: false },
});
const FIRST = github("first", ["api.first.example", "*.pattern.example"]);
const SECOND = github("second", ["api.second.example"]);

let outside: Outside;
let sidecar: Sidecar;

beforeAll(async () => {
  outside = await Outside.start([
    "db.default.svc.cluster.local",
    "api.first.example",
    "evil.example",
  ]);
  sidecar = await Sidecar.start({
    outside,
    bindings: [FIRST, SECOND],
    secrets: { SVC_SECRET_GITHUB_TOKEN: "ghp_the-real-token" },
    options: {
      dnsNames: [
        { name: "gateway.svc-system.svc.cluster.local", addresses: ["10.96.0.5"] },
        { name: "db.default.svc.cluster.local" },
      ],
    },
  });
});

afterAll(async () => {
  await sidecar?.stop();
  await outside?.close();
});

beforeEach(() => {
  outside.asked.length = 0;
});

async function ask(name: string): Promise<string> {
  const socket = dgram.createSocket("udp4");
  try {
    const reply = new Promise<Buffer>((resolve) => socket.once("message", resolve));
    const query = packet.encode({ type: "query", id: 1, questions: [{ name, type: "A" }] });
    socket.send(query, sidecar.dnsPort, "127.0.0.1");
    const { rcode, answers } = packet.decode(await reply) as packet.DecodedPacket & {
      rcode: string;
    };
    return (answers as packet.StringAnswer[])[0]?.data ?? rcode;
  } finally {
    socket.close();
  }
}

test("listed names have their addresses, or those of the sidecar's own DNS", async () => {
  expect(await ask("gateway.svc-system.svc.cluster.local")).toBe("10.96.0.5");
  expect(await ask("db.default.svc.cluster.local")).toBe("127.0.0.1");
  expect(await ask("other.default.svc.cluster.local")).toBe("NXDOMAIN");
  expect(await ask("api.first.example.default.svc.cluster.local")).toBe("NXDOMAIN");
  expect(outside.asked).toEqual(["db.default.svc.cluster.local"]);
});

test("an edit of the list of Providers takes effect: names are removed, and come back", async () => {
  expect(await ask("api.second.example")).toBe("127.0.0.1");
  sidecar.writeSpecs([FIRST]);
  await until(async () => (await ask("api.second.example")) === "NXDOMAIN");
  expect(await ask("api.first.example")).toBe("127.0.0.1");
  sidecar.writeSpecs([SECOND]);
  await until(async () => (await ask("a.b.pattern.example")) === "NXDOMAIN");
  expect(await ask("api.second.example")).toBe("127.0.0.1");
  sidecar.writeSpecs([FIRST, SECOND]);
  await until(async () => (await ask("a.b.pattern.example")) === "127.0.0.1");
});

test("look-ups are counted and logged, and leave for nowhere", async () => {
  const name = "c2VjcmV0.evil.example";
  expect(await ask(name)).toBe("NXDOMAIN");
  expect(outside.asked).toEqual([]);
  await until(() => sidecar.logs.includes(`"name":"${name}"`));
  const { body } = await sidecar.admin("/metrics");
  expect(body).toMatch(/svc_binding_dns_queries_total\{type="A",outcome="unknown"\} \d/);
  expect(body).toMatch(/svc_binding_dns_queries_total\{type="A",outcome="bound"\} \d/);
});

test("a sidecar that would ask itself does not start", async () => {
  const listen = { address: "127.0.0.1", port: 1 };
  const options = {
    workload: "default/x",
    specFile: "/nowhere",
    runDir: "/nowhere",
    trustDir: "/nowhere",
    upstreamCaFile: "/nowhere",
    listen: { http: listen, https: listen, dns: listen },
  };
  const node = [...SIDECAR_NODE_FLAGS, path.join(ROOT, "dist/sidecar.js"), JSON.stringify(options)];
  await expect(promisify(execFile)(process.execPath, node)).rejects.toMatchObject({
    stderr: expect.stringContaining("dnsServers") as unknown,
  });
});

test("the process that opens sockets elsewhere ends with its sidecar, at any time", async () => {
  const network = await startNetwork();
  const openers = (): string[] =>
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => {
        try {
          const line = readFileSync(`/proc/${pid}/cmdline`, "utf8");
          return (
            line.includes("--eval") && line.includes("process.send") && line.endsWith("8053\0")
          );
        } catch {
          return false;
        }
      });
  const program = `import { openDnsSockets } from "${ROOT}/src/binding/dns/sockets.ts";
    await openDnsSockets({ address: "127.0.0.1", port: 8053, netns: "${network.netns}" });`;
  const sidecarLike = spawn(process.execPath, ["--input-type=module", "--eval", program]);
  try {
    await until(() => openers().length > 0, { what: "the opener" });
    sidecarLike.kill("SIGKILL");
    await until(() => openers().length === 0, { what: "the opener's end" });
  } finally {
    sidecarLike.kill("SIGKILL");
    await network.stop();
  }
});
