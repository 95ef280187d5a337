/**
 * ClassifierClient asks one classifier over a bounded number of connections that are kept open. No
 * redirect is followed, and no proxy of the environment is used: texts go to the configured address
 * alone.
 */
import http from "node:http";
import https from "node:https";
import type { SecureContext } from "node:tls";
import type { ClassifierPolicy } from "../policy/snapshot.ts";
import { llamaGuardRequest, parseLlamaGuardAnswer } from "./llama-guard.ts";
import { ClassifierHeader, parseAnswer, type Scores } from "./protocol.ts";

/** Connections to one classifier. */
const MAX_CONNECTIONS = 16;

/** Time after which an unused connection is closed: shorter than usual servers keep theirs. */
const IDLE_MS = 4_000;

/** Longest answer of a classifier. */
const MAX_ANSWER_BYTES = 65_536;

/** Why a classifier gave no verdict. */
export type ClassifierFailure =
  | "timeout"
  | "unreachable"
  /** Another status than 200. */
  | "refused"
  /** The answer is not one of the protocol. */
  | "invalid_answer"
  /** The classifier says that it is of another type than the binding. */
  | "wrong_type"
  | "breaker_open"
  | "overloaded"
  /** The binding cannot be used, see {@link ClassifierPolicy.problem}. */
  | "misconfigured";

export type ClassifierVerdict =
  | { readonly kind: "scores"; readonly scores: Scores }
  | { readonly kind: "unavailable"; readonly failure: ClassifierFailure };

export class ClassifierClient {
  readonly #policy: ClassifierPolicy;
  readonly #url: URL;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;

  /** @param trust certificates against which classifiers with TLS are verified */
  constructor(policy: ClassifierPolicy, url: string, trust: () => SecureContext) {
    this.#policy = policy;
    this.#url = new URL(url);
    const options = {
      keepAlive: true,
      maxSockets: MAX_CONNECTIONS,
      maxFreeSockets: MAX_CONNECTIONS,
      timeout: IDLE_MS,
    };
    const secure = this.#url.protocol === "https:";
    this.#agent = secure
      ? new https.Agent({ ...options, secureContext: trust() })
      : new http.Agent(options);
    this.#request = secure ? https.request : http.request;
  }

  /** Never rejects. */
  async classify(text: string, timeoutMs: number): Promise<ClassifierVerdict> {
    const { protocol, model, header, type } = this.#policy;
    const isChat = protocol === "chat";
    const body = JSON.stringify(isChat ? llamaGuardRequest(text, model ?? "") : { text });
    const { promise, resolve } = Promise.withResolvers<ClassifierVerdict>();
    const fail = (failure: ClassifierFailure): void => resolve({ kind: "unavailable", failure });
    const request = this.#request(
      this.#url,
      {
        method: "POST",
        agent: this.#agent,
        headers: {
          accept: "application/json",
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
          ...(header === undefined ? {} : { [header.name]: header.value.reveal() }),
        },
      },
      (response) => {
        const parts: Buffer[] = [];
        let size = 0;
        response.on("data", (part: Buffer) => {
          size += part.length;
          if (size <= MAX_ANSWER_BYTES) {
            parts.push(part);
            return;
          }
          // The end may be known already: its beginning alone must not be taken for an answer.
          fail("invalid_answer");
          response.destroy();
        });
        // After the end nothing changes what is known.
        response.on("close", () => fail(response.complete ? "invalid_answer" : "unreachable"));
        response.on("error", () => fail("unreachable"));
        response.on("end", () => {
          if (response.statusCode !== 200) return fail("refused");
          const answers = response.headers[ClassifierHeader.type];
          if (!isChat && answers !== undefined && answers !== type) return fail("wrong_type");
          const answer = Buffer.concat(parts).toString("utf8");
          const scores = isChat ? parseLlamaGuardAnswer(answer) : parseAnswer(answer);
          if (scores === undefined) return fail("invalid_answer");
          resolve({ kind: "scores", scores });
        });
      },
    );
    const timer = setTimeout(() => {
      fail("timeout");
      request.destroy();
    }, timeoutMs);
    request.on("error", () => fail("unreachable"));
    request.end(body);
    try {
      return await promise;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#agent.destroy();
  }
}
