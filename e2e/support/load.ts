/** Many requests at once over kept connections. */
import http from "node:http";
import { type Ask, requestBody, requestPath } from "./client.ts";
import type { Target } from "./client.ts";

export interface Outcome {
  /** 0 where no answer came. */
  readonly status: number;
  readonly text: string;
  /** `x-svc-call-id`, once the answer began. */
  readonly callId: string | undefined;
}

export interface Load {
  /** Requests answered so far. */
  readonly done: number;
  readonly outcomes: readonly Outcome[];
  /** Sends no new requests; resolves when those under way are answered. */
  stop(): Promise<readonly Outcome[]>;
  /** Resolves when `limit` is reached. */
  readonly finished: Promise<readonly Outcome[]>;
}

export interface LoadOptions {
  readonly target: Target;
  readonly asks: readonly Ask[];
  readonly concurrency: number;
  /** Maximum number of requests. */
  readonly limit?: number;
}

export function load({
  target,
  asks,
  concurrency,
  limit = Number.POSITIVE_INFINITY,
}: LoadOptions): Load {
  const agent = new http.Agent({ keepAlive: true, maxSockets: concurrency });
  const ready = asks.map((ask) => {
    const body = requestBody(ask);
    return {
      body,
      options: {
        host: "127.0.0.1",
        port: target.port,
        method: "POST",
        path: requestPath(ask),
        agent,
        headers: {
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          authorization: `Bearer ${target.token}`,
        },
      },
    };
  });
  const outcomes: Outcome[] = [];
  let started = 0;
  let most = limit;
  const one = async (i: number): Promise<Outcome> => {
    const { options, body } = ready[i % ready.length] as (typeof ready)[number];
    return new Promise((resolve) => {
      const request = http.request(options, (response) => {
        let text = "";
        response.on("data", (part: Buffer) => (text += part.toString()));
        const id = response.headers["x-svc-call-id"];
        const callId = Array.isArray(id) ? id[0] : id;
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, callId }));
        response.on("error", (error) => resolve({ status: 0, text: error.message, callId }));
      });
      request.on("error", (error) =>
        resolve({ status: 0, text: error.message, callId: undefined }),
      );
      request.end(body);
    });
  };
  const worker = async (): Promise<void> => {
    while (started < most) outcomes.push(await one(started++));
  };
  const finished = Promise.all(Array.from({ length: concurrency }, worker)).then(() => {
    agent.destroy();
    return outcomes;
  });
  return {
    get done() {
      return outcomes.length;
    },
    outcomes,
    stop: async () => {
      most = 0;
      return finished;
    },
    finished,
  };
}

/** Counts outcomes by status, for a message. */
export function tally(outcomes: readonly Outcome[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status } of outcomes) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
