/**
 * Test helpers for the binding proxy: an authorizer with one binding to a service with configurable
 * actions and resources, and an audit chain that captures its records.
 */
import { Registry } from "prom-client";
import type { AppendOutcome, AuditEvent } from "../audit/event.ts";
import { RefusalLog } from "../audit/refusals/refusals.ts";
import type { AuditSink, AuditState } from "../audit/sink.ts";
import type { AuthzReply, AuthzRequest } from "../envoy/ext-authz/wire.ts";
import { CapturedLog, FakeClock } from "../platform/testing.ts";
import {
  type ActionResolution,
  type Injection,
  NO_INJECTION,
  type ProviderInstance,
  type ProviderPlugin,
} from "../providers/contract.ts";
import type { BindingSpec } from "../resources/binding-spec.ts";
import { Authorizer, type ListenerName } from "./authorizer.ts";
import { type BindingSnapshot, compileBindingPolicy, compileSnapshot } from "./binding.ts";
import { BindingMetrics } from "./metrics.ts";
import { SERVICE_CALL } from "./service-call.ts";

export const HOST = "api.service.example";

/**
 * FakeSink captures its events; the outcome of a record is `outcome`, reported at once unless
 * `hold` is set.
 */
export class FakeSink implements AuditSink {
  readonly events: AuditEvent[] = [];
  refusing = false;
  state: AuditState = "ok";
  outcome: AppendOutcome = "committed";
  /** While true, the outcome of awaited records is not reported. */
  hold = false;
  /** Number of records with a waiter. */
  awaited = 0;

  append(event: AuditEvent, done?: (outcome: AppendOutcome) => void): void {
    this.events.push(event);
    if (done === undefined) return;
    this.awaited += 1;
    if (!this.hold) done(this.outcome);
  }

  get fields(): AuditEvent["fields"][] {
    return this.events.map(({ fields }) => fields);
  }
}

export class TestSidecar {
  readonly clock = new FakeClock();
  readonly captured: CapturedLog;
  readonly registry = new Registry();
  readonly audit = new FakeSink();
  readonly refusals: RefusalLog;
  readonly authorizer: Authorizer;
  /** Resolution of every request by the plugin. */
  resolution: ActionResolution = {
    kind: "resolved",
    actions: [{ action: "things:read", resources: [{ kind: "none" }] }],
  };
  /** Injection of every request. */
  inject: () => Injection | Promise<Injection> = () => NO_INJECTION;
  /** Query parameters that are credentials of the service. */
  readonly credentialQuery: string[] = [];
  /** Address of the real endpoint; undefined if DNS has none. */
  upstream: string | undefined = "192.0.2.1:443";
  readonly #snapshot: BindingSnapshot;

  constructor(
    policy: Partial<BindingSpec["policy"]> = {},
    audit: Partial<BindingSpec["audit"]> = {},
    scope: BindingSpec["scope"] = {},
    logLevel = "trace",
  ) {
    this.captured = new CapturedLog(logLevel);
    this.refusals = new RefusalLog({
      sink: this.audit,
      of: SERVICE_CALL,
      clock: this.clock,
      log: this.captured.log,
      registry: this.registry,
    });
    const spec = {
      name: "service",
      type: "github",
      auth: { type: "api-key", env: {} },
      config: {},
      policy: { allow: undefined, deny: [], httpRules: [], ...policy },
      scope,
      audit: { enforcement: "enforce", logRequests: false, ...audit },
    } as BindingSpec;
    const instance: ProviderInstance = {
      resolveAction: () => this.resolution,
      injectCredentials: () => this.inject(),
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      refreshToken: () => Promise.resolve(),
    };
    const plugin = {
      providerName: "github",
      scopeKeys: { projects: "Projects" },
      scopeIgnoresCase: false,
      credentialHeaders: [],
      credentialQuery: this.credentialQuery,
    } as unknown as ProviderPlugin;
    this.#snapshot = compileSnapshot("1", "default/tester", [
      {
        name: "service",
        plugin,
        instance,
        hosts: [HOST],
        policy: compileBindingPolicy(spec, plugin),
      },
    ]);
    this.authorizer = new Authorizer({
      snapshot: () => this.#snapshot,
      clock: this.clock,
      log: this.captured.log,
      audit: this.audit,
      refusals: this.refusals,
      metrics: new BindingMetrics(this.registry),
      resolve: () => Promise.resolve(this.upstream),
    });
  }

  check(
    request: Partial<AuthzRequest> = {},
    listener: ListenerName = "https",
  ): Promise<AuthzReply> {
    const whole = {
      method: "GET",
      path: "/things",
      authority: HOST,
      scheme: listener,
      headers: [],
      body: Buffer.alloc(0),
      serverName: listener === "https" ? HOST : "",
      ...request,
    };
    return this.authorizer.check(whole, listener);
  }
}
