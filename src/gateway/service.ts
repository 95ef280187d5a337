/**
 * The gateway service: compiles resources into decisions. It connects sources, policy, xDS,
 * ext_proc and the HTTP API; a change of the resources is compiled and replaces the whole policy.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type http from "node:http";
import path from "node:path";
import { createSecureContext } from "node:tls";
import * as grpc from "@grpc/grpc-js";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { compileClientAddress } from "../access/client-address.ts";
import { RefusalLog } from "../audit/refusals/refusals.ts";
import { openAuditWriter } from "../audit/writer/writer.ts";
import { BUFFER_LIMIT_BYTES, McpSocket, RelaySocket } from "../envoy/config/names.ts";
import type { SidecarConfig } from "../compile/bindings.ts";
import { compile } from "../compile/compile.ts";
import type { Env } from "../compile/policy-secrets.ts";
import type { StreamServer } from "../envoy/grpc/serve.ts";
import { serveExtProc } from "../envoy/ext-proc/server.ts";
import { Accounting } from "../llm/settlement/accounting.ts";
import { BytesInFlight } from "../limits/load/bytes-in-flight.ts";
import { FairShare } from "../limits/load/fair-share.ts";
import { createLimits } from "../limits/limits.ts";
import { AttemptProcessor } from "../llm/attempts/attempt-processor.ts";
import { AuditTrail, LLM_REFUSED } from "../llm/settlement/audit-trail.ts";
import { CallLog } from "../llm/settlement/call-log.ts";
import { CallRegistry } from "../llm/call-registry.ts";
import { ExpectedDemand } from "../llm/request/expected-demand.ts";
import { LlmMetrics } from "../llm/settlement/metrics.ts";
import { LlmProcessor, type LlmProcessorOptions } from "../llm/processor.ts";
import { Classifiers } from "../guard/classifiers.ts";
import { Guards } from "../guard/guards.ts";
import { GuardMetrics } from "../guard/metrics.ts";
import { GuardTrail, UNAVAILABLE, VIOLATION_ENFORCE } from "../guard/trail.ts";
import { createBridge } from "../mcp/bridge/bridge.ts";
import { MemoryBus } from "../mcp/bridge/bus.ts";
import { RedisBus } from "../mcp/bridge/redis-bus.ts";
import { TokenCredentials } from "../mcp/gateway/client-credentials.ts";
import { McpMetrics } from "../mcp/gateway/metrics.ts";
import { McpProcessor, type McpProcessorOptions } from "../mcp/gateway/processor.ts";
import { MCP_PROCESSOR } from "../mcp/gateway/surface.ts";
import { MCP_REFUSED, McpTrail, TOOL_CALL } from "../mcp/gateway/trail.ts";
import { createTokenRequest } from "../mcp/gateway/token-request.ts";
import { SessionSeal } from "../mcp/protocol/seal.ts";
import { Relay } from "../llm/attempts/relay.ts";
import { localReplyFlags } from "../llm/answer/response-flags.ts";
import { retryAfterMs } from "../llm/attempts/retry-after.ts";
import { ATTEMPT_PROCESSOR, LLM_PROCESSOR } from "../llm/surface.ts";
import { eventLoopUtilization } from "../platform/event-loop.ts";
import { guardedClock, systemClock } from "../platform/clock.ts";
import { Defects } from "../platform/defects.ts";
import type { Logger } from "../platform/log.ts";
import type { PolicySnapshot } from "../policy/snapshot.ts";
import { PolicyStore } from "../policy/store.ts";
import { plugins } from "../providers/registry.ts";
import { openPrices } from "./prices.ts";
import { EMPTY_RESOURCE_SET } from "../resources/resource-set.ts";
import { AppliedStore } from "../sources/applied/applied-store.ts";
import { registerAccessLog } from "../envoy/access-log/collector.ts";
import { AdsServer } from "../envoy/xds/ads.ts";
import { ProtoRegistry } from "../envoy/protobuf/registry.ts";
import { SnapshotEncoder } from "../envoy/xds/snapshot.ts";
import { createApi } from "./api.ts";
import { API_SERVICE } from "./api-surface.ts";
import type { Backing } from "./backing.ts";
import { createControl } from "./control.ts";
import { viewTools } from "./mcp-tools.ts";
import { Reconciler } from "./reconciler.ts";
import { redisFromEnvironment } from "./redis.ts";
import { Rollout } from "./rollout.ts";
import type { GatewayOptions } from "./options.ts";
import { viewSidecar } from "./sidecars.ts";
import type { GatewayStatus } from "./status.ts";
import { StatusPublisher } from "./status-publisher.ts";
import { StatusTable } from "./status-sink.ts";
import { gatewaySurfaces } from "./surfaces.ts";
import type { GuardCountsOf } from "./guard-counts.ts";
import { usageFrom } from "./usage.ts";

export interface GatewayService {
  close(): Promise<void>;
}

/** Time of an MCP message of the largest size at 64 KiB a second. */
const SLOWEST_UPLOAD_MS = 16_000;

/** Types of the records that are summarised when there are too many. */
const REFUSALS = [LLM_REFUSED, MCP_REFUSED, TOOL_CALL, VIOLATION_ENFORCE, UNAVAILABLE].join(", ");

/**
 * Part of the longest pause of an upload that a guard may take. Envoy ends a request that is silent
 * for longer, also while it waits for the gateway.
 */
const GUARD_SHARE = 0.8;

/**
 * Mean round trip to Envoy above which the gateway is busy: see {@link FairShare}. A round trip
 * counts as at most ten of these, so that one long pause does not reduce the capacity for long.
 */
const BUSY_ROUND_TRIP_MS = 10;
const MOST_BUSY = 10;

/**
 * @param env variables for the store of limits, and those that resources of a folder name
 * @param backing it is closed with the service
 */
export async function startGateway(
  options: GatewayOptions,
  env: Env,
  log: Logger,
  backing: Backing,
): Promise<GatewayService> {
  const { source, tokens } = backing;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const defects = new Defects({ log, clock: systemClock, registry });
  const clock = guardedClock(systemClock, defects.reporter("timer"));
  const onRejection = defects.reporter("promise");
  process.on("unhandledRejection", onRejection);
  const protos = ProtoRegistry.load(options.descriptorSet);
  const policy = new PolicyStore();
  const prices = await openPrices(options, clock, log);
  const calls = new CallRegistry();
  const metrics = new LlmMetrics(registry);
  const clientAddress = compileClientAddress(options.trustedProxies);
  const redis = redisFromEnvironment(env);
  const limits = createLimits({
    ...(redis === undefined ? {} : { redis }),
    clock,
    log,
    registry,
    processId: randomUUID(),
    admitTimeoutMs: options.redisTimeoutMs,
    leaseMs: options.leaseMs,
  });
  const bytes = new BytesInFlight({ ...options.bytesInFlight, registry });
  const loop = eventLoopUtilization();
  const share = new FairShare({
    clock,
    registry,
    // Envoy may be the busy process.
    utilization: () =>
      Math.max(loop(), Math.min(MOST_BUSY, llm.roundTripMs() / BUSY_ROUND_TRIP_MS)),
  });
  const writer =
    options.audit === undefined
      ? undefined
      : await openAuditWriter({ ...options.audit, clock, log, registry });
  const refusals =
    writer === undefined
      ? undefined
      : new RefusalLog({ sink: writer, of: REFUSALS, clock, log, registry });
  const records =
    writer === undefined || refusals === undefined ? undefined : { sink: writer, refusals };
  const audit = new AuditTrail(records);
  const accounting = new Accounting({
    clock,
    prices: () => prices.current(),
    limits,
    observers: [metrics, new CallLog(log)],
    recorder: audit,
  });
  const ads = new AdsServer({
    registry: protos,
    onConnect: (node) => log.info({ node }, "Envoy connected"),
    onNack: (node, type, nack) => log.error({ node, type, ...nack }, "Envoy refused configuration"),
    onProgress: () => statuses.refresh(),
  });
  const objects = new StatusTable(clock);
  const elsewhere = backing.publishTo?.({
    clock,
    log,
    usage: usageFrom(limits, () => resources),
  });
  const statuses = new StatusPublisher({
    sinks: elsewhere === undefined ? [objects] : [objects, elsewhere],
    answers: ads,
  });
  const mcpMetrics = new McpMetrics(registry);
  const credentials = new TokenCredentials({
    request: createTokenRequest({ caFile: options.caFile, clock }),
    onRequest: (provider, outcome) => mcpMetrics.tokenRequested(provider, outcome),
    clock,
    random: Math.random,
    log,
  });
  const guardMetrics = new GuardMetrics(registry);
  const classifiers = new Classifiers({
    clock,
    metrics: guardMetrics,
    trust: () => createSecureContext({ ca: readFileSync(options.caFile) }),
  });
  const guards = new Guards({
    classifiers,
    trail: new GuardTrail(records),
    metrics: guardMetrics,
    clock,
    longestMs: GUARD_SHARE * options.uploadIdleMs,
  });
  let sidecars: ReadonlyMap<string, SidecarConfig> = new Map();
  let resources = EMPTY_RESOURCE_SET;
  const rollout = new Rollout({
    ads,
    encoder: new SnapshotEncoder(protos),
    policy,
    inForce: (compiled) => {
      ({ resources, sidecars } = compiled);
      prices.setConfigMap(compiled.prices);
      credentials.retain(compiled.policy.mcpServers.values());
      classifiers.retain(classifierIds(compiled.policy));
      statuses.inForce(compiled);
    },
    envoy: {
      gateway: options.listen,
      external: options.external,
      caFile: options.caFile,
      runDir: options.runDir,
      surfaces: gatewaySurfaces(options),
      attempts: ATTEMPT_PROCESSOR,
    },
    clock,
    log,
  });

  const reconciler = new Reconciler({
    source,
    compile: (load, now) =>
      compile(load, {
        env: backing.env(env),
        now,
        tokenHashesOf: (namespace, name) => tokens.hashesOf(namespace, name),
        mockEndpoint:
          options.mock === undefined ? undefined : { ...options.mock, tls: false, basePath: "/v1" },
        guardEndpoint: options.guardEndpoint,
        service: (type) => plugins.get(type),
      }),
    rollout,
    clock,
    log,
  });

  const socket = (name: string): string => path.join(options.runDir, name);
  const maxMessageBytes = BUFFER_LIMIT_BYTES + 1_048_576;
  const relay = new Relay({
    calls,
    clock,
    envoySocket: socket(RelaySocket.envoy),
    onDefect: defects.reporter("relay"),
  });
  const llmOptions: LlmProcessorOptions = {
    policy: () => policy.current,
    calls,
    accounting,
    metrics,
    limits,
    bytes,
    share,
    expected: new ExpectedDemand(),
    audit,
    prices: () => prices.current(),
    clientAddress,
    uploadIdleMs: options.uploadIdleMs,
    clock,
    random: Math.random,
    newCallId: randomUUID,
    relay,
    guards,
  };
  const llm = await serveExtProc({
    path: socket(LLM_PROCESSOR.socket),
    maxMessageBytes,
    clock,
    onDefect: defects.reporter("llm"),
    createProcessor: (exchange) => new LlmProcessor(exchange, llmOptions),
  });
  registerResourceMetrics(registry, calls, llm);
  const attemptOptions = { calls, share };
  const attempts = await serveExtProc({
    path: socket(ATTEMPT_PROCESSOR.socket),
    maxMessageBytes,
    clock,
    onDefect: defects.reporter("attempt"),
    createProcessor: (exchange) => new AttemptProcessor(exchange, attemptOptions),
  });

  const mcpOptions: McpProcessorOptions = {
    policy: () => policy.current,
    clientAddress,
    origins: {
      allowedOrigins: new Set(options.mcpAllowedOrigins),
      allowedHosts: options.mcpAllowedHosts && new Set(options.mcpAllowedHosts),
    },
    limits,
    share,
    seal: new SessionSeal(() => tokens.keys),
    credentials,
    trail: new McpTrail(records),
    metrics: mcpMetrics,
    clock,
    newCallId: randomUUID,
    uploadMs: options.uploadIdleMs + SLOWEST_UPLOAD_MS,
  };
  const mcp = await serveExtProc({
    path: socket(MCP_PROCESSOR.socket),
    maxMessageBytes,
    clock,
    onDefect: defects.reporter("mcp"),
    createProcessor: (exchange) => new McpProcessor(exchange, mcpOptions),
  });

  const bus =
    redis === undefined
      ? new MemoryBus()
      : new RedisBus({
          redis,
          clock,
          log,
          random: Math.random,
          onDefect: defects.reporter("mcp_bus"),
        });
  const bridge = createBridge({
    gatewaySocket: socket(McpSocket.loop),
    egressSocket: socket(RelaySocket.envoy),
    bus,
    clock,
    log,
    registry,
    random: Math.random,
    onDefect: defects.reporter("mcp_bridge"),
  });

  const control = new grpc.Server({ "grpc.max_receive_message_length": -1 });
  ads.register(control);
  registerAccessLog(control, protos, defects.reporter("access_log"), (report) => {
    calls.get(report.requestId)?.reportSentFailure({
      status: report.status,
      flags: report.local === undefined ? report.flags.join(",") : localReplyFlags(report.local),
      retryAfterMs: retryAfterMs(report, clock.now()),
    });
  });
  await bindGrpc(control, socket("control.sock"));

  const guardCounts: GuardCountsOf = () => guards.counts;
  const notReady = (): string | undefined =>
    ads.status().some((node) => node.inSync)
      ? undefined
      : "Envoy has not taken the configuration yet";
  const status = (): GatewayStatus => ({
    ready: notReady() === undefined,
    reason: notReady(),
    policyVersion: policy.current.version,
    activeCalls: calls.underWay + mcpMetrics.active,
    objects: objects.current,
    problems: reconciler.problems,
    envoys: ads.status(),
    guards: Object.fromEntries(guardCounts()),
    audit: writer &&
      refusals && { state: writer.state, ...writer.space, refusalsLeftOut: refusals.leftOut },
  });
  const servers: http.Server[] = [
    await listen(relay.createServer(), socket(RelaySocket.relay)),
    await listen(bridge.clients, socket(McpSocket.clients)),
    await listen(bridge.servers, socket(McpSocket.servers)),
    await listen(
      createApi({
        policy: () => policy.current,
        clientAddress,
        clock,
        audit,
        metrics: () => registry.metrics(),
        notReady,
        onDefect: defects.reporter("api"),
        newCallId: randomUUID,
      }),
      socket(API_SERVICE.socket),
    ),
    await listen(
      createControl({
        status,
        tokenOf: (namespace, name) => tokens.tokenOf(namespace, name),
        sidecarOf: (namespace, name) => {
          const config = sidecars.get(`${namespace}/${name}`);
          return config && viewSidecar(config, tokens.tokenOf(namespace, name), options);
        },
        toolsOf: (namespace, name) =>
          viewTools(
            {
              policy: () => policy.current,
              credentials,
              envoySocket: socket(RelaySocket.envoy),
              clock,
            },
            namespace,
            name,
          ),
        metrics: () => registry.metrics(),
        objects: {
          statuses: () => objects.current,
          resources: () => resources,
          usage: usageFrom(limits, () => resources),
          guardCounts,
        },
        store:
          options.resources === undefined
            ? undefined
            : new AppliedStore({
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
      await Promise.all([backing.close(), elsewhere?.close()]);
      reconciler.close();
      prices.close();
      control.forceShutdown();
      await bridge.close();
      await bus.close();
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
      await Promise.all([llm.close(), attempts.close(), mcp.close()]);
      credentials.close();
      classifiers.close();
      relay.close();
      // After the last call that could still be settled, and the last refusal.
      await refusals?.close();
      await Promise.all([limits.close(), writer?.close()]);
      await rm(options.controlSocket, { force: true });
      process.off("unhandledRejection", onRejection);
    },
  };
}

/** Returns the ids of all classifiers that a policy uses. */
function classifierIds({ agentsByTokenHash, keysByHash }: PolicySnapshot): ReadonlySet<string> {
  const callers = [
    ...agentsByTokenHash.values(),
    ...[...keysByHash.values()].map(({ key }) => key),
  ];
  return new Set(callers.flatMap(({ guards }) => guards.map(({ classifier }) => classifier.id)));
}

function registerResourceMetrics(registry: Registry, calls: CallRegistry, llm: StreamServer): void {
  const activeCalls: Gauge = new Gauge({
    name: "svc_llm_active_calls",
    help: "LLM calls under way.",
    registers: [registry],
    collect: () => activeCalls.set(calls.size),
  });
  const roundTrip: Gauge = new Gauge({
    name: "svc_envoy_round_trip_seconds",
    help: "Last round trip between this process and Envoy's slowest worker.",
    registers: [registry],
    collect: () => roundTrip.set(llm.roundTripMs() / 1_000),
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
