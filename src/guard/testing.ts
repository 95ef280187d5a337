/** Test helpers of the guard: policies, scores, texts and recorded events. */
import type { AuditEvent } from "../audit/event.ts";
import type { AgentPolicy, ClassifierPolicy, GuardPolicy } from "../policy/snapshot.ts";
import type { ClassifierVerdict } from "./classifier-client.ts";
import type { ScannedKind, ScannedText } from "./finding.ts";
import type { Scores } from "./protocol.ts";

export function classifierPolicy(overrides: Partial<ClassifierPolicy> = {}): ClassifierPolicy {
  return {
    id: "classifier-1",
    type: "stub",
    protocol: "classify",
    url: "http://127.0.0.1:1/classify",
    model: undefined,
    header: undefined,
    problem: undefined,
    ...overrides,
  };
}

/** Creates a guard that enforces, scans everything and flags scores from 0.5. */
export function guardPolicy(overrides: Partial<GuardPolicy> = {}): GuardPolicy {
  return {
    binding: "strict",
    classifier: classifierPolicy(),
    thresholds: { injection: 0.5, jailbreak: 0.5 },
    enforcement: "enforce",
    timeoutMs: 1_000,
    maxPayloadChars: 2_000,
    scan: { prompts: true, responses: true, toolResults: "all" },
    ...overrides,
  };
}

export function guardedAgent(...guards: readonly GuardPolicy[]): AgentPolicy {
  return {
    kind: "agent",
    namespace: "default",
    name: "tester",
    workload: "default/tester",
    limits: {
      requestsPerMinute: undefined,
      maxConcurrentRequests: undefined,
      maxTokensPerDay: undefined,
      maxTokensPerRequest: undefined,
      maxMicroUsdPerDay: undefined,
    },
    grants: [],
    guards,
    resolveModel: () => ({ kind: "unknown" }),
  };
}

export function scores(injection: number, jailbreak = 0): Scores {
  return { benign: 1 - Math.max(injection, jailbreak), injection, jailbreak };
}

export function judged(injection: number, jailbreak = 0): ClassifierVerdict {
  return { kind: "scores", scores: scores(injection, jailbreak) };
}

export const HUNG: ClassifierVerdict = { kind: "unavailable", failure: "timeout" };

export function scanned(
  text: string,
  kind: ScannedKind = "prompt",
  more: Partial<ScannedText> = {},
): ScannedText {
  return { text, kind, tool: undefined, param: "messages[0].content", source: text, ...more };
}

/** Fields of the events of a type, without those that are undefined. */
export function fieldsOf(
  events: readonly AuditEvent[],
  type: string,
): readonly Readonly<Record<string, unknown>>[] {
  return events
    .filter((event) => event.type === type)
    .map(({ fields }) => JSON.parse(JSON.stringify(fields)) as Record<string, unknown>);
}
