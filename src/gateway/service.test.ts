/** The whole service in this process, without Envoy: resources in, HTTP out. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { systemFiles } from "../audit/chain/files.ts";
import { AuditMetrics } from "../audit/writer/metrics.ts";
import { REFUSAL_LIMITS } from "../audit/refusals/refusals.ts";
import { VolumeWatch } from "../audit/writer/volume.ts";
import { Gateway, provider } from "../llm/testing.ts";
import { BridgeMetrics } from "../mcp/bridge/metrics.ts";
import { McpMetrics } from "../mcp/gateway/metrics.ts";
import { Defects } from "../platform/defects.ts";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { folderBacking } from "./backing.ts";
import { type GatewayOptionsInput, gatewayOptionsSchema } from "./options.ts";
import { openPrices } from "./prices.ts";
import { type GatewayService, startGateway } from "./service.ts";
import type { GatewayStatus } from "./status.ts";

const AGENT = `
apiVersion: svc.io/v1
kind: Agent
metadata: {name: hello}
spec: {models: ["mock/*", "openai/*"]}
---
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: mock}
spec: {provider: mock}
---
apiVersion: v1
kind: Secret
metadata: {name: openai}
stringData: {api-key: sk-secret-of-the-folder}
---
apiVersion: svc.io/v1
kind: ModelProvider
metadata: {name: openai}
spec: {provider: openai, apiKeySecretRef: {name: openai, key: api-key}}
`;

interface Running {
  readonly service: GatewayService;
  readonly dir: string;
  readonly log: string[];
  readonly control: string;
  readonly api: string;
}

async function start(): Promise<Running> {
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
  for (const name of ["resources", "run"]) mkdirSync(path.join(dir, name));
  writeFileSync(path.join(dir, "resources/all.yaml"), AGENT);
  writeFileSync(path.join(dir, "workload.key"), Buffer.alloc(32, 7), { mode: 0o600 });
  const input: GatewayOptionsInput = {
    resources: path.join(dir, "resources"),
    runDir: path.join(dir, "run"),
    workloadKeyFile: path.join(dir, "workload.key"),
    controlSocket: path.join(dir, "svc.sock"),
    listen: { address: "127.0.0.1", port: 8000 },
    caFile: "/ca.pem",
    descriptorSet: path.resolve(import.meta.dirname, "../gen/envoy.binpb"),
    mock: { host: "127.0.0.1", port: 1 },
    audit: {
      dir: path.join(dir, "audit"),
      keyFile: path.join(dir, "audit.key"),
      writer: "gateway",
      onFailure: "refuse",
      sync: "group",
    },
  };
  const log: string[] = [];
  const logger = pino({ level: "trace" }, { write: (line: string) => void log.push(line) });
  const service = await startGateway(
    gatewayOptionsSchema.parse(input),
    process.env,
    logger,
    await folderBacking(input, logger),
  );
  return {
    service,
    dir,
    log,
    control: path.join(dir, "svc.sock"),
    api: path.join(dir, "run/api.sock"),
  };
}

describe("the service", () => {
  let running: Running;

  beforeAll(async () => {
    running = await start();
  });

  afterAll(async () => {
    await running.service.close();
    rmSync(running.dir, { recursive: true });
  });

  test("puts the folder in force and says so", async () => {
    const status = JSON.parse(
      (await unixRequest(running.control, "/status")).body,
    ) as GatewayStatus;
    expect(status.objects.map(({ kind, name, ready }) => [kind, name, ready])).toEqual([
      ["Agent", "hello", true],
      ["ModelProvider", "mock", true],
      ["ModelProvider", "openai", true],
      ["Secret", "openai", true],
    ]);
    expect(status).toMatchObject({
      ready: false,
      reason: "Envoy has not taken the configuration yet",
      activeCalls: 0,
      problems: [],
      envoys: [],
    });
    expect((await unixRequest(running.api, "/readyz")).status).toBe(503);
  });

  test("an agent's token opens the agent's models", async () => {
    const { token } = JSON.parse(
      (await unixRequest(running.control, "/agents/default/hello/token")).body,
    ) as { token: string };
    expect(token).toMatch(/^svcw_[0-9A-Za-z]{43}$/);
    const models = await unixRequest(running.api, `/v1beta/models?key=${token}`);
    expect(JSON.parse(models.body)).toMatchObject({
      models: [{ name: "models/mock/*" }, { name: "models/openai/*" }],
    });
    expect((await unixRequest(running.api, "/v1beta/models?key=svcw_other")).status).toBe(401);
    expect(running.log.join("")).not.toContain(token);
  });

  test("the sockets are there, those that carry requests for this user alone", () => {
    for (const name of ["llm", "attempt", "control", "api"])
      expect(statSync(path.join(running.dir, `run/${name}.sock`)).isSocket()).toBe(true);
    for (const name of ["llm", "attempt"])
      expect(statSync(path.join(running.dir, `run/${name}.sock`)).mode & 0o077).toBe(0);
  });

  test("neither log nor metrics nor status show a secret", async () => {
    const told = [
      running.log.join(""),
      ...(
        await Promise.all([
          unixRequest(running.control, "/status"),
          unixRequest(running.api, "/metrics"),
        ])
      ).map(({ body }) => body),
    ];
    for (const text of told) {
      expect(text).not.toBe("");
      expect(text).not.toContain("sk-secret");
    }
  });

  describe("docs/metrics.md", () => {
    const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/metrics.md"), "utf8");
    const [ofGateway = ""] = page.split("\n## The sidecar\n");
    const rows = [...ofGateway.matchAll(/^\| `(\w+)` \| (\w+) \| (.*?) \| (.+) \|$/gm)].map(
      ([, name, type, labels, help]) => ({
        name: name as string,
        type: type as string,
        labels: [...(labels ?? "").matchAll(/`(\w+)`/g)].map((match) => match[1] as string),
        help: help as string,
      }),
    );

    test("has the names, types and words of /metrics", async () => {
      const { body } = await unixRequest(running.api, "/metrics");
      const help = new Map(
        [...body.matchAll(/^# HELP (svc_\w+) (.+)$/gm)].map((match) => [
          match[1] as string,
          match[2] as string,
        ]),
      );
      const types = new Map(
        [...body.matchAll(/^# TYPE (svc_\w+) (\w+)$/gm)].map((match) => [
          match[1] as string,
          match[2] as string,
        ]),
      );
      expect(rows.map(({ name }) => name).sort()).toEqual([...help.keys()].sort());
      for (const row of rows)
        expect([row.name, row.type, row.help]).toEqual([
          row.name,
          types.get(row.name),
          help.get(row.name),
        ]);
    });

    test("has the labels of the metrics", () => {
      const { registry } = new Gateway(provider("openai"));
      expect(new AuditMetrics(registry)).toBeDefined();
      expect(new BridgeMetrics(registry)).toBeDefined();
      const { log } = new CapturedLog();
      const clock = new FakeClock();
      expect(new Defects({ log, clock, registry })).toBeDefined();
      expect(new McpMetrics(registry)).toBeDefined();
      const space = { dir: ".", space: {}, files: systemFiles, clock, log, registry };
      expect(new VolumeWatch(space)).toBeDefined();
      for (const { name, labels } of rows) {
        const metric = registry.getSingleMetric(name) as unknown as
          | { readonly labelNames?: readonly string[] }
          | undefined;
        expect([name, labels]).toEqual([name, [...(metric?.labelNames ?? [])]]);
      }
    });
  });
});

test("a stop leaves no socket and lets a second one start", async () => {
  const { service, dir, control, api } = await start();
  await service.close();
  for (const socket of [control, api]) expect(existsSync(socket)).toBe(false);
  rmSync(dir, { recursive: true });
});

test("a flood of refusals is in the chain, and in the status, when the service has stopped", async () => {
  const { service, dir, control, api } = await start();
  const times = REFUSAL_LIMITS.caller.burst + 40;
  for (let i = 0; i < times; i += 1)
    expect((await unixRequest(api, `/v1/models?i=${i}`)).status).toBe(401);
  const { audit } = JSON.parse((await unixRequest(control, "/status")).body) as GatewayStatus;
  expect(audit?.state).toBe("ok");
  expect(audit?.freeBytes).toBeGreaterThan(0);
  expect(audit?.chainsBytes).toBeGreaterThan(0);
  // Slightly more than the burst, on a machine on which this takes seconds.
  const count = audit?.refusalsLeftOut.rate;
  expect(count).toBeGreaterThan(0);
  await service.close();
  const records = readFileSync(path.join(dir, "audit/gateway/000001.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; fields: Record<string, unknown> });
  expect(records.filter(({ type }) => type === "LLM_REFUSED")).toHaveLength(times - Number(count));
  expect(records.filter(({ type }) => type === "REFUSALS_LEFT_OUT")).toMatchObject([
    { fields: { count, callers: { anonymous: count }, codes: { missing_key: count } } },
  ]);
  rmSync(dir, { recursive: true });
});

describe("options", () => {
  const good = {
    resources: "r",
    runDir: "d",
    workloadKeyFile: "k",
    controlSocket: "c",
    listen: { address: "127.0.0.1", port: 8000 },
    caFile: "ca",
    descriptorSet: "p",
  };

  test("have defaults", () => {
    expect(gatewayOptionsSchema.parse(good)).toEqual({
      ...good,
      environment: "process",
      trustedProxies: [],
      mcpAllowedOrigins: [],
      redisTimeoutMs: 40,
      leaseMs: 30_000,
      uploadIdleMs: 15_000,
      bytesInFlight: { total: 1 << 28, perCaller: 64 * 1024 * 1024 },
      pricesReloadMs: 60_000,
      logLevel: "info",
    });
  });

  test.each<[string, object]>([
    ["an unknown one", { ...good, other: 1 }],
    ["an unknown one inside", { ...good, listen: { ...good.listen, host: "x" } }],
    ["a port that is none", { ...good, listen: { address: "x", port: 0 } }],
    ["a missing one", { ...good, caFile: undefined }],
  ])("%s is refused", (_name, input) => {
    expect(gatewayOptionsSchema.safeParse(input).success).toBe(false);
  });
});

describe("prices", () => {
  let dir: string | undefined;

  afterEach(() => {
    if (dir !== undefined) rmSync(dir, { recursive: true });
    dir = undefined;
  });

  const open = async (
    text: string,
  ): Promise<{
    readonly prices: Awaited<ReturnType<typeof openPrices>>;
    readonly log: string[];
  }> => {
    dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
    const pricesFile = path.join(dir, "prices.yaml");
    writeFileSync(pricesFile, text);
    const log: string[] = [];
    const prices = await openPrices(
      { pricesFile, pricesReloadMs: 3_600_000 },
      new FakeClock(),
      pino({}, { write: (line: string) => void log.push(line) }),
    );
    return { prices, log };
  };

  test("without a file are the shipped ones", async () => {
    const prices = await openPrices(
      { pricesReloadMs: 1 },
      new FakeClock(),
      pino({ level: "silent" }),
    );
    expect(prices.current().priceOf("gpt-5.2")).toBeDefined();
    expect(prices.current().priceOf("my-model")).toBeUndefined();
    prices.close();
  });

  test("with a file are in force at once, over the shipped ones", async () => {
    const { prices } = await open('my-model: {input: "1", output: "2"}');
    expect(prices.current().priceOf("my-model")?.input).toBe(1_000_000n);
    expect(prices.current().priceOf("gpt-5.2")).toBeDefined();
    prices.close();
  });

  test("with a broken file are the shipped ones, and it is said", async () => {
    const { prices, log } = await open("my-model: {input: cheap}");
    expect(prices.current().priceOf("gpt-5.2")).toBeDefined();
    expect(log.join("")).toContain("price overrides not read");
    prices.close();
  });
});
