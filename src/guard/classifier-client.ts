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
import { isExpected, parseAnswer, type Scores } from "./protocol.ts";

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
  /** The classifier says that it is of another type, or has another model, than the binding. */
  | "wrong_classifier"
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
  classify(text: string, timeoutMs: number): Promise<ClassifierVerdict> {
    const { promise, resolve } = Promise.withResolvers<ClassifierVerdict>();
    const body = this.#bodyOf(text);
    let request: http.ClientRequest | undefined;
    const timer = setTimeout(() => {
      done({ kind: "unavailable", failure: "timeout" });
      request?.destroy();
    }, timeoutMs);
    let isDone = false;
    const done = (verdict: ClassifierVerdict): void => {
      isDone = true;
      clearTimeout(timer);
      resolve(verdict);
    };
    const send = (): void => {
      const sent = this.#send(body, done);
      request = sent;
      sent.on("error", () => {
        // A classifier may close a connection that was not in use at the moment of a request.
        if (sent.reusedSocket && !isDone) send();
        else done({ kind: "unavailable", failure: "unreachable" });
      });
      // Without an answer and without an error: a switch to another protocol.
      sent.on("close", () => {
        if (request === sent) done({ kind: "unavailable", failure: "unreachable" });
      });
    };
    try {
      send();
    } catch {
      // The header cannot be sent, e.g. a secret with a newline.
      done({ kind: "unavailable", failure: "misconfigured" });
    }
    return promise;
  }

  #bodyOf(text: string): Buffer {
    const { protocol, model } = this.#policy;
    // Strict parsers refuse JSON with half of a surrogate pair, which a piece may end with.
    const whole = text.toWellFormed();
    const body = protocol === "chat" ? llamaGuardRequest(whole, model ?? "") : { text: whole };
    return Buffer.from(JSON.stringify(body));
  }

  /** @throws TypeError if the header is not valid */
  #send(body: Buffer, done: (verdict: ClassifierVerdict) => void): http.ClientRequest {
    const { header } = this.#policy;
    const request = this.#request(
      this.#url,
      {
        method: "POST",
        agent: this.#agent,
        headers: {
          accept: "application/json",
          "content-type": "application/json",
          "content-length": body.length,
          ...(header === undefined ? {} : { [header.name]: header.value.reveal() }),
        },
      },
      (response) => this.#receive(response, done),
    );
    request.end(body);
    return request;
  }

  #receive(response: http.IncomingMessage, done: (verdict: ClassifierVerdict) => void): void {
    const fail = (failure: ClassifierFailure): void => done({ kind: "unavailable", failure });
    const parts: Buffer[] = [];
    let size = 0;
    response.on("data", (part: Buffer) => {
      size += part.length;
      if (size <= MAX_ANSWER_BYTES) return void parts.push(part);
      fail("invalid_answer");
      response.destroy();
    });
    response.on("error", () => fail("unreachable"));
    response.on("end", () => done(this.#verdictOf(response, Buffer.concat(parts))));
  }

  #verdictOf({ statusCode, headers }: http.IncomingMessage, body: Buffer): ClassifierVerdict {
    const isChat = this.#policy.protocol === "chat";
    if (statusCode !== 200) return { kind: "unavailable", failure: "refused" };
    if (!isChat && !isExpected(headers, this.#policy))
      return { kind: "unavailable", failure: "wrong_classifier" };
    const answer = body.toString("utf8");
    const scores = isChat ? parseLlamaGuardAnswer(answer) : parseAnswer(answer);
    return scores === undefined
      ? { kind: "unavailable", failure: "invalid_answer" }
      : { kind: "scores", scores };
  }

  close(): void {
    this.#agent.destroy();
  }
}
