/** Prometheus metrics of the MCP gateway. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { LabelBound } from "../../platform/label-bound.ts";
import type { TokenOutcome } from "./client-credentials.ts";
import type { ToolCall } from "./trail.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Maximum number of names of a provider with a label of their own; callers may send any name. */
const TOOLS_PER_PROVIDER = 200;
const METHODS_PER_PROVIDER = 50;

export class McpMetrics {
  readonly #tools = new LabelBound(TOOLS_PER_PROVIDER);
  readonly #methods = new LabelBound(METHODS_PER_PROVIDER);
  readonly #calls: Counter;
  readonly #seconds: Histogram;
  readonly #messages: Counter;
  readonly #refused: Counter;
  readonly #streams: Gauge;
  #active = 0;
  readonly #tokens: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#calls = new Counter({
      name: "svc_mcp_tool_calls_total",
      help: "Calls of tools by outcome: allowed, denied, or audited (denied, but forwarded).",
      labelNames: ["workload", "provider", "tool", "outcome"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "svc_mcp_tool_call_duration_seconds",
      help: "Time from the request of a tool's call to the end of its answer.",
      labelNames: ["provider", "tool"],
      buckets: SECONDS,
      registers,
    });
    this.#messages = new Counter({
      name: "svc_mcp_messages_total",
      help: "Messages of clients that were forwarded, by method; answers have the method `answer`.",
      labelNames: ["provider", "method"],
      registers,
    });
    this.#refused = new Counter({
      name: "svc_mcp_refused_total",
      help: "Requests that were refused, by the code of the error.",
      labelNames: ["code"],
      registers,
    });
    this.#streams = new Gauge({
      name: "svc_mcp_open_streams",
      help: "Answers of MCP servers that are being streamed.",
      registers,
    });
    this.#tokens = new Counter({
      name: "svc_mcp_token_requests_total",
      help: "Requests for access tokens of MCP servers: issued, refused, or failed.",
      labelNames: ["provider", "outcome"],
      registers,
    });
  }

  /** Number of forwarded requests whose answers are not complete, without endless streams. */
  get active(): number {
    return this.#active;
  }

  /** A request is forwarded. @returns a function to call once its answer has ended */
  begin(): () => void {
    this.#active += 1;
    return () => {
      this.#active -= 1;
    };
  }

  called(call: ToolCall): void {
    const { provider, caller, allowed, enforcement, durationMs } = call;
    const tool = this.#tools.bound(provider, call.tool);
    const outcome = allowed ? "allowed" : enforcement === "audit" ? "audited" : "denied";
    this.#calls.inc({ workload: caller.workload, provider, tool, outcome });
    if (outcome !== "denied") this.#seconds.observe({ provider, tool }, durationMs / 1_000);
  }

  forwarded(provider: string, method: string): void {
    this.#messages.inc({ provider, method: this.#methods.bound(provider, method) });
  }

  refused(code: string): void {
    this.#refused.inc({ code });
  }

  streamOpened(): void {
    this.#streams.inc();
  }

  streamClosed(): void {
    this.#streams.dec();
  }

  tokenRequested(provider: string, outcome: TokenOutcome): void {
    this.#tokens.inc({ provider, outcome });
  }
}
