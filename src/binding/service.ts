/**
 * The sidecar service, which decides for one agent's Envoy. It connects the providers' file,
 * plugins, certificate authority, authorizer and audit chain.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { collectDefaultMetrics, Registry } from "prom-client";
import { RefusalLog } from "../audit/refusals/refusals.ts";
import { openAuditWriter } from "../audit/writer/writer.ts";
import { sidecarBootstrap, type SidecarMcpServer } from "../envoy/config/sidecar.ts";
import { serveAuthorization } from "../envoy/ext-authz/server.ts";
import { CertificateAuthority, DEFAULT_VALIDITY } from "../interception/ca.ts";
import { writeTrust } from "../interception/trust.ts";
import { type Clock, guardedClock, systemClock } from "../platform/clock.ts";
import { Defects } from "../platform/defects.ts";
import type { Logger } from "../platform/log.ts";
import { Secret } from "../platform/secret.ts";
import { StateFolder } from "../platform/state-folder.ts";
import type { TokenFetch } from "../providers/contract.ts";
import { type KeptState, keptIn } from "../providers/kept-state.ts";
import { loadPlugin } from "../providers/loaders.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";
import { serveEndedCalls } from "./access-log.ts";
import { Authorizer } from "./authorizer.ts";
import { compileBodyRules, FORMS } from "./body-rules.ts";
import { startDns } from "./dns/start.ts";
import { endpointFetch } from "./endpoint-fetch.ts";
import { hostsOf } from "./hosts.ts";
import { BindingMetrics } from "./metrics.ts";
import type { SidecarServiceOptions } from "./options.ts";
import { EndpointResolver } from "./resolver.ts";
import { SERVICE_CALL } from "./service-call.ts";
import { SecretService } from "../envoy/sds/server.ts";
import { applySpecs, type StartedBinding } from "./reload.ts";
import { type LoadedSpecs, loadSpecs, watchSpecs } from "./specs.ts";

export interface SidecarService {
  close(): Promise<void>;
}

/** Upper bound on the interval between certificate renewal checks. */
const MOST_CHECK_MS = 60_000;

/**
 * Body rules and Envoy's limit of header size keep messages smaller: this bound only matters for
 * defects.
 */
const LARGEST_QUESTION_BYTES = 64 * 1024 * 1024;

/** Name of the file with Envoy's configuration in the run folder. */
export const ENVOY_CONFIG = "envoy.json";

export async function startSidecar(
  options: SidecarServiceOptions,
  env: NodeJS.ProcessEnv,
  log: Logger,
): Promise<SidecarService> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const defects = new Defects({ log, clock: systemClock, registry });
  const clock = guardedClock(systemClock, defects.reporter("timer"));
  const onRejection = defects.reporter("promise");
  process.on("unhandledRejection", onRejection);
  const metrics = new BindingMetrics(registry);
  const resolver = new EndpointResolver({
    clock,
    servers: options.dnsServers,
    port: options.upstreamPort,
  });
  const fetch = endpointFetch(resolver, {
    caFile: options.upstreamCaFile,
    port: options.upstreamPort,
  });
  const loaded = await loadSpecs(options.specFile);
  const state = openState(options, clock, log);
  const instances = await startInstances(loaded, { env, fetch, log, clock, state });
  let { snapshot } = applySpecs(loaded, instances);

  const hosts = instances.flatMap((instance) => instance.hosts);
  const authority = new CertificateAuthority({
    clock,
    random: (bytes) => randomBytes(bytes),
    names: {
      hosts: hosts.filter((host) => !host.startsWith("*.")),
      patterns: hosts.filter((host) => host.startsWith("*.")),
    },
    ...(options.certificates === undefined ? {} : { validity: options.certificates }),
  });
  const systemRoots = readFileSync(options.systemCaFile ?? options.upstreamCaFile, "utf8");
  const publish = (): void =>
    writeTrust(options.trustDir, { authorities: authority.certificatesPem, systemRoots });
  publish();
  const leafMs = (options.certificates ?? DEFAULT_VALIDITY).leafMs;
  const secrets = new SecretService({
    authority,
    clock,
    checkMs: Math.min(MOST_CHECK_MS, leafMs / 10),
    onDefect: defects.reporter("secrets"),
  });
  authority.onChange(() => {
    publish();
    secrets.refresh(true);
  });

  const audit =
    options.audit === undefined
      ? undefined
      : await openAuditWriter({
          ...options.audit,
          // The key belongs to the user of svc up, although svc run is root.
          keyOfFolderOwner: true,
          clock,
          log,
          registry,
        });
  const hasMcp = instances.some(({ spec }) => spec.mcp !== undefined);
  const refusals = new RefusalLog({ sink: audit, of: SERVICE_CALL, clock, log, registry });
  const authorizer = new Authorizer({
    snapshot: () => snapshot,
    clock,
    log,
    audit,
    refusals,
    metrics,
    resolve: (host) => resolver.resolve(host),
    marksCalls: hasMcp,
  });

  mkdirSync(options.runDir, { recursive: true, mode: 0o700 });
  const socket = (name: string): string => path.join(options.runDir, name);
  const servers = [
    ...(await Promise.all(
      (["https", "http"] as const).map((listener) =>
        serveAuthorization({
          path: socket(listener === "https" ? "authz.sock" : "authz-http.sock"),
          maxMessageBytes: LARGEST_QUESTION_BYTES,
          check: (request) => authorizer.check(request, listener),
          onDefect: defects.reporter("authorizer"),
        }),
      ),
    )),
    await serveEndedCalls({
      path: socket("access-log.sock"),
      onEnded: (call) => authorizer.ended(call),
      onRefused: (refusal) => authorizer.refusedByEnvoy(refusal),
      onDefect: defects.reporter("access_log"),
    }),
    await secrets.serve(socket("secrets.sock")),
  ];
  const mcp = hasMcp
    ? await (
        await import("./mcp-servers.ts")
      ).startMcpServers({
        bindings: instances,
        runDir: options.runDir,
        user: options.serverUser,
        env,
        log,
        clock,
        callOf: (id) => authorizer.callOf(id),
        onDefect: defects.reporter("mcp"),
      })
    : undefined;
  const bootstrap = bootstrapOf(options, instances, mcp?.servers);
  writeFileSync(socket(ENVOY_CONFIG), JSON.stringify(bootstrap, null, 1), { mode: 0o600 });

  const dns = await startDns({
    listener: options.listen.dns,
    snapshot: () => snapshot,
    names: options.dnsNames,
    lookUp: (name) => resolver.addressesOf(name),
    registry,
    clock,
    log,
    onDefect: defects.reporter("dns"),
  });

  const watch = await watchSpecs({
    file: options.specFile,
    clock,
    pollMs: options.pollMs,
    onChange: (next) => {
      try {
        const applied = applySpecs(next, instances);
        snapshot = applied.snapshot;
        metrics.reloaded(true);
        metrics.waiting(applied.waiting.length);
        log.info({ version: next.version }, "policy in force");
        for (const change of applied.waiting) {
          log.warn({ change }, "this change takes effect when the sidecar restarts");
        }
      } catch (error) {
        metrics.reloaded(false);
        log.error(
          { error: (error as Error).message },
          "not applied; the last good policy stays in force",
        );
      }
    },
    onBroken: (error) => {
      metrics.reloaded(false);
      log.error({ error: error.message }, "not applied; the last good policy stays in force");
    },
  });
  const admin = await listen(socket("sidecar.sock"), async (url) => {
    if (url === "/readyz") return { type: "text/plain", body: "ok\n" };
    if (url === "/calls") return { type: "text/plain", body: `${authorizer.underWay}\n` };
    return url === "/metrics"
      ? { type: "text/plain; version=0.0.4", body: await registry.metrics() }
      : undefined;
  });
  log.info({ version: loaded.version, hosts }, "sidecar ready");

  return {
    close: async () => {
      watch.close();
      dns?.close();
      secrets.close();
      authority.close();
      await Promise.all(servers.map(async (server) => server.close()));
      await mcp?.close();
      admin.close();
      admin.closeAllConnections();
      await Promise.all(instances.map(async ({ instance }) => instance.stop()));
      await refusals.close();
      await audit?.close();
      process.off("unhandledRejection", onRejection);
    },
  };
}

interface Surroundings {
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
  readonly fetch: TokenFetch;
  readonly log: Logger;
  /** Returns what a Provider keeps; undefined where nothing can be kept. */
  readonly state: (provider: string) => KeptState | undefined;
}

/** A folder that cannot be used is no reason not to start: nothing is kept then. */
function openState(
  { stateDir, workload }: SidecarServiceOptions,
  clock: Clock,
  log: Logger,
): Surroundings["state"] {
  if (stateDir === undefined) return () => undefined;
  const [namespace = ""] = workload.split("/");
  try {
    const folder = StateFolder.open(stateDir, clock);
    return (provider) => keptIn(folder, namespace, provider);
  } catch (error) {
    log.warn({ error: (error as Error).message }, "rotated tokens are not kept beyond this run");
    return () => undefined;
  }
}

/** @throws ConfigError for settings that cannot work */
async function startInstances(
  { specs }: LoadedSpecs,
  surroundings: Surroundings,
): Promise<readonly StartedBinding[]> {
  const started = await Promise.all(
    specs.bindings.map(async (spec) => createInstance(spec, surroundings)),
  );
  await Promise.all(started.map(async ({ instance }) => instance.start()));
  return started;
}

async function createInstance(
  spec: BindingSpec,
  { env, fetch, log, clock, state }: Surroundings,
): Promise<StartedBinding> {
  const plugin = await loadPlugin(spec.type);
  if (plugin === undefined) throw new Error(`there is no plugin for the service ${spec.type}`);
  const secrets = new Map<string, Secret>();
  for (const [key, variable] of Object.entries(spec.auth.env)) {
    const value = env[variable];
    if (value === undefined || value === "")
      throw new Error(`Provider ${spec.name}: the environment variable ${variable} is not set`);
    secrets.set(key, new Secret(value));
  }
  const instance = plugin.create({
    binding: spec.name,
    authType: spec.auth.type,
    secrets,
    config: spec.config,
    mcp: spec.mcp,
    clock,
    state: state(spec.name),
    fetch,
    random: Math.random,
    log,
  });
  return { name: spec.name, plugin, instance, hosts: hostsOf(spec, plugin), spec };
}

function bootstrapOf(
  options: SidecarServiceOptions,
  instances: readonly StartedBinding[],
  mcp: readonly SidecarMcpServer[] = [],
): object {
  return sidecarBootstrap({
    nodeId: `svc-sidecar-${os.hostname()}-${process.pid}`,
    runDir: options.runDir,
    http: options.listen.http,
    https: options.listen.https,
    gateway: options.listen.gateway,
    bodies: [
      ...instances.flatMap(({ plugin, hosts }) => compileBodyRules(plugin.bodies, hosts)),
      FORMS,
    ],
    mcp,
    caFile: options.upstreamCaFile,
  });
}

interface Page {
  readonly type: string;
  readonly body: string;
}

async function listen(
  socket: string,
  answer: (url: string) => Promise<Page | undefined>,
): Promise<http.Server> {
  await rm(socket, { force: true });
  const server = http.createServer((request, response) => {
    answer(request.url ?? "/").then(
      (page) =>
        response
          .writeHead(page === undefined ? 404 : 200, { "content-type": page?.type ?? "text/plain" })
          .end(page?.body ?? "not found\n"),
      () => response.destroy(),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socket, resolve);
  });
  return server;
}
