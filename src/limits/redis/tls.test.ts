/** TLS to the store: its certificate is verified against the given authorities. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RedisServer } from "../../../e2e/support/redis.ts";
import { until } from "../../../e2e/support/wait.ts";
import { parseRedisSettings } from "./redis-options.ts";
import { FakeClock } from "../../platform/testing.ts";
import { NOON, daily, LimitingProcess, SCOPE } from "../testing.ts";

let dir: string;
let server: RedisServer;

const file = (name: string): string => path.join(dir, name);

/** Creates a self-signed certificate for 127.0.0.1. */
function certificate(name: string): void {
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      "2",
      "-subj",
      `/CN=${name}`,
      "-addext",
      "subjectAltName=IP:127.0.0.1",
      "-keyout",
      file(`${name}.key`),
      "-out",
      file(`${name}.pem`),
    ],
    { stdio: "ignore" },
  );
}

beforeAll(async () => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-redis-tls-"));
  certificate("store");
  certificate("stranger");
  server = await RedisServer.start({
    password: "the-secret",
    tls: { cert: file("store.pem"), key: file("store.key"), ca: file("store.pem") },
  });
});

afterAll(async () => {
  await server.stop();
  rmSync(dir, { recursive: true, force: true });
});

test.each(["rediss:", "redis:"])(
  "with its authority, which asks for TLS by itself, and %s: used",
  async (protocol) => {
    const ca = readFileSync(file("store.pem"), "utf8");
    const redis = parseRedisSettings({ url: server.url.replace("rediss:", protocol), ca });
    const gateway = new LimitingProcess(new FakeClock(NOON), { redis, processId: randomUUID() });
    await until(() => gateway.up());
    const reserve = { tokens: 1, microUsd: 0, requests: 1 };
    const admission = await gateway.limits.admit({
      id: randomUUID(),
      scope: SCOPE,
      accounts: ["agent"],
      checks: [daily(9)],
      reserve,
    });
    expect(admission.kind).toBe("admitted");
    expect(await gateway.metric("svc_store_fail_open_total")).toBe(0);
    await gateway.limits.close();
  },
);

test.each([
  { name: "another authority", ca: "stranger.pem" },
  { name: "the system's authorities", ca: undefined },
])("with $name: away, and no password is sent", async ({ ca }) => {
  const redis = parseRedisSettings({
    url: server.url,
    ...(ca !== undefined && { ca: readFileSync(file(ca), "utf8") }),
  });
  const gateway = new LimitingProcess(new FakeClock(NOON), { redis, processId: randomUUID() });
  await until(() => gateway.warnings.length > 0);
  expect(gateway.warnings[0]?.["reason"]).toMatch(/self-signed|unable to verify/);
  await gateway.limits.close();
});
