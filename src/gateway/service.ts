/**
 * The gateway service: resources in, decisions out. Wires sources, policy, xDS, ext_proc and the HTTP API together; a
 * change of the resources is compiled, and swapped in whole.
 */
import { randomUUID } from "node:crypto";
import { readFile, rm } from "node:fs/promises";
import type http from "node:http";
import path from "node:path";
import * as grpc from "@grpc/grpc-js";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { compileClientAddress } from "../access/client-address.ts";
import { WorkloadTokens } from "../access/workload-tokens.ts";
import { openAuditWriter } from "../audit/writer.ts";
import { BUFFER_LIMIT_BYTES } from "../compile/envoy/names.ts";
import type { SidecarConfig } from "../compile/bindings.ts";
import { compilePolicy } from "../compile/policy.ts";
import { serveExtProc } from "../extproc/server.ts";
import { Accounting } from "../llm/accounting.ts";
import { createLimits } from "../limits/limits.ts";
import { AttemptProcessor } from "../llm/attempt-processor.ts";
import { AuditTrail } from "../llm/audit-trail.ts";
import { CallRegistry } from "../llm/call-registry.ts";
import { LlmMetrics } from "../llm/metrics.ts";
import { LlmProcessor, type LlmProcessorOptions } from "../llm/processor.ts";
import { retryAfterMs } from "../llm/retry-after.ts";
import { systemClock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { type ObjectStatus, withProblems } from "../policy/status.ts";
import { PolicyStore } from "../policy/store.ts";
import { openPrices } from "./prices.ts";
import { formatProblem } from "../resources/problem.ts";
import { AppliedStore } from "../sources/applied/applied-store.ts";
import { openFolder } from "../sources/folder/folder-source.ts";
import type { LoadResult } from "../sources/load-result.ts";
import { registerAccessLog } from "../xds/access-log.ts";
import { AdsServer } from "../xds/ads.ts";
import { ProtoRegistry } from "../xds/proto.ts";
import { SnapshotEncoder } from "../xds/snapshot.ts";
import { createApi } from "./api.ts";
import { createControl } from "./control.ts";
import { redisFromEnvironment } from "./redis.ts";
import { Rollout } from "./rollout.ts";
import type { GatewayOptions } from "./options.ts";
import { compileSidecars, viewSidecar, withBindingStatuses } from "./sidecars.ts";
import type { GatewayStatus } from "./status.ts";
import { usageFrom } from "./usage.ts";

export interface GatewayService {
  close(): Promise<void>;
}

export async function startGateway(options: GatewayOptions, log: Logger): Promise<GatewayService> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const protos = ProtoRegistry.load(options.descriptorSet);
  const tokens = new WorkloadTokens(await readFile(options.workloadKeyFile));
  const policy = new PolicyStore();
  const prices = await openPrices(options, log);
  const calls = new CallRegistry();
  const metrics = new LlmMetrics(registry);
  const clientAddress = compileClientAddress(options.trustedProxies);
  const redis = redisFromEnvironment(process.env);
  const limits = createLimits({
    ...(redis === undefined ? {} : { redis }),
    clock: systemClock,
    log,
    registry,
    processId: randomUUID(),
    leaseMs: options.leaseMs,
  });
  const writer =
    options.audit === undefined
      ? undefined
      : await openAuditWriter({ ...options.audit, clock: systemClock, log, registry });
  const audit = new AuditTrail(writer, systemClock);
  const accounting = new Accounting({
    clock: systemClock,
    prices: () => prices.current(),
    metrics,
    limits,
    audit,
    log,
  });
  const ads = new AdsServer({
    registry: protos,
    onConnect: (node) => log.info({ node }, "Envoy connected"),
    onNack: (node, type, nack) => log.error({ node, type, ...nack }, "Envoy refused configuration"),
  });
  const rollout = new Rollout({
    ads,
    encoder: new SnapshotEncoder(protos),
    policy,
    envoy: { gateway: options.listen, external: options.external, caFile: options.caFile },
    clock: systemClock,
    log,
  });
  registerResourceMetrics(registry, calls);

  let objects: readonly ObjectStatus[] = [];
  let sidecars: ReadonlyMap<string, SidecarConfig> = new Map();
  let problems: readonly string[] = [];
  const apply = (load: LoadResult): void => {
    const compiled = compilePolicy(load.resources, {
      env: process.env,
      now: Date.now(),
      tokenHashOf: (namespace, name) => tokens.hashOf(namespace, name),
      mockEndpoint:
        options.mock === undefined ? undefined : { ...options.mock, tls: false, basePath: "/v1" },
    });
    const bindings = compileSidecars(load.resources, process.env);
    sidecars = bindings.sidecars;
    objects = withProblems(withBindingStatuses(compiled.statuses, bindings), load.problems);
    problems = load.problems.map(formatProblem);
    for (const problem of problems) log.warn({ problem }, "resource not in use as written");
    rollout.apply(compiled.snapshot);
  };
  const guarded = (load: LoadResult): void => {
    try {
      apply(load);
    } catch (error) {
      log.error(
        { error: error instanceof Error ? error.stack : String(error) },
        "not applied; the last good state stays",
      );
    }
  };
  const source = await openFolder({ dir: options.resources, onChange: guarded, log });
  apply(source.current());

  const onError = (error: unknown): void =>
    log.error(
      { error: error instanceof Error ? error.stack : String(error) },
      "defect: the request fails closed",
    );
  const socket = (name: string): string => path.join(options.runDir, name);
  const maxMessageBytes = BUFFER_LIMIT_BYTES + 1_048_576;
  const llmOptions: LlmProcessorOptions = {
    policy: () => policy.current,
    calls,
    accounting,
    metrics,
    limits,
    audit,
    prices: () => prices.current(),
    clientAddress,
    onDefect: onError,
    clock: systemClock,
    random: Math.random,
    newCallId: randomUUID,
  };
  const llm = await serveExtProc({
    path: socket("llm.sock"),
    maxMessageBytes,
    onError,
    createProcessor: (exchange) => new LlmProcessor(exchange, llmOptions),
  });
  const attemptOptions = { calls, clock: systemClock };
  const attempts = await serveExtProc({
    path: socket("attempt.sock"),
    maxMessageBytes,
    onError,
    createProcessor: (exchange) => new AttemptProcessor(exchange, attemptOptions),
  });

  const control = new grpc.Server({ "grpc.max_receive_message_length": -1 });
  ads.register(control);
  registerAccessLog(control, protos, (report) => {
    calls.get(report.requestId)?.reportSentFailure({
      status: report.status,
      flags: report.flags.join(","),
      retryAfterMs: retryAfterMs(report, systemClock.now()),
    });
  });
  await bindGrpc(control, socket("control.sock"));

  const notReady = (): string | undefined =>
    ads.status().some((node) => node.inSync)
      ? undefined
      : "Envoy has not taken the configuration yet";
  const status = (): GatewayStatus => ({
    ready: notReady() === undefined,
    reason: notReady(),
    policyVersion: policy.current.version,
    activeCalls: calls.size,
    objects,
    problems,
    envoys: ads.status(),
  });
  const servers: http.Server[] = [
    await listen(
      createApi({
        policy: () => policy.current,
        clientAddress,
        clock: systemClock,
        audit,
        metrics: () => registry.metrics(),
        notReady,
      }),
      socket("api.sock"),
    ),
    await listen(
      createControl({
        status,
        tokenOf: (namespace, name) => tokens.tokenOf(namespace, name),
        sidecarOf: (namespace, name) => {
          const config = sidecars.get(`${namespace}/${name}`) ?? {
            specs: { version: 1, workload: `${namespace}/${name}`, bindings: [] },
            environment: new Map(),
          };
          return viewSidecar(config, tokens.tokenOf(namespace, name), options);
        },
        metrics: () => registry.metrics(),
        objects: {
          statuses: () => objects,
          resources: () => source.current().resources,
          usage: usageFrom(limits, () => source.current().resources),
        },
        store: new AppliedStore({
          dir: options.resources,
          refresh: () => source.refresh(),
          inForce: () => rollout.idle(),
          placeOf: (id) => source.placeOf(id),
        }),
        log,
      }),
      options.controlSocket,
    ),
  ];

  return {
    close: async () => {
      await source.close();
      prices.close();
      control.forceShutdown();
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
      await Promise.all([llm.close(), attempts.close()]);
      // After the last call that could still be settled.
      await Promise.all([limits.close(), writer?.close()]);
      await rm(options.controlSocket, { force: true });
    },
  };
}

function registerResourceMetrics(registry: Registry, calls: CallRegistry): void {
  const gauge: Gauge = new Gauge({
    name: "svc_llm_active_calls",
    help: "LLM calls under way.",
    registers: [registry],
    collect: () => gauge.set(calls.size),
  });
}

async function bindGrpc(server: grpc.Server, path: string): Promise<void> {
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${path}`, grpc.ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}

async function listen(server: http.Server, path: string): Promise<http.Server> {
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  return server;
}
