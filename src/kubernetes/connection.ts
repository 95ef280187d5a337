/**
 * The connection to an API server: its address and the caller's credentials, from a kubeconfig or
 * from the pod's service account. The official client library reads them (with its plugins for
 * exec, OIDC and token files); requests are made here, because the library opens a TLS connection
 * for each of them.
 */
import http from "node:http";
import https from "node:https";
import { KubeConfig } from "@kubernetes/client-node/dist/config.js";

export interface ApiConnectionOptions {
  /** File of the kubeconfig; undefined: `KUBECONFIG`, the home's, or the pod's own account. */
  readonly kubeconfig?: string | undefined;
  /** Context of the kubeconfig; undefined: its current one. */
  readonly context?: string | undefined;
}

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** @defaultValue application/json */
  readonly contentType?: string;
  /** Ends the request, also while its answer is being read. */
  readonly signal?: AbortSignal | undefined;
}

/** The API server's refusal, or a failure to reach it. */
export class ApiError extends Error {
  /** HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** `reason` of the API's Status object, e.g. `Conflict`. */
  readonly reason: string;
  /** The server's wish, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(status: number, reason: string, message: string, retryAfterMs?: number) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.reason = reason;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Returns whether an error says that an object, or its kind, does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Returns whether an error says that the object has changed in the meantime, or exists already. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409;
}

/** Longest silence of the server within an ordinary request, in milliseconds. */
const REQUEST_TIMEOUT_MS = 30_000;
/** Interval of TCP keep-alive probes: they find a server that is gone behind an idle watch. */
const KEEPALIVE_MS = 15_000;

/** An answer of the API server. */
export interface AnswerEvent {
  readonly method: string;
  /** HTTP status; 0 if there was no answer. */
  readonly status: number;
}

export class ApiConnection {
  /** Called for each answer, for metrics. */
  onAnswer: (event: AnswerEvent) => void = () => undefined;
  readonly #config: KubeConfig;
  readonly #server: URL;
  readonly #agents = new Map<string, http.Agent>();

  /** @throws Error that says what is missing in the kubeconfig */
  static load({ kubeconfig, context }: ApiConnectionOptions = {}): ApiConnection {
    const config = new KubeConfig();
    if (kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(kubeconfig);
    if (context !== undefined) {
      if (config.getContextObject(context) === null) {
        const known = config.getContexts().map(({ name }) => name);
        throw new Error(
          `The kubeconfig has no context ${JSON.stringify(context)}; it has ` +
            `${known.length === 0 ? "none" : known.join(", ")}.`,
        );
      }
      config.setCurrentContext(context);
    }
    return new ApiConnection(config);
  }

  constructor(config: KubeConfig) {
    const cluster = config.getCurrentCluster();
    if (cluster === null)
      throw new Error(
        "The kubeconfig names no cluster: set its current-context, or name one with --context.",
      );
    this.#config = config;
    this.#server = new URL(cluster.server);
  }

  /** The namespace of the context, or of the pod; `default` if there is none. */
  get namespace(): string {
    return this.#config.getContextObject(this.#config.getCurrentContext())?.namespace ?? "default";
  }

  /** The kubeconfig, for parts of the official client library. */
  get config(): KubeConfig {
    return this.#config;
  }

  /** Name of the context. */
  get context(): string {
    return this.#config.getCurrentContext();
  }

  /** Address of the API server. */
  get server(): string {
    return this.#server.href;
  }

  /**
   * Sends one request, and returns the parsed answer.
   * @throws ApiError
   */
  async request(path: string, request: ApiRequest = {}): Promise<unknown> {
    const response = await this.#send(path, request, REQUEST_TIMEOUT_MS);
    const text = await textOf(response);
    const body = parseJson(text);
    const status = response.statusCode ?? 0;
    if (status >= 200 && status < 300) return body ?? text;
    throw errorOf(status, body, response.headers["retry-after"]);
  }

  /**
   * Reads the lines of an answer that does not end, such as a watch or the log of a container.
   * Resolves when the server ends it. An error of `onLine` ends it, and is thrown as it is.
   * @param silenceMs longest silence, after which the connection counts as broken
   * @throws ApiError
   */
  async lines(
    path: string,
    request: ApiRequest,
    silenceMs: number,
    onLine: (line: string) => void,
  ): Promise<void> {
    const response = await this.#send(path, request, silenceMs);
    const status = response.statusCode ?? 0;
    if (status < 200 || status >= 300)
      throw errorOf(status, parseJson(await textOf(response)), response.headers["retry-after"]);
    response.setEncoding("utf8");
    let rest: string[] = [];
    for await (const part of readable(response)) {
      const [first = "", ...others] = part.split("\n");
      rest.push(first);
      for (const next of others) {
        const line = rest.join("");
        rest = [next];
        if (line !== "") onLine(line);
      }
    }
    const last = rest.join("");
    if (last !== "") onLine(last);
  }

  async #send(
    path: string,
    { method = "GET", query = {}, body, contentType = "application/json", signal }: ApiRequest,
    silenceMs: number,
  ): Promise<http.IncomingMessage> {
    const url = new URL(this.#server.href.replace(/\/$/, "") + path);
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) url.searchParams.set(name, value);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const options: https.RequestOptions = { method, timeout: silenceMs };
    await this.#config.applyToHTTPSOptions(options);
    // The library's agents keep no connection; one for a proxy is its own kind, and stays.
    const { constructor } = options.agent as http.Agent;
    if (constructor === https.Agent || constructor === http.Agent)
      options.agent = this.#agentFor(options, url.protocol);
    options.headers = {
      ...(options.headers as http.OutgoingHttpHeaders | undefined),
      accept: "application/json",
      "user-agent": "svc",
      ...(text === undefined
        ? {}
        : { "content-type": contentType, "content-length": Buffer.byteLength(text) }),
    };
    if (signal !== undefined) options.signal = signal;
    const { request: send } = url.protocol === "http:" ? http : https;
    return new Promise((resolve, reject) => {
      let status = 0;
      const sent = send(url, options, (response) => {
        status = response.statusCode ?? 0;
        this.onAnswer({ method, status });
        resolve(response);
      });
      sent.on("timeout", () => sent.destroy(new Error("the API server is silent")));
      sent.on("error", (error) => {
        if (status === 0) this.onAnswer({ method, status });
        reject(connectionError(error));
      });
      sent.end(text);
    });
  }

  /** One pool of connections for each identity, which changes when a certificate is renewed. */
  #agentFor(
    { ca, cert, key, servername, rejectUnauthorized }: https.RequestOptions,
    protocol: string,
  ): http.Agent {
    const identity = JSON.stringify([ca, cert, key, servername, rejectUnauthorized].map(String));
    let agent = this.#agents.get(identity);
    if (agent === undefined) {
      for (const old of this.#agents.values()) old.destroy();
      this.#agents.clear();
      const kept = { keepAlive: true, keepAliveMsecs: KEEPALIVE_MS };
      agent =
        protocol === "http:"
          ? new http.Agent(kept)
          : new https.Agent({
              ...kept,
              ...(ca === undefined ? {} : { ca }),
              ...(cert === undefined ? {} : { cert }),
              ...(key === undefined ? {} : { key }),
              ...(servername === undefined ? {} : { servername }),
              ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
            });
      this.#agents.set(identity, agent);
    }
    return agent;
  }

  /** Closes idle connections. */
  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }
}

async function textOf(response: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of readable<Buffer>(response)) parts.push(part);
  return Buffer.concat(parts).toString("utf8");
}

/** The parts of an answer; only an error of the connection becomes an ApiError. */
async function* readable<Part = string>(response: http.IncomingMessage): AsyncGenerator<Part> {
  const parts = response[Symbol.asyncIterator]() as AsyncIterator<Part>;
  try {
    for (;;) {
      const next = await parts.next().catch((error: unknown) => {
        throw connectionError(error);
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    response.destroy();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/ */
function errorOf(status: number, body: unknown, retryAfter: string | undefined): ApiError {
  const told = (body ?? {}) as { message?: unknown; reason?: unknown };
  const seconds = Number(retryAfter);
  return new ApiError(
    status,
    typeof told.reason === "string" ? told.reason : "",
    typeof told.message === "string"
      ? told.message
      : `the API server answered with status ${status}`,
    Number.isFinite(seconds) && retryAfter !== undefined ? seconds * 1_000 : undefined,
  );
}

function connectionError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  return new ApiError(0, code ?? "", `the API server cannot be reached: ${message}`);
}
