/** Many callers at once on several gateways that share one store. */
import { expect } from "vitest";
import { type Ask, begin, type Exchange, type Target } from "./client.ts";
import { rawKey } from "./resources.ts";
import { type Stack, svc } from "./stack.ts";
import type { Vendor } from "./vendors.ts";
import { Gate, until } from "./wait.ts";

/** Usage that the provider reports for each call: within its reservation. */
export const USED = { input: 10, output: 40 };
export const TOKENS = USED.input + USED.output;

/** Returns a caller at each gateway, in turn. */
export type CallerAt = (stack: Stack, turn: number) => Promise<Target & { readonly model: string }>;

export const asAgent =
  (name: string): CallerAt =>
  async (stack) => ({ port: stack.port, token: await stack.token(name), model: "open/gpt-5" });

export const asKey =
  (...names: string[]): CallerAt =>
  async (stack, turn) => ({
    port: stack.externalPort,
    prefix: "/ext",
    token: rawKey(names[turn % names.length] as string),
    model: "gpt-5",
  });

export interface Rush {
  /** Requests that wait at the provider. */
  readonly inside: readonly Exchange[];
  readonly refused: readonly { readonly status: number; readonly message: string }[];
  /** Lets the provider answer. */
  readonly gate: Gate;
}

/** Reads the size of one call's reservation from a refusal's message. */
export function reservedEach({ refused }: Rush): number {
  return Number(/up to ([\d.]+)/.exec(refused[0]?.message ?? "")?.[1]);
}

export interface Usage {
  readonly tokensToday: number;
  readonly requestsToday: number;
  readonly costTodayUSD?: number;
  readonly inFlight?: number;
}

export class Crowd {
  readonly #vendor: Vendor;
  readonly #stacks: readonly Stack[];
  /** The provider answers 400 from now on. */
  failing = false;

  constructor(vendor: Vendor, stacks: readonly Stack[]) {
    this.#vendor = vendor;
    this.#stacks = stacks;
  }

  /** Sends all calls at once on all gateways; the provider holds every admitted call. */
  async rush(caller: CallerAt, callers: number): Promise<Rush> {
    const vendor = this.#vendor;
    const gate = new Gate();
    vendor.reset();
    vendor.always(async (request, response) => {
      await gate.pass();
      if (this.failing) return vendor.fails({ status: 400, message: "no" })(request, response);
      return vendor.says({ text: ["ok"], usage: USED })(request, response);
    });
    const count = this.#stacks.length;
    const targets = await Promise.all(
      Array.from({ length: callers }, async (_, i) =>
        caller(this.#stacks[i % count] as Stack, Math.floor(i / count)),
      ),
    );
    const exchanges = targets.map((target) =>
      begin(target, {
        dialect: "openai",
        model: target.model,
        body: { max_tokens: USED.output },
      } satisfies Ask),
    );
    const refused: { exchange: Exchange; status: number; message: string }[] = [];
    const note = async (exchange: Exchange): Promise<void> => {
      const answer = await exchange.answer;
      if (answer.status === 429)
        refused.push({ exchange, status: answer.status, message: answer.message });
    };
    // A caller that disconnects rejects: it was admitted.
    for (const exchange of exchanges) note(exchange).catch(() => {});
    await until(() => vendor.requests.length + refused.length === callers, {
      what: "every caller to be let in or refused",
    });
    return {
      inside: exchanges.filter((exchange) => !refused.some((each) => each.exchange === exchange)),
      refused,
      gate,
    };
  }

  async finish({ gate, inside }: Rush): Promise<void> {
    gate.open();
    const answers = await Promise.all(inside.map(async (exchange) => exchange.answer));
    expect(new Set(answers.map(({ status }) => status))).toEqual(
      new Set([this.failing ? 400 : 200]),
    );
  }

  /** Usage as each gateway's command line shows it. */
  async usage(kind: string, name: string): Promise<readonly Usage[]> {
    return Promise.all(
      this.#stacks.map(async (stack) => {
        const { stdout } = await svc([
          "get",
          kind,
          name,
          "-o",
          "json",
          "--state-dir",
          stack.stateDir,
        ]);
        return (JSON.parse(stdout) as { status: Usage }).status;
      }),
    );
  }

  async settledAs(kind: string, name: string, expected: Partial<Usage>): Promise<void> {
    await until(
      async () =>
        (await this.usage(kind, name)).every((each) =>
          Object.entries(expected).every(([field, value]) => each[field as keyof Usage] === value),
        ),
      { what: `${kind} ${name} to have used ${JSON.stringify(expected)}` },
    );
  }
}
