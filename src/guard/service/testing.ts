/** Test helpers: a running guard service, and an endpoint that it asks. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import { CapturedLog } from "../../platform/testing.ts";
import type { Scores } from "../protocol.ts";
import type { Classifier } from "./classifier.ts";
import { type GuardServer, type GuardServerOptions, startGuardServer } from "./server.ts";

export const BENIGN: Scores = { benign: 1, injection: 0, jailbreak: 0 };

const ROOT = path.resolve(import.meta.dirname, "../../..");

/** Of the small model that scripts/classifier-fixture.py makes. */
export const MODEL_FOLDER = path.join(import.meta.dirname, "testdata/model");

/** `make unit` installs it. */
export const RUNTIME_FOLDER = path.join(ROOT, ".venv/classifier");

export const WORKER = new URL("../../bin/guard-model.ts", import.meta.url);

/** A classifier whose answers the test gives. */
export class ScriptedClassifier implements Classifier {
  readonly type = "stub";
  model: string | undefined;
  /** Texts under way, in order, with what ends them. */
  readonly under: { readonly text: string; end(result: Scores | Error): void }[] = [];
  readonly aborted: string[] = [];
  closed = false;

  classify(text: string, signal: AbortSignal): Promise<Scores> {
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => {
        this.aborted.push(text);
        reject(signal.reason as Error);
      });
      this.under.push({
        text,
        end: (result) => (result instanceof Error ? reject(result) : resolve(result)),
      });
    });
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}

export interface RunningGuard extends GuardServer {
  readonly url: string;
  readonly log: CapturedLog;
}

export async function runGuard(
  classifier: Classifier | Promise<Classifier>,
  options: Partial<GuardServerOptions> = {},
): Promise<RunningGuard> {
  const log = new CapturedLog();
  const server = await startGuardServer({
    host: "127.0.0.1",
    port: 0,
    maxConcurrent: 16,
    maxQueued: 64,
    start: () => Promise.resolve(classifier),
    log: log.log,
    monotonic: () => performance.now(),
    ...options,
  });
  return { ...server, url: `http://127.0.0.1:${server.port}`, log };
}

export interface ReceivedRequest {
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: unknown;
}

export interface FakeEndpoint {
  readonly url: string;
  readonly requests: ReceivedRequest[];
  close(): Promise<void>;
}

/** @param answer ends the response; one that does nothing never answers */
export async function startEndpoint(
  answer: (request: ReceivedRequest, response: http.ServerResponse) => void,
): Promise<FakeEndpoint> {
  const requests: ReceivedRequest[] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const received = {
        path: request.url ?? "",
        headers: request.headers,
        body: JSON.parse(Buffer.concat(chunks).toString("utf8")) as unknown,
      };
      requests.push(received);
      answer(received, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Body of a chat completion with an answer of Llama Guard. */
export function llamaGuardCompletion(content: string): string {
  const message = { role: "assistant", content };
  return JSON.stringify({ choices: [{ index: 0, message, finish_reason: "stop" }] });
}
