/**
 * Measures work in steps, not in time: the number of executed blocks of our own code (V8's precise
 * coverage), and the number of elements that native searches and copies examined. The count is the
 * same on every machine, so that a test can distinguish linear from quadratic code.
 */
import { Session } from "node:inspector";

interface Range {
  readonly count: number;
}

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly { readonly ranges: readonly Range[] }[];
}

/**
 * Returns whether a URL is our own code, as vitest names it; other code may run for unrelated
 * reasons.
 */
function isOwn(url: string): boolean {
  return url.includes("/src/") && !url.includes(".test.") && !url.includes("testing");
}

/** One session per process: code compiled before it has no block counters. */
let session: Session | undefined;

function coverage(): Session {
  if (session !== undefined) return session;
  session = new Session();
  session.connect();
  post(session, "Profiler.enable");
  post(session, "Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  return session;
}

/** @returns the steps of `action`, which runs once before, to be compiled with counters */
export function stepsOf(action: () => unknown): number {
  const counters = coverage();
  quietly(action);
  blocksRun(counters);
  const natives = new NativeWork();
  try {
    quietly(action);
  } finally {
    natives.restore();
  }
  return blocksRun(counters) + natives.elements;
}

/** Returns the number of executed blocks of our own code since the last call. */
function blocksRun(counters: Session): number {
  const { result } = post(counters, "Profiler.takePreciseCoverage") as {
    readonly result: readonly ScriptCoverage[];
  };
  return result
    .filter(({ url }) => isOwn(url))
    .flatMap(({ functions }) => functions.flatMap(({ ranges }) => ranges))
    .reduce((sum, { count }) => sum + count, 0);
}

/** The work may end in an error: a refusal is work too. */
function quietly(action: () => unknown): void {
  try {
    action();
  } catch (error) {
    if (error instanceof RangeError) throw error;
  }
}

function post(to: Session, method: string, parameters: object = {}): unknown {
  let answer: unknown;
  let failure: Error | null = null;
  to.post(method, parameters, (error, result) => {
    failure = error;
    answer = result;
  });
  if (failure !== null) throw failure as Error;
  return answer;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;
type Cost = (self: unknown, args: readonly unknown[], result: unknown) => number;

const lengthOf = (value: unknown): number =>
  typeof value === "string" || Array.isArray(value) || ArrayBuffer.isView(value)
    ? (value as { readonly length: number }).length
    : 0;

/** A search examines the text between its start and its match. */
const search: Cost = (self, [, from], result) => {
  const start = typeof from === "number" ? from : 0;
  const end = typeof result === "number" && result >= 0 ? result : lengthOf(self);
  return Math.max(1, end - start);
};

const searchBackwards: Cost = (self, _args, result) =>
  Math.max(1, lengthOf(self) - (typeof result === "number" ? Math.max(0, result) : 0));

const whole: Cost = (self) => 1 + lengthOf(self);
const wholeResult: Cost = (_self, _args, result) => 1 + lengthOf(result);
const wholeArgument: Cost = (_self, [text]) => 1 + lengthOf(text);

const WATCHED: readonly (readonly [object, string, Cost])[] = [
  [Buffer.prototype, "indexOf", search],
  [Buffer.prototype, "lastIndexOf", searchBackwards],
  [Buffer.prototype, "includes", whole],
  [Buffer.prototype, "toString", wholeResult],
  [Buffer, "concat", wholeResult],
  [Buffer, "from", wholeResult],
  [String.prototype, "indexOf", search],
  [String.prototype, "lastIndexOf", searchBackwards],
  [String.prototype, "includes", whole],
  [String.prototype, "split", whole],
  [String.prototype, "replace", whole],
  [String.prototype, "replaceAll", whole],
  [String.prototype, "toLowerCase", whole],
  [String.prototype, "normalize", whole],
  [String.prototype, "trim", whole],
  [String.prototype, "match", whole],
  [Array.prototype, "indexOf", search],
  [Array.prototype, "includes", whole],
  [Array.prototype, "concat", wholeResult],
  [Array.prototype, "shift", whole],
  [Array.prototype, "unshift", whole],
  [Array.prototype, "splice", whole],
  [Array.prototype, "join", wholeResult],
  [RegExp.prototype, "exec", regexp],
  [RegExp.prototype, "test", regexp],
  [JSON, "parse", wholeArgument],
  [JSON, "stringify", wholeResult],
];

/** An expression is linear (src/regexes.test.ts): it examines the text after its last match. */
function regexp(self: unknown, [text]: readonly unknown[], result: unknown): number {
  const { lastIndex, sticky } = self as RegExp;
  if (sticky) return 1 + (Array.isArray(result) ? lengthOf(result[0]) : 0);
  if (Array.isArray(result)) return 1 + lengthOf(result[0]);
  return Math.max(1, lengthOf(text) - lastIndex);
}

class NativeWork {
  elements = 0;
  readonly #originals: (() => void)[] = [];

  constructor() {
    for (const [owner, name, cost] of WATCHED) this.#watch(owner, name, cost);
  }

  restore(): void {
    for (const restore of this.#originals) restore();
  }

  #watch(owner: object, name: string, cost: Cost): void {
    const methods = owner as Record<string, Method>;
    const original = methods[name] as Method;
    const count = (elements: number): void => {
      this.elements += elements;
    };
    methods[name] = function watched(this: unknown, ...args: unknown[]): unknown {
      const result = Reflect.apply(original, this, args);
      count(cost(this, args, result));
      return result;
    };
    this.#originals.push(() => (methods[name] = original));
  }
}

/** Maximum growth of the work when the size doubles: 2 is linear, 4 quadratic. */
const LINEAR = 2.6;

/**
 * Throws if `work` grows faster than its size. Sizes double a few times; only the last doublings
 * count, where constant costs no longer matter.
 */
export function expectLinear(work: (size: number) => () => unknown, start: number): void {
  const steps = [1, 2, 4].map((factor) => stepsOf(work(start * factor)));
  for (let index = 1; index < steps.length; index += 1) {
    const growth = (steps[index] as number) / (steps[index - 1] as number);
    if (growth > LINEAR) {
      throw new Error(`work grows by ${growth.toFixed(2)} when the size doubles: ${steps.join()}`);
    }
  }
}
