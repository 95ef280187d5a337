/**
 * Test helpers for the pipeline: a clock that tests advance, a recording exchange, policies and
 * whole calls.
 */
import type { Limits } from "../limits/contract.ts";
import type { CallOutcome, Settlement } from "./settlement/settlement.ts";
import { Writable } from "node:stream";
import { pino } from "pino";
import { Registry } from "prom-client";
import { compileClientAddress } from "../access/client-address.ts";
import { hashKey } from "../access/credentials.ts";
import type { AppendOutcome, AuditEvent } from "../audit/event.ts";
import { RefusalLog } from "../audit/refusals/refusals.ts";
import type { AuditSink, AuditState } from "../audit/sink.ts";
import type { ClassifierVerdict } from "../guard/classifier-client.ts";
import { Guards } from "../guard/guards.ts";
import { GuardMetrics } from "../guard/metrics.ts";
import { GuardTrail } from "../guard/trail.ts";
import { RequestGuard } from "../envoy/ext-proc/request-guard.ts";
import type { Exchange, Processor } from "../envoy/ext-proc/server.ts";
import type {
  ContinueReply,
  HeaderChanges,
  HeaderMap,
  ImmediateReply,
  Phase,
  PhaseKind,
} from "../envoy/ext-proc/messages.ts";
import { BytesInFlight } from "../limits/load/bytes-in-flight.ts";
import { FairShare } from "../limits/load/fair-share.ts";
import { createLimits } from "../limits/limits.ts";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import { Secret } from "../platform/secret.ts";
import type {
  AccessKeyPolicy,
  AgentLimits,
  AgentPolicy,
  ModelGrant,
  PolicySnapshot,
  ProviderKind,
  ModelProviderPolicy,
} from "../policy/snapshot.ts";
import { createPriceBook } from "../pricing/price-book.ts";
import { Accounting } from "./settlement/accounting.ts";
import { AttemptProcessor } from "./attempts/attempt-processor.ts";
import { AuditTrail, LLM_REFUSED } from "./settlement/audit-trail.ts";
import type { Call } from "./call.ts";
import { CallLog } from "./settlement/call-log.ts";
import { CallRegistry } from "./call-registry.ts";
import { ExpectedDemand } from "./request/expected-demand.ts";
import { LlmMetrics } from "./settlement/metrics.ts";
import { LlmProcessor } from "./processor.ts";
import type { Relay } from "./attempts/relay.ts";
import { chat } from "./testing-samples.ts";

export const TOKEN = "svcw_the-agents-own-token";

export type Answer =
  | { readonly kind: "pass"; readonly phase: PhaseKind }
  | { readonly kind: "proceed"; readonly phase: PhaseKind; readonly reply: ContinueReply }
  | { readonly kind: "trailers"; readonly phase: PhaseKind; readonly changes: HeaderChanges }
  | { readonly kind: "respond"; readonly reply: ImmediateReply }
  | { readonly kind: "fail" };

export class RecordingExchange implements Exchange {
  readonly answers: Answer[] = [];
  readonly #guard: RequestGuard;

  constructor(gateway: Pick<Gateway, "clock" | "defects">) {
    this.#guard = new RequestGuard(gateway.clock, (error) => {
      gateway.defects.push(error);
      this.fail();
    });
  }

  /** Notified of the end of the exchange, as by the server. */
  processor: Processor | undefined;

  /** Runs phases under the guard, as the server does. */
  phase(phase: Phase): void {
    this.#guard.run(() => this.processor?.phase(phase));
  }

  guard<A extends readonly unknown[]>(callback: (...args: A) => void): (...args: A) => void {
    return this.#guard.guard(callback);
  }

  after(ms: number, callback: () => void): () => void {
    return this.#guard.after(ms, callback);
  }

  when<T>(promise: Promise<T>, callback: (value: T) => void): void {
    this.#guard.when(promise, callback);
  }

  chargeTo(charge: (ms: number) => void): void {
    this.#guard.chargeTo(charge);
  }

  pass(phase: PhaseKind): void {
    this.answers.push({ kind: "pass", phase });
  }

  proceed(phase: PhaseKind, reply: ContinueReply): void {
    this.answers.push({ kind: "proceed", phase, reply });
  }

  trailers(phase: "request_trailers" | "response_trailers", changes: HeaderChanges): void {
    this.answers.push({ kind: "trailers", phase, changes });
  }

  respond(reply: ImmediateReply): void {
    this.answers.push({ kind: "respond", reply });
  }

  fail(): void {
    this.answers.push({ kind: "fail" });
    this.processor?.closed();
  }

  /** The only, or last, answer, which must exist. */
  get last(): Answer {
    const last = this.answers.at(-1);
    if (last === undefined) throw new Error("nothing was answered");
    return last;
  }

  /** The reply, its body in one piece. */
  get proceeded(): Omit<ContinueReply, "body"> & { readonly body?: Buffer } {
    if (this.last.kind !== "proceed")
      throw new Error(`not proceeded: ${JSON.stringify(this.last)}`);
    const { body, ...reply } = this.last.reply;
    return body === undefined ? reply : { ...reply, body: Buffer.concat([body].flat()) };
  }

  get responded(): {
    readonly status: number;
    readonly headers: Map<string, string>;
    readonly body: string;
  } {
    if (this.last.kind !== "respond")
      throw new Error(`not responded: ${JSON.stringify(this.last)}`);
    const { status, headers, body } = this.last.reply;
    return { status, headers: new Map(headers?.set), body: body.toString() };
  }
}

const DIALECTS = {
  openai: "openai",
  "openai-compatible": "openai",
  "azure-openai": "openai",
  mock: "openai",
  anthropic: "anthropic",
  gemini: "gemini",
} as const;

const BASE_PATHS: Partial<Record<ProviderKind, string>> = {
  gemini: "/v1beta",
  "azure-openai": "/openai",
};

/**
 * Creates a provider `name`, by default of the kind of that name; its key is `sk-secret-<name>`.
 */
export function provider(
  name: string,
  overrides: Partial<ModelProviderPolicy> = {},
): ModelProviderPolicy {
  const kind =
    overrides.kind ?? (Object.hasOwn(DIALECTS, name) ? (name as ProviderKind) : "openai");
  return {
    key: `default/${name}`,
    namespace: "default",
    name,
    kind,
    dialect: DIALECTS[kind],
    endpoint: { tls: true, host: `${name}.test`, port: 443, basePath: BASE_PATHS[kind] ?? "/v1" },
    apiKey: kind === "mock" ? undefined : new Secret(`sk-secret-${name}`),
    apiVersion: undefined,
    servesResponses: kind === "openai" || kind === "azure-openai" || kind === "mock",
    retries: { attempts: 1, baseIntervalMs: 100, maxIntervalMs: 1_000, maxRetryAfterMs: 10_000 },
    firstByteTimeoutMs: 300_000,
    fallbacks: [],
    readsToEnd: false,
    translation: "lenient",
    allowedFeatures: new Set(),
    external: undefined,
    allowsModel: () => true,
    ...overrides,
  };
}

export const NO_LIMITS: AgentLimits = {
  requestsPerMinute: undefined,
  maxConcurrentRequests: undefined,
  maxTokensPerDay: undefined,
  maxTokensPerRequest: undefined,
  maxMicroUsdPerDay: undefined,
};

/**
 * Creates an agent that may use every model of `providers` as `<provider>/<model>`. All of them
 * have the model `both`.
 */
export function agent(...providers: readonly ModelProviderPolicy[]): AgentPolicy {
  const grants: ModelGrant[] = providers.map((each) => ({
    ref: `${each.name}/m`,
    provider: each,
    model: "m",
  }));
  return {
    kind: "agent",
    namespace: "default",
    name: "tester",
    workload: "default/tester",
    limits: NO_LIMITS,
    grants,
    guards: [],
    resolveModel: (name) => {
      if (name === "both")
        return { kind: "ambiguous", candidates: grants.map((grant) => grant.ref) };
      if (name === "secret-model") return { kind: "denied", reason: "Agent tester may not use it" };
      const [first, ...rest] = name.split("/");
      const found = providers.find((each) => each.name === first);
      if (found === undefined || rest.length === 0) return { kind: "unknown" };
      return { kind: "granted", grant: { ref: name, provider: found, model: rest.join("/") } };
    },
  };
}

/** External policy of a provider with external access. */
export const EXTERNAL = { maxTokensPerDay: undefined };

/** Creates an access key for every model of a provider. */
export function accessKey(
  opened: ModelProviderPolicy,
  overrides: Partial<AccessKeyPolicy> = {},
): AccessKeyPolicy {
  return {
    kind: "key",
    namespace: "default",
    name: "laptop",
    workload: "ext:laptop",
    revoked: false,
    expiresAt: undefined,
    providerKey: opened.key,
    mcp: undefined,
    limits: {
      maxTokensPerDay: undefined,
      maxRequestsPerDay: undefined,
      requestsPerMinute: undefined,
    },
    grants: [],
    guards: [],
    allowsAddress: () => true,
    allowsModel: () => true,
    resolveModel: (name) => ({
      kind: "granted",
      grant: { ref: `${opened.name}/${name}`, provider: opened, model: name },
    }),
    ...overrides,
  };
}

export function snapshot(...providers: readonly ModelProviderPolicy[]): PolicySnapshot {
  return {
    version: "test",
    agentsByTokenHash: new Map([[hashKey(TOKEN), agent(...providers)]]),
    keysByHash: new Map(),
    providers: new Map(providers.map((each) => [each.key, each])),
    mcpServers: new Map(),
    closedMcpServers: new Map(),
  };
}

export interface LogLine {
  readonly [field: string]: unknown;
}

/** An audit chain that captures its records. */
export class FakeAudit implements AuditSink {
  readonly events: AuditEvent[] = [];
  refusing = false;
  state: AuditState = "ok";
  /** Outcome of the next records. */
  outcome: AppendOutcome = "committed";
  /** While true, the outcome of records is not reported: see {@link release}. */
  hold = false;
  /** Number of records with a waiter. */
  awaited = 0;
  readonly #held: (() => void)[] = [];

  append(event: AuditEvent, done?: (outcome: AppendOutcome) => void): void {
    this.events.push(event);
    if (done !== undefined) this.awaited += 1;
    const tell = (): void => done?.(this.outcome);
    if (this.hold) this.#held.push(tell);
    else tell();
  }

  release(): void {
    this.hold = false;
    for (const tell of this.#held.splice(0)) tell();
  }

  ofType(type: string): AuditEvent["fields"][] {
    return this.events.filter((event) => event.type === type).map(({ fields }) => fields);
  }
}

/** The verdict about a harmless text. */
export const BENIGN: ClassifierVerdict = {
  kind: "scores",
  scores: { benign: 1, injection: 0, jailbreak: 0 },
};

/** Everything that calls share, connected as in `gateway/service.ts`. */
export class Gateway {
  readonly clock = new FakeClock();
  readonly calls = new CallRegistry();
  readonly registry = new Registry();
  readonly metrics = new LlmMetrics(this.registry);
  readonly audit = new FakeAudit();
  readonly refusals: RefusalLog;
  readonly trail: AuditTrail;
  readonly limits: Limits;
  readonly guards: Guards;
  /** The classifier of every guard: its verdict about a text. */
  classify: (text: string) => ClassifierVerdict | Promise<ClassifierVerdict> = () => BENIGN;
  readonly bytes = new BytesInFlight({
    total: 1 << 30,
    perCaller: 1 << 29,
    registry: this.registry,
  });
  readonly share = new FairShare({
    clock: this.clock,
    registry: this.registry,
    utilization: () => this.utilization,
  });
  /** The relay of providers whose answers are read to the end; by default there is none. */
  relay: Pick<Relay, "claim"> | undefined;
  /** Utilization of the event loop: 0 to 1. */
  utilization = 0;
  readonly defects: unknown[] = [];
  /** Proxies whose `x-forwarded-for` is trusted. */
  trustedProxies: readonly string[] = [];
  /**
   * One dollar per million input tokens, ten per million output tokens; other models have no price.
   */
  readonly prices = createPriceBook({ m: { input: "1", cachedInput: "0.5", output: "10" } });
  readonly logText: string[] = [];
  readonly accounting: Accounting;
  policy: PolicySnapshot;
  #ids = 0;

  constructor(...providers: readonly ModelProviderPolicy[]) {
    this.policy = snapshot(...providers);
    const destination = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        this.logText.push(chunk.toString());
        done();
      },
    });
    const log = pino({ level: "trace" }, destination);
    const { audit, clock, registry } = this;
    this.refusals = new RefusalLog({ sink: audit, of: LLM_REFUSED, clock, log, registry });
    this.trail = new AuditTrail({ sink: audit, refusals: this.refusals });
    this.guards = new Guards({
      classifiers: { ask: (_, text) => this.classify(text) },
      trail: new GuardTrail({ sink: audit, refusals: this.refusals }),
      metrics: new GuardMetrics(registry),
      clock,
    });
    this.limits = createLimits({
      clock: this.clock,
      // Its warning about the missing store belongs to no call.
      log: new CapturedLog().log,
      registry: this.registry,
      processId: "p1",
    });
    this.accounting = new Accounting({
      clock: this.clock,
      prices: () => this.prices,
      limits: this.limits,
      observers: [this.metrics, new CallLog(log)],
      recorder: this.trail,
    });
  }

  settle(call: Call, outcome: CallOutcome): Settlement {
    let told: Settlement | undefined;
    this.accounting.settle(call, outcome, (settlement) => (told = settlement));
    if (told === undefined) throw new Error("not told");
    return told;
  }

  get log(): LogLine[] {
    return this.logText.map((line) => JSON.parse(line) as LogLine);
  }

  async bytesInFlight(): Promise<number | undefined> {
    return (await this.metric("svc_request_bytes_in_flight"))[0]?.value;
  }

  trip(): Trip {
    return new Trip(this);
  }

  processor(exchange: Exchange): LlmProcessor {
    return new LlmProcessor(exchange, {
      policy: () => this.policy,
      calls: this.calls,
      accounting: this.accounting,
      metrics: this.metrics,
      limits: this.limits,
      bytes: this.bytes,
      share: this.share,
      expected: new ExpectedDemand(),
      audit: this.trail,
      prices: () => this.prices,
      clientAddress: compileClientAddress(this.trustedProxies),
      uploadIdleMs: 15_000,
      clock: this.clock,
      random: () => 0.5,
      newCallId: () => `call-${++this.#ids}`,
      guards: this.guards,
      ...(this.relay !== undefined && { relay: this.relay }),
    });
  }

  /** Simulates Envoy's attempt after the first. */
  attempt(callId: string): {
    readonly exchange: RecordingExchange;
    readonly processor: AttemptProcessor;
  } {
    const exchange = new RecordingExchange(this);
    const processor = new AttemptProcessor(exchange, { calls: this.calls, share: this.share });
    processor.phase({
      kind: "request_headers",
      headers: headers({ "x-request-id": callId }),
      endOfStream: false,
    });
    return { exchange, processor };
  }

  async metric(
    name: string,
  ): Promise<
    { readonly value: number; readonly labels: Partial<Record<string, string | number>> }[]
  > {
    const found = await this.registry.getSingleMetric(name)?.get();
    return (found?.values ?? []).map(({ value, labels }) => ({ value, labels }));
  }
}

export function headers(values: Readonly<Record<string, string>>): HeaderMap {
  return new Map(Object.entries(values));
}

export interface Request {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** One HTTP request through the router-level processor. */
export class Trip {
  readonly exchange: RecordingExchange;
  readonly #gateway: Gateway;
  readonly processor: LlmProcessor;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
    this.exchange = new RecordingExchange(gateway);
    this.processor = gateway.processor(this.exchange);
    this.exchange.processor = this.processor;
  }

  /** Returns the call, which leaves the registry when it is settled. */
  call(id = "call-1"): Call {
    const call = this.#gateway.calls.get(id);
    if (call === undefined) throw new Error(`no call ${id}`);
    return call;
  }

  requestHeaders(request: Request = {}, endOfStream = false): this {
    this.exchange.phase({
      kind: "request_headers",
      headers: headers({
        ":method": "POST",
        ":path": request.path ?? "/v1/chat/completions",
        authorization: `Bearer ${TOKEN}`,
        ...request.headers,
      }),
      endOfStream,
    });
    return this;
  }

  requestBody(body: unknown): this {
    // Envoy sends no body after an immediate response.
    if (this.exchange.answers.at(-1)?.kind === "respond") return this;
    const bytes =
      typeof body === "string" || Buffer.isBuffer(body)
        ? Buffer.from(body)
        : Buffer.from(JSON.stringify(body));
    this.exchange.phase({ kind: "request_body", body: bytes, endOfStream: true });
    return this;
  }

  request(request: Request = {}): this {
    return this.requestHeaders(request).requestBody(request.body ?? chat("openai/m"));
  }

  responseHeaders(
    status: number,
    values: Readonly<Record<string, string>> = { "content-type": "application/json" },
    end = false,
  ): this {
    this.exchange.phase({
      kind: "response_headers",
      headers: headers({ ":status": String(status), ...values }),
      endOfStream: end,
    });
    return this;
  }

  responseBody(body: unknown, endOfStream = true): this {
    const bytes =
      typeof body === "string" || Buffer.isBuffer(body)
        ? Buffer.from(body)
        : Buffer.from(JSON.stringify(body));
    this.exchange.phase({ kind: "response_body", body: bytes, endOfStream });
    return this;
  }

  closed(): this {
    this.processor.closed();
    return this;
  }
}
