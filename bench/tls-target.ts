/** Targets of the sidecar's load, and a check that they work. */
import { readFileSync } from "node:fs";
import https from "node:https";
import { JSON_BODY } from "./answers.ts";
import { AGENTS_TOKEN, HOST } from "./service.ts";
import type { ProcessTree } from "./stats.ts";

export interface TlsTarget {
  readonly name: string;
  readonly port: number;
  /** PEM file of its certificate's issuer. */
  readonly caFile: string;
  /** undefined for the service itself, whose process is not measured. */
  readonly tree: ProcessTree | undefined;
}

export interface TlsAnswer {
  readonly status: number;
  readonly text: string;
}

/** Sends a request with a client that verifies certificates. */
export function askOverTls(
  { port, caFile }: Pick<TlsTarget, "port" | "caFile">,
  request: {
    readonly method?: string;
    readonly path: string;
    readonly token?: string;
    readonly body?: string;
  },
): Promise<TlsAnswer> {
  const { method = "GET", path, token = AGENTS_TOKEN, body } = request;
  return new Promise((resolve, reject) => {
    const sent = https.request(
      {
        host: "127.0.0.1",
        port,
        servername: HOST,
        ca: readFileSync(caFile),
        method,
        path,
        agent: false,
        headers: {
          host: HOST,
          authorization: `token ${token}`,
          "content-type": "application/json",
        },
      },
      (response) => {
        let text = "";
        response.on("data", (part: Buffer) => (text += part.toString()));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

const PATH = "/repos/octo/hello/pulls";

export async function answers(
  target: Pick<TlsTarget, "port" | "caFile">,
): Promise<true | undefined> {
  return (await askOverTls(target, { path: PATH })).status === 200 ? true : undefined;
}

/**
 * The answer must arrive completely; the service refuses any token but the real one, so it also
 * proves that the token was injected.
 */
export async function checkOverTls(target: TlsTarget): Promise<void> {
  const { status, text } = await askOverTls(target, { path: PATH });
  if (status !== 200 || text !== JSON_BODY)
    throw new Error(`${target.name}: status ${status}: ${text}`);
}

/** Forbidden requests must not arrive, because otherwise the figures would not be comparable. */
export async function checkDenial(target: TlsTarget): Promise<void> {
  for (const request of [
    { path: "/repos/other/hello/pulls" },
    { method: "POST", path: PATH, body: "{}" },
    {
      method: "POST",
      path: "/graphql",
      body: JSON.stringify({
        query: '{repository(owner:"other",name:"r"){pullRequests(first:1){totalCount}}}',
      }),
    },
  ]) {
    const { status } = await askOverTls(target, request);
    if (status !== 403)
      throw new Error(
        `${target.name}: ${request.method ?? "GET"} ${request.path} gets ${status}, and is ` +
          "forbidden",
      );
  }
}
