import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { controllerConfigSchema } from "../controller/config.ts";
import { ConfigFileError, readConfig } from "./config-file.ts";
import { gatewayConfigSchema } from "./gateway-config.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "svc-config-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

function write(text: string): readonly string[] {
  const file = path.join(folder, "config.yaml");
  writeFileSync(file, text);
  return ["--config", file];
}

function refusal(schema: Parameters<typeof readConfig>[0], args: readonly string[]): string {
  try {
    readConfig(schema, args);
  } catch (error) {
    if (error instanceof ConfigFileError) return error.message.replaceAll(folder, "");
    throw error;
  }
  throw new Error("it was read");
}

test("a gateway needs no setting", () => {
  for (const args of [[], write(""), write("# nothing\n")]) {
    const config = readConfig(gatewayConfigSchema, args);
    expect(config.listen).toEqual({ address: "0.0.0.0", port: 8000 });
    expect(config.external?.port).toBe(8080);
    expect(config.mock).toBe(false);
    expect(config.audit?.onFailure).toBe("refuse");
  }
});

test("parts can be left out", () => {
  const config = readConfig(gatewayConfigSchema, write("{external: null, audit: null}"));
  expect([config.external, config.audit]).toEqual([null, null]);
});

const IMAGES = "images: {proxy: a, svc: b}";
const GATEWAY = "gateway: {host: svc-gateway.svc-system.svc.cluster.local}";

test("a controller needs its images and its gateway", () => {
  const config = readConfig(controllerConfigSchema, write(`${IMAGES}\n${GATEWAY}\n`));
  expect(config.interception).toBe("init");
  expect(config.sidecar.uid).toBe(65_533);
});

test.each([
  ["an unknown field", "listn: {}", "listn: unknown field; did you mean listen?"],
  ["a wrong port", "listen: {port: 0}", "listen.port"],
  ["what is no CIDR", "trustedProxies: [proxy]", "trustedProxies[0]"],
  ["what is no origin", "mcp: {allowedOrigins: [inspector]}", "mcp.allowedOrigins[0]"],
  ["what is no host", "mcp: {allowedHosts: ['a:80']}", "mcp.allowedHosts[0]"],
  ["what is no YAML", "{", "is not YAML"],
])("a gateway's file with %s is refused, with the place", (_name, text, said) => {
  expect(refusal(gatewayConfigSchema, write(text))).toContain(said);
});

test.each([
  ["no gateway", IMAGES, "gateway: is required"],
  ["a short host", `${IMAGES}\ngateway: {host: svc-gateway}`, "must be the whole name"],
  [
    "a leader that gives up too late",
    `${IMAGES}\n${GATEWAY}\nleaderElection: {leaseSeconds: 10, renewSeconds: 10}`,
    "leaderElection.renewSeconds: must be less than leaseSeconds",
  ],
  ["another interception", `${IMAGES}\n${GATEWAY}\ninterception: none`, "interception"],
])("a controller's file with %s is refused, with the place", (_name, text, said) => {
  expect(refusal(controllerConfigSchema, write(text))).toContain(said);
});

test("a file that is not there, and another argument, are refused", () => {
  expect(refusal(gatewayConfigSchema, ["--config", path.join(folder, "none.yaml")])).toContain(
    "cannot be read (ENOENT). Mount the ConfigMap there",
  );
  expect(refusal(gatewayConfigSchema, ["--port", "1"])).toContain("The only option is --config");
});
