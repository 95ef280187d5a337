/** The HTTP server of the guard service. No text, and nothing of one, is logged or answered. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { type Context, Hono } from "hono";
import { collectDefaultMetrics, Registry } from "prom-client";
import type { Logger } from "../../platform/log.ts";
import { answerOf, ClassifierHeader } from "../protocol.ts";
import { AdmissionQueue, type AdmissionOptions, type Place } from "./admission.ts";
import { type Classifier, ClassifierError, type ClassifierReport } from "./classifier.ts";
import { GuardServiceMetrics } from "./metrics.ts";
import { checkHeaders, readText, RequestRefusal } from "./request.ts";

export interface GuardServerOptions extends AdmissionOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Starts the classifier; the server listens meanwhile, and is not healthy. */
  readonly start: (report: ClassifierReport) => Promise<Classifier>;
  readonly log: Logger;
  /** Milliseconds of a monotonic clock. */
  readonly monotonic: () => number;
}

export interface GuardServer {
  readonly host: string;
  readonly port: number;
  /** Resolves with the classifier when the service is healthy. */
  readonly ready: Promise<Classifier>;
  /** From now on, `/healthz` answers 503, so that no new requests are sent here. */
  drain(): void;
  /**
   * Accepts no more requests, and resolves when those under way are answered, or are cut off after
   * the time given.
   */
  close(drainMs?: number): Promise<void>;
}

type ServiceContext = Context<{ Bindings: HttpBindings }>;

const RETRY_AFTER_SECONDS = "1";
/** For headers and body of a request. */
const REQUEST_TIMEOUT_MS = 30_000;
const DRAIN_MS = 30_000;
/** Longer than the idle timeouts of callers' pools, so that they close connections first. */
const KEEP_ALIVE_MS = 120_000;

export async function startGuardServer(options: GuardServerOptions): Promise<GuardServer> {
  const service = new Service(options);
  const listener = getRequestListener(service.app.fetch, { overrideGlobalObjects: false });
  const server = http.createServer((request, response) => void listener(request, response));
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, resolve);
  });
  const ready = service.start();
  // Whoever waits for it is told; a caller that does not must not end the process.
  ready.catch(() => undefined);
  return {
    host: options.host,
    port: (server.address() as AddressInfo).port,
    ready,
    drain: () => service.drain(),
    close: async (drainMs = DRAIN_MS) => {
      service.drain();
      const cut = setTimeout(() => server.closeAllConnections(), drainMs);
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      });
      clearTimeout(cut);
      const classifier = await ready.catch(() => undefined);
      await classifier?.close();
    },
  };
}

class Service {
  readonly app = new Hono<{ Bindings: HttpBindings }>();
  readonly #options: GuardServerOptions;
  readonly #registry = new Registry();
  readonly #admission: AdmissionQueue;
  readonly #metrics: GuardServiceMetrics;
  #classifier: Classifier | undefined;
  #draining = false;

  constructor(options: GuardServerOptions) {
    this.#options = options;
    this.#admission = new AdmissionQueue(options);
    this.#metrics = new GuardServiceMetrics(this.#registry, this.#admission);
    collectDefaultMetrics({ register: this.#registry });
    const { app } = this;
    app.use(async (c, next) => {
      await next();
      if (c.res === RESPONSE_ALREADY_SENT) return;
      const { type, model } = this.#classifier ?? {};
      if (type !== undefined) c.header(ClassifierHeader.type, type);
      if (model !== undefined) c.header(ClassifierHeader.model, headerText(model));
      // A client that keeps its connection would send its next request to a closed server.
      if (this.#draining) c.header("connection", "close");
    });
    app.get("/healthz", (c) => this.#health(c));
    app.get("/metrics", async (c) =>
      c.body(await this.#registry.metrics(), 200, { "content-type": this.#registry.contentType }),
    );
    app.post("/classify", async (c) => {
      const { status, response } = await this.#classify(c);
      this.#metrics.ended(status);
      return response;
    });
    app.all("/classify", (c) =>
      problem(c, 405, "method_not_allowed", "Use POST.", { allow: "POST" }),
    );
    app.notFound((c) =>
      problem(c, 404, "not_found", "There are POST /classify, GET /healthz and GET /metrics."),
    );
    app.onError((error, c) => {
      options.log.error({ error: error.name }, "unexpected error: please report it");
      return problem(c, 500, "internal_error", "Unexpected error.");
    });
  }

  async start(): Promise<Classifier> {
    this.#classifier = await this.#options.start(this.#metrics);
    return this.#classifier;
  }

  drain(): void {
    this.#draining = true;
  }

  #health(c: ServiceContext): Response {
    if (this.#classifier !== undefined && !this.#draining) return c.json({ status: "ok" });
    return c.json({ status: this.#draining ? "draining" : "loading" }, 503);
  }

  async #classify(
    c: ServiceContext,
  ): Promise<{ readonly status: number; readonly response: Response }> {
    const refused = (response: Response) => ({ status: response.status, response });
    const classifier = this.#classifier;
    if (classifier === undefined)
      return refused(unavailable(c, "loading", "The classifier is being loaded."));
    const place = this.#admission.enter();
    if (place === undefined)
      return refused(
        unavailable(c, "overloaded", "Too many requests wait: the queue of this service is full."),
      );
    const gone = goneSignal(c.env.outgoing);
    try {
      return refused(await this.#answer(c, classifier, place, gone));
    } catch (error) {
      const { incoming } = c.env;
      // The end of a body that is cut off may be noticed before that of the response.
      if (gone.aborted || (incoming.destroyed && !incoming.complete))
        return { status: 499, response: RESPONSE_ALREADY_SENT };
      return refused(this.#failure(c, error));
    } finally {
      place.leave();
    }
  }

  async #answer(
    c: ServiceContext,
    classifier: Classifier,
    place: Place,
    gone: AbortSignal,
  ): Promise<Response> {
    const { incoming } = c.env;
    checkHeaders(incoming.headers);
    const started = this.#options.monotonic();
    const text = await readText(incoming);
    await place.turn(gone);
    const answer = answerOf(await classifier.classify(text, gone));
    this.#metrics.classified(answer.label, this.#options.monotonic() - started);
    return c.json(answer);
  }

  #failure(c: ServiceContext, error: unknown): Response {
    if (error instanceof RequestRefusal) {
      // The rest of a body that is too long is not read.
      if (error.status === 413) c.header("connection", "close");
      return problem(c, error.status, error.code, error.message);
    }
    if (error instanceof ClassifierError) {
      this.#options.log.warn({ status: error.status, reason: error.message }, "not classified");
      return problem(c, error.status, "not_classified", `Not classified: ${error.message}.`);
    }
    throw error;
  }
}

/** Returns a signal that is aborted if the client disconnects before it is answered. */
function goneSignal(outgoing: HttpBindings["outgoing"]): AbortSignal {
  const aborter = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) aborter.abort(new Error("the client has disconnected"));
  });
  return aborter.signal;
}

function unavailable(c: ServiceContext, code: string, message: string): Response {
  return problem(c, 503, code, message, { "retry-after": RETRY_AFTER_SECONDS });
}

function problem(
  c: ServiceContext,
  status: 400 | 404 | 405 | 413 | 415 | 500 | 502 | 503 | 504,
  code: string,
  message: string,
  headers: Record<string, string> = {},
): Response {
  return c.json({ error: { code, message } }, status, headers);
}

/** Returns what of a name a header may have. */
function headerText(name: string): string {
  return name.replace(/[^\x21-\x7e]/g, "-").slice(0, 200);
}
