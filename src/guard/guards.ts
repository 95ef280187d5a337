/**
 * Guards scans the texts of calls by the guards of their callers. A classifier never blocks traffic
 * by failing: what it does not judge is forwarded, recorded and counted.
 */
import { setImmediate } from "node:timers/promises";
import type { Clock, TimeSource } from "../platform/clock.ts";
import type { CallerPolicy, GuardPolicy } from "../policy/snapshot.ts";
import { check, type GuardCheckResult } from "./check.ts";
import type { Classifiers } from "./classifiers.ts";
import type { GuardFinding, ScannedText } from "./finding.ts";
import type { CheckAction, CheckLabel, GuardMetrics } from "./metrics.ts";
import { type Piece, piecesOf } from "./pieces.ts";
import type { GuardedCall, GuardTrail } from "./trail.ts";
import { TURN_MS } from "./turn.ts";

/** Checks of one GuardBinding since the start of the process, by their result. */
export type GuardCounts = Readonly<Record<CheckLabel, number>>;

export interface GuardsOptions {
  readonly classifiers: Pick<Classifiers, "ask">;
  readonly trail: GuardTrail;
  readonly metrics: GuardMetrics;
  readonly clock: Clock;
  /** Longest wait of any guard, in milliseconds. Default: as its binding says. */
  readonly longestMs?: number;
}

export interface Scan {
  readonly call: GuardedCall;
  readonly texts: readonly ScannedText[];
  /** False for what has been forwarded already: it is only recorded. */
  readonly canBlock: boolean;
}

export class Guards {
  readonly #options: GuardsOptions;
  /** By `<namespace>/<name>` of the GuardBinding. */
  readonly #counts = new Map<string, Record<CheckLabel, number>>();

  constructor(options: GuardsOptions) {
    this.#options = options;
  }

  /** Counts by `<namespace>/<name>` of the GuardBinding. */
  get counts(): ReadonlyMap<string, GuardCounts> {
    return this.#counts;
  }

  /**
   * Scans texts by every guard at once.
   * @returns the finding that blocks the call, of several the one with the highest score
   */
  async scan({ call, texts, canBlock }: Scan): Promise<GuardFinding | undefined> {
    const findings = await Promise.all(
      call.caller.guards.map((guard) => this.#check(guard, call, texts, canBlock)),
    );
    return findings.reduce((worst, next) =>
      worst === undefined || (next !== undefined && next.score > worst.score) ? next : worst,
    );
  }

  /** @returns the finding if it blocks the call */
  async #check(
    guard: GuardPolicy,
    call: GuardedCall,
    texts: readonly ScannedText[],
    canBlock: boolean,
  ): Promise<GuardFinding | undefined> {
    const { classifiers, clock, trail, longestMs = guard.timeoutMs } = this.#options;
    const scanned = texts.flatMap((text) => scannedAs(guard, text) ?? []);
    if (scanned.length === 0) return undefined;
    const blocks = canBlock && guard.enforcement === "enforce";
    const startedAt = clock.monotonic();
    const collected = distinct(piecesOf(scanned), clock);
    const pieces = collected instanceof Promise ? await collected : collected;
    const result = await check({
      classifiers,
      clock,
      guard: { ...guard, timeoutMs: Math.min(guard.timeoutMs, longestMs) },
      pieces,
      firstDecides: blocks,
    });
    const finding = findingOf(guard, result, scanned);
    if (finding !== undefined && blocks) trail.blocked(call, finding);
    if (finding !== undefined && !blocks) trail.forwarded(call, finding);
    if (result.unjudged !== undefined) trail.unavailable(call, guard, result.unjudged);
    this.#count(call.caller, guard, {
      label: finding?.label ?? (result.unjudged === undefined ? "benign" : "unavailable"),
      action: finding === undefined ? "allow" : blocks ? "block" : "audit",
      durationMs: clock.monotonic() - startedAt,
    });
    return blocks ? finding : undefined;
  }

  #count(
    { workload, namespace }: CallerPolicy,
    { binding, classifier }: GuardPolicy,
    done: {
      readonly label: CheckLabel;
      readonly action: CheckAction;
      readonly durationMs: number;
    },
  ): void {
    this.#options.metrics.checked({ workload, scanner: classifier.type, ...done });
    const key = `${namespace}/${binding}`;
    let counts = this.#counts.get(key);
    if (counts === undefined) {
      counts = { benign: 0, injection: 0, jailbreak: 0, unavailable: 0 };
      this.#counts.set(key, counts);
    }
    counts[done.label] += 1;
  }
}

/** Returns whether a guard of the caller scans answers. */
export function scansResponses({ guards }: CallerPolicy): boolean {
  return guards.some(({ scan }) => scan.responses);
}

/** Returns what a text is for a guard; undefined if the guard does not scan it. */
function scannedAs({ scan }: GuardPolicy, text: ScannedText): ScannedText | undefined {
  switch (text.kind) {
    case "prompt":
      return scan.prompts ? text : undefined;
    case "response":
      return scan.responses ? text : undefined;
    case "tool_result":
      if (scansResultOf(scan, text.tool)) return text;
      return scan.prompts && text.isPrompt === true
        ? { ...text, kind: "prompt", tool: undefined }
        : undefined;
  }
}

function scansResultOf({ toolResults }: GuardPolicy["scan"], tool: string | undefined): boolean {
  if (toolResults === "none" || toolResults === "all") return toolResults === "all";
  // A result whose tool cannot be told may be of any tool.
  return tool === undefined || toolResults.has(tool);
}

function findingOf(
  guard: GuardPolicy,
  { flagged, count }: GuardCheckResult,
  texts: readonly ScannedText[],
): GuardFinding | undefined {
  if (flagged === undefined) return undefined;
  const { piece, label, score } = flagged;
  const text = texts[piece.of] as ScannedText;
  const { kind: where, tool, param } = text;
  return { guard, label, score, where, tool, param, piece, count };
}

/**
 * Returns the pieces without repetitions, which an agent's history has many of. A body of 32 MiB
 * takes seconds: the event loop is free in between.
 */
function distinct(
  pieces: Iterator<Piece, void>,
  clock: TimeSource,
  found = new Map<string, Piece>(),
): readonly Piece[] | Promise<readonly Piece[]> {
  const startedAt = clock.monotonic();
  for (let next = pieces.next(); next.done !== true; next = pieces.next()) {
    const piece = next.value;
    if (piece.text !== "" && !found.has(piece.text)) found.set(piece.text, piece);
    if (clock.monotonic() - startedAt > TURN_MS) {
      return setImmediate().then(() => distinct(pieces, clock, found));
    }
  }
  return [...found.values()];
}
