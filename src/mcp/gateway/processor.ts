/**
 * McpProcessor is the MCP gateway as Envoy's external processor: one stream a request.
 *
 *   request headers   who calls, which server, which session       -> go on, or refuse
 *   request body      parse, judge every message, count            -> send it on its way
 *   response          see answer.ts
 *
 * It serves the Streamable HTTP transport of every revision. Requests of the older transport are
 * identified here, and go to the bridge (`mcp/bridge`), which calls this processor again.
 */
import { callerName, ANONYMOUS } from "../../access/caller.ts";
import { type ClientAddress, UNKNOWN_ADDRESS } from "../../access/client-address.ts";
import { CREDENTIAL_HEADERS } from "../../access/credentials.ts";
import { publicError } from "../../access/errors.ts";
import { identify } from "../../access/identity.ts";
import { refuse, Refusal } from "../../access/refusal.ts";
import {
  InternalHeader,
  localCluster,
  MCP_SERVERS_BRIDGE,
  mcpCluster,
} from "../../envoy/config/names.ts";
import type { HeaderChanges, HeaderMap, Phase } from "../../envoy/ext-proc/messages.ts";
import type { Exchange, Processor } from "../../envoy/ext-proc/server.ts";
import type { Limits } from "../../limits/contract.ts";
import type { FairShare } from "../../limits/load/fair-share.ts";
import type { TimeSource } from "../../platform/clock.ts";
import { clientText } from "../../platform/client-text.ts";
import type {
  AccessKeyPolicy,
  CallerPolicy,
  McpServerPolicy,
  PolicySnapshot,
} from "../../policy/snapshot.ts";
import { contentProblem, MAX_MESSAGE_BYTES } from "../protocol/content.ts";
import {
  type ClientMessage,
  idsOf,
  type Frame,
  FrameError,
  parseFrame,
} from "../protocol/frame.ts";
import { McpPolicy } from "../protocol/item-policy.ts";
import { judgeFrame, type JudgedFrame } from "../protocol/judge.ts";
import { mismatch } from "../protocol/mirror-headers.ts";
import { LISTEN_METHOD, type ItemKind, McpHeader } from "../protocol/names.ts";
import type { SessionSeal } from "../protocol/seal.ts";
import { admitRequests } from "./admission.ts";
import { eventContext, McpAnswer } from "./answer.ts";
import { CredentialError, type CredentialHeader, type McpCredentials } from "./credentials.ts";
import type { McpMetrics } from "./metrics.ts";
import { checkOrigin, type OriginRules } from "./origin.ts";
import { McpRefusal, refusalReply } from "./refuse.ts";
import { type McpRoute, parseMcpRoute } from "./route.ts";
import { type McpTrail, recordedArguments, type ToolCall } from "./trail.ts";

export interface McpProcessorOptions {
  readonly policy: () => PolicySnapshot;
  readonly clientAddress: ClientAddress;
  readonly origins: OriginRules;
  readonly limits: Limits;
  readonly share: FairShare;
  readonly seal: SessionSeal;
  readonly credentials: McpCredentials;
  readonly trail: McpTrail;
  readonly metrics: McpMetrics;
  readonly clock: TimeSource;
  readonly newCallId: () => string;
  /** Time that an upload has, in milliseconds. */
  readonly uploadMs: number;
}

/** Delay before the next try of a caller above its share. */
const RETRY_MS = 1_000;

/** A request that has been let in by its headers. */
interface Entered {
  readonly route: McpRoute;
  readonly method: "POST" | "GET" | "DELETE";
  readonly headers: HeaderMap;
  readonly caller: AccessKeyPolicy;
  readonly server: McpServerPolicy;
  readonly policy: McpPolicy;
  /** Whom sessions belong to. */
  readonly owner: string;
  readonly session: { readonly sealed: string; readonly own: string } | undefined;
}

const POLICIES = new WeakMap<AccessKeyPolicy, WeakMap<McpServerPolicy, McpPolicy>>();

export class McpProcessor implements Processor {
  readonly #exchange: Exchange;
  readonly #options: McpProcessorOptions;
  readonly #snapshot: PolicySnapshot;
  readonly #callId: string;
  readonly #startedAt: number;
  #path = "";
  #address = UNKNOWN_ADDRESS;
  #caller: CallerPolicy | undefined;
  #entered: Entered | undefined;
  #cancelDeadline: (() => void) | undefined;
  #answer: McpAnswer | undefined;
  /** Calls of tools that were forwarded and are not recorded yet. */
  #calls: readonly ToolCall[] = [];
  #requestBytes = 0;
  #isStream = false;
  /** Ends the request that is under way. */
  #finish: (() => void) | undefined;
  #closed = false;
  #cors: NonNullable<HeaderChanges["set"]> = [];

  constructor(exchange: Exchange, options: McpProcessorOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#snapshot = options.policy();
    this.#callId = options.newCallId();
    this.#startedAt = options.clock.monotonic();
  }

  phase(phase: Phase): void {
    switch (phase.kind) {
      case "request_headers":
        return this.#requestHeaders(phase.headers, phase.endOfStream);
      case "request_body":
        return this.#requestBody(phase.body);
      case "response_headers":
        if (this.#answer === undefined) return this.#exchange.pass(phase.kind);
        return this.#answer.headers(phase.headers, phase.endOfStream);
      case "response_body":
        if (this.#answer === undefined) return this.#exchange.pass(phase.kind);
        return this.#answer.body(phase.body, phase.endOfStream);
      case "request_trailers":
      case "response_trailers":
        return this.#exchange.pass(phase.kind);
    }
  }

  closed(): void {
    this.#closed = true;
    this.#cancelDeadline?.();
    this.#finish?.();
    if (this.#isStream) this.#options.metrics.streamClosed();
    this.#record("interrupted", this.#answer?.status, this.#answer?.bytes ?? 0, () => undefined);
  }

  #requestHeaders(headers: HeaderMap, endOfStream: boolean): void {
    const path = headers.get(":path") ?? "";
    this.#path = path.split("?", 1)[0] ?? "";
    this.#address = this.#options.clientAddress(
      headers.get(InternalHeader.peer),
      headers.get("x-forwarded-for"),
    );
    const entered = this.#enter(parseMcpRoute(path), headers, endOfStream);
    const name = callerName(this.#caller);
    this.#exchange.chargeTo((ms) => this.#options.share.charge(name, ms));
    const turn = this.#options.share.enter(name, 0);
    if (turn === undefined) return this.#admitted(entered, endOfStream);
    this.#exchange.when(turn, (isAdmitted) => {
      if (this.#closed) return;
      if (isAdmitted || name === ANONYMOUS) this.#admitted(entered, endOfStream);
      else this.#refuse(aboveShare());
    });
  }

  #admitted(entered: Entered | Refusal | "preflight", endOfStream: boolean): void {
    if (entered === "preflight") return this.#exchange.respond(this.#preflight());
    if (entered instanceof Refusal) return this.#refuse(entered);
    this.#entered = entered;
    if (entered.route.endpoint !== "streamable") return this.#toBridge(entered);
    if (endOfStream) return this.#forward(entered, undefined);
    this.#cancelDeadline = this.#exchange.after(this.#options.uploadMs, () =>
      this.#refuse(refuse("request_timeout", "The body did not arrive in time.")),
    );
    this.#exchange.pass("request_headers");
  }

  /** Checks everything that the headers say. */
  #enter(
    route: McpRoute | undefined,
    headers: HeaderMap,
    endOfStream: boolean,
  ): Entered | Refusal | "preflight" {
    const { origins, clock, seal, trail } = this.#options;
    if (route === undefined) return refuse("not_found", "The gateway has no such path.");
    const origin = headers.get("origin");
    const foreign = checkOrigin(origin, headers.get(":authority") ?? "", origins);
    if (foreign !== undefined) return foreign;
    if (origin !== undefined) this.#cors = corsHeaders(origin);
    const method = headers.get(":method") ?? "";
    if (method === "OPTIONS" && origin !== undefined) return "preflight";
    const identity = identify(this.#snapshot, {
      audience: "external",
      headers,
      query: route.query,
      address: this.#address,
      now: clock.now(),
    });
    if (identity.kind === "refused") {
      return new Refusal(identity.error, { policy: identity.policy });
    }
    const caller = identity.policy;
    this.#caller = caller;
    if (caller.kind !== "key") return refuse("wrong_surface", "Use an access key here.");
    const server = this.#serverOf(caller, route.server);
    if (server instanceof Refusal) return server;
    if (!isMethod(method) || (route.endpoint === "message" && method !== "POST"))
      return refuse("method_not_allowed", "Use POST, GET or DELETE here.");
    if (route.endpoint === "sse" && method !== "GET")
      return refuse("method_not_allowed", "Use GET here.");
    if (trail.refusing)
      return refuse("audit_unavailable", "The audit log cannot be written. Try again.");
    const malformed = method === "POST" ? checkBody(headers, endOfStream) : undefined;
    if (malformed !== undefined) return malformed;
    const owner = JSON.stringify([caller.namespace, caller.name, server.key]);
    const sealed = headers.get(McpHeader.session);
    const own = sealed === undefined ? undefined : seal.open(owner, sealed);
    if (sealed !== undefined && own === undefined) return unknownSession();
    const session = sealed === undefined || own === undefined ? undefined : { sealed, own };
    const policy = policyOf(caller, server);
    return { route, method, headers, caller, server, policy, owner, session };
  }

  #serverOf(caller: AccessKeyPolicy, name: string): McpServerPolicy | Refusal {
    const { mcpServers, closedMcpServers } = this.#snapshot;
    const key = `${caller.namespace}/${name}`;
    if (caller.mcp?.provider !== name) {
      return mcpServers.has(key) || closedMcpServers.has(key)
        ? refuse("server_not_allowed", `The access key is not for the MCP server ${name}.`)
        : refuse("server_not_found", `There is no MCP server ${name}.`);
    }
    const server = mcpServers.get(key);
    if (server !== undefined) return server;
    return closedMcpServers.has(key)
      ? refuse("server_not_ready", `The Provider ${name} is not ready; see its status.`)
      : refuse("server_not_found", `There is no MCP server ${name}.`);
  }

  #requestBody(body: Buffer): void {
    this.#cancelDeadline?.();
    const entered = this.#entered;
    if (entered === undefined) return this.#exchange.fail();
    if (entered.route.endpoint !== "streamable") return this.#exchange.pass("request_body");
    if (body.length > MAX_MESSAGE_BYTES) return this.#refuse(tooLarge());
    this.#requestBytes = body.length;
    let frame: Frame;
    let judged: JudgedFrame;
    try {
      frame = parseFrame(body);
      judged = judgeFrame(frame, entered.policy);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      return this.#refuse(McpRefusal.ofFrame(error));
    }
    const differs = mismatch(frame, entered.headers);
    if (differs !== undefined) {
      const refusal = refuse("header_mismatch", differs);
      return this.#refuse(new McpRefusal(refusal, { ids: idsOf(frame) }));
    }
    if (judged.denied !== undefined && !entered.server.auditOnly) {
      return this.#deny(frame, judged.denied, entered);
    }
    this.#count(frame, judged, entered);
  }

  /** Counts the requests of a frame against the daily limits, and forwards it. */
  #count(frame: Frame, judged: JudgedFrame, entered: Entered): void {
    const { caller, server } = entered;
    const requests = idsOf(frame).length;
    const now = this.#options.clock.now();
    const counted = { caller, server, callId: this.#callId, requests, now };
    const go = (refusal: Refusal | undefined): void => {
      if (this.#closed) return;
      if (refusal !== undefined)
        return this.#refuse(new McpRefusal(refusal, { ids: idsOf(frame), isBatch: frame.isBatch }));
      this.#calls = this.#callsOf(judged, entered);
      this.#forward(entered, { frame, judged });
    };
    const admission = requests === 0 ? undefined : admitRequests(this.#options.limits, counted);
    if (admission instanceof Promise) this.#exchange.when(admission, go);
    else go(admission);
  }

  /** Adds the credential and sends the request to the server, or to the bridge in its place. */
  #forward(
    entered: Entered,
    content: { readonly frame: Frame; readonly judged: JudgedFrame } | undefined,
  ): void {
    const lastEventId = entered.headers.get(McpHeader.lastEventId);
    const eventId =
      lastEventId === undefined
        ? undefined
        : this.#options.seal.unwrapEvent(
            eventContext(entered.owner, entered.session?.own),
            lastEventId,
          );
    if (lastEventId !== undefined && eventId === undefined) {
      const message = "The event of Last-Event-ID is not of this session.";
      return this.#refuse(refuse("invalid_request", message));
    }
    const send = (credential: CredentialHeader | undefined): void => {
      if (this.#closed) return;
      this.#send(entered, content, { credential, eventId });
    };
    try {
      const credential = this.#options.credentials.headerOf(entered.server);
      if (!(credential instanceof Promise)) return send(credential);
      this.#exchange.when(
        credential.catch((error: unknown) => asRefusal(error)),
        (value) => {
          if (value instanceof Refusal) this.#refuse(value);
          else send(value);
        },
      );
    } catch (error) {
      this.#refuse(asRefusal(error));
    }
  }

  #send(
    entered: Entered,
    content: { readonly frame: Frame; readonly judged: JudgedFrame } | undefined,
    {
      credential,
      eventId,
    }: { readonly credential: CredentialHeader | undefined; readonly eventId: string | undefined },
  ): void {
    const { server, session, policy, owner, method, route } = entered;
    const { metrics } = this.#options;
    if (content?.frame.messages.some(endsByItself) === true) this.#finish = metrics.begin();
    for (const message of content?.frame.messages ?? []) {
      metrics.forwarded(route.server, message.kind === "answer" ? "answer" : message.method);
    }
    const isOpen = (["tools", "prompts", "resources"] as const).every((kind: ItemKind) =>
      policy.isOpen(kind),
    );
    this.#answer = new McpAnswer(
      this.#exchange,
      {
        callId: this.#callId,
        method,
        owner,
        session,
        policy,
        // A resumed stream may hold any answer of its session.
        filters:
          !server.auditOnly &&
          (content === undefined ? method === "GET" && !isOpen : content.judged.lists.length > 0),
        recorded: this.#calls.length > 0,
        ids: content === undefined ? [] : idsOf(content.frame),
        cors: this.#cors,
      },
      this.#options.seal,
      {
        refuse: (refusal) => this.#refuse(refusal),
        unauthorized: () => this.#options.credentials.refused(server),
        complete: (status, bytes, proceed) => this.#record("complete", status, bytes, proceed),
        streamed: () => {
          this.#isStream = true;
          metrics.streamOpened();
        },
      },
    );
    const own = new Set([credential?.[0]]);
    const isBridged = server.transport === "sse";
    this.#exchange.proceed(content === undefined ? "request_headers" : "request_body", {
      clearRouteCache: true,
      headers: {
        set: [
          [":path", server.path],
          [":authority", authorityOf(server)],
          [
            InternalHeader.server,
            isBridged ? localCluster(MCP_SERVERS_BRIDGE.name) : mcpCluster(server),
          ],
          ...(isBridged
            ? ([
                [InternalHeader.mcpEgress, mcpCluster(server)],
                [InternalHeader.mcpOwner, owner],
              ] as const)
            : []),
          ...(session === undefined ? [] : [[McpHeader.session, session.own] as const]),
          ...(eventId === undefined ? [] : [[McpHeader.lastEventId, eventId] as const]),
          ...(credential === undefined
            ? []
            : [credential, [InternalHeader.credential, credential[0]] as const]),
        ],
        remove: [
          ...CREDENTIAL_HEADERS.filter((name) => !own.has(name)),
          ...(isBridged ? [] : [InternalHeader.mcpOwner]),
        ],
      },
    });
  }

  /** The older transport: the bridge calls the gateway again, with the client's own key. */
  #toBridge({ owner }: Entered): void {
    this.#exchange.proceed("request_headers", {
      headers: { set: [[InternalHeader.mcpOwner, owner]] },
    });
  }

  #callsOf({ used }: JudgedFrame, { caller, server, policy }: Entered): readonly ToolCall[] {
    return used
      .filter(({ kind }) => kind === "tools")
      .map(({ name, message }) => ({
        arguments: server.recordsArguments ? recordedArguments(message.params) : undefined,
        caller,
        callId: this.#callId,
        address: this.#address,
        provider: server.name,
        tool: name,
        allowed: policy.deny("tools", name) === undefined,
        enforcement: server.auditOnly ? "audit" : "enforce",
        status: undefined,
        code: undefined,
        end: "complete",
        durationMs: 0,
        requestBytes: this.#requestBytes,
        responseBytes: 0,
      }));
  }

  /** Records the calls that were forwarded, once. */
  #record(
    end: ToolCall["end"],
    status: number | undefined,
    responseBytes: number,
    recorded: (ok: boolean) => void,
    code?: string,
  ): void {
    const calls = this.#calls;
    this.#calls = [];
    if (calls.length === 0) return recorded(true);
    const durationMs = this.#elapsedMs();
    const ended = calls.map((call) => ({ ...call, end, status, code, responseBytes, durationMs }));
    for (const call of ended) this.#options.metrics.called(call);
    this.#options.trail.record(ended, (ok) => {
      if (!this.#closed) this.#exchange.guard(recorded)(ok);
    });
  }

  #deny(frame: Frame, denied: NonNullable<JudgedFrame["denied"]>, entered: Entered): void {
    const { kind, name, message } = denied;
    const what = { tools: "tool", prompts: "prompt", resources: "resource" }[kind];
    const error = publicError(
      "tool_not_allowed",
      `The ${what} ${clientText(name)} is not allowed by the policy of the MCP server ` +
        `${entered.server.name}.`,
    );
    const refusal = new McpRefusal(new Refusal(error), {
      ids: idsOf(frame),
      isBatch: frame.isBatch,
      isAnswer: true,
    });
    if (kind !== "tools") return this.#refuse(refusal);
    const call: ToolCall = {
      arguments: entered.server.recordsArguments ? recordedArguments(message.params) : undefined,
      caller: entered.caller,
      callId: this.#callId,
      address: this.#address,
      provider: entered.server.name,
      tool: name,
      allowed: false,
      enforcement: "enforce",
      status: error.status,
      code: error.code,
      end: "refused",
      durationMs: this.#elapsedMs(),
      requestBytes: this.#requestBytes,
      responseBytes: 0,
    };
    this.#options.metrics.called(call);
    this.#options.trail.denied(call);
    this.#options.metrics.refused(error.code);
    this.#exchange.respond(refusalReply(refusal, this.#callId, this.#cors));
  }

  #refuse(refusal: Refusal): void {
    this.#cancelDeadline?.();
    const { error } = refusal;
    this.#options.metrics.refused(error.code);
    if (this.#calls.length > 0) {
      this.#record("refused", error.status, 0, () => undefined, error.code);
    } else {
      this.#options.trail.refused({
        error,
        origin: {
          policy: refusal.policy ?? this.#caller,
          address: this.#address,
          model: undefined,
          path: this.#path,
        },
      });
    }
    this.#exchange.respond(refusalReply(refusal, this.#callId, this.#cors));
  }

  #preflight() {
    return {
      status: 204,
      headers: {
        set: [
          ...this.#cors,
          ["access-control-allow-methods", "POST, GET, DELETE"] as const,
          [
            "access-control-allow-headers",
            "authorization, content-type, accept, last-event-id, mcp-session-id, " +
              "mcp-protocol-version, mcp-method, mcp-name",
          ] as const,
          ["access-control-max-age", "600"] as const,
        ],
      },
      body: "",
    };
  }

  #elapsedMs(): number {
    return Math.max(0, Math.round(this.#options.clock.monotonic() - this.#startedAt));
  }
}

function policyOf(caller: AccessKeyPolicy, server: McpServerPolicy): McpPolicy {
  let ofServers = POLICIES.get(caller);
  if (ofServers === undefined) POLICIES.set(caller, (ofServers = new WeakMap()));
  let policy = ofServers.get(server);
  if (policy === undefined) {
    policy = new McpPolicy(server.lists, ...(caller.mcp === undefined ? [] : [caller.mcp.lists]));
    ofServers.set(server, policy);
  }
  return policy;
}

/** Returns whether a message gets an answer that ends; a stream of notifications does not. */
function endsByItself(message: ClientMessage): boolean {
  return message.kind === "request" && message.method !== LISTEN_METHOD;
}

function isMethod(method: string): method is "POST" | "GET" | "DELETE" {
  return method === "POST" || method === "GET" || method === "DELETE";
}

/** Checks what the headers of a POST say of its body. */
function checkBody(headers: HeaderMap, endOfStream: boolean): Refusal | undefined {
  if (endOfStream) return refuse("invalid_request", "The request has no body.");
  if (Number(headers.get("content-length") ?? 0) > MAX_MESSAGE_BYTES) return tooLarge();
  const problem = contentProblem(headers);
  if (problem !== undefined) return refuse(problem.code, problem.message);
  return undefined;
}

function tooLarge(): Refusal {
  return refuse("body_too_large", `The message is above ${MAX_MESSAGE_BYTES} bytes.`);
}

function unknownSession(): Refusal {
  return refuse("session_not_found", "There is no such session: start a new one.");
}

function aboveShare(): Refusal {
  const { error } = refuse("fair_share_exceeded", "The gateway is busy. Try again later.");
  return new Refusal(error, { retryAfterMs: RETRY_MS });
}

function asRefusal(error: unknown): Refusal {
  if (error instanceof CredentialError) return refuse("credential_unavailable", error.message);
  throw error;
}

function authorityOf({ endpoint }: McpServerPolicy): string {
  const { host, port, tls } = endpoint;
  const name = host.includes(":") ? `[${host}]` : host;
  return port === (tls ? 443 : 80) ? name : `${name}:${port}`;
}

/** https://fetch.spec.whatwg.org/#http-cors-protocol */
function corsHeaders(origin: string): NonNullable<HeaderChanges["set"]> {
  return [
    ["access-control-allow-origin", origin],
    ["access-control-expose-headers", "mcp-session-id, mcp-protocol-version, x-svc-call-id"],
    ["vary", "Origin"],
  ];
}
