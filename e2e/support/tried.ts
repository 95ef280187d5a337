/** What a client tried under `svc run`: one line of JSON for each try; and what is on record. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Ran } from "./stack.ts";

/** A line of a client's program. */
export interface Tried {
  readonly name: string;
  readonly value?: unknown;
  readonly status?: number;
  readonly code?: string | number;
  readonly message?: string;
}

export class Tries {
  readonly #tries: ReadonlyMap<string, Tried>;
  readonly #ran: Ran;

  constructor(ran: Ran) {
    this.#ran = ran;
    this.#tries = new Map(
      ran.stdout
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line) as Tried)
        .map((each) => [each.name, each]),
    );
  }

  /** Everything that the agent could see. */
  get output(): string {
    return this.#ran.stdout + this.#ran.stderr;
  }

  of(name: string): Tried {
    const found = this.#tries.get(name);
    if (found === undefined) throw new Error(`"${name}" was not tried: ${this.output}`);
    return found;
  }

  /** The result, or the failure. */
  value(name: string): unknown {
    const { value, ...failure } = this.of(name);
    return value ?? failure;
  }
}

/** Fields of the records of service calls below a state folder, in the order of each chain. */
export function serviceCalls(stateDir: string): readonly Readonly<Record<string, unknown>>[] {
  const dir = path.join(stateDir, "audit");
  return readdirSync(dir, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .flatMap((name) => readFileSync(path.join(dir, name), "utf8").split("\n"))
    .filter((line) => line.includes('"SERVICE_CALL"'))
    .map((line) => (JSON.parse(line) as { fields: Record<string, unknown> }).fields);
}
