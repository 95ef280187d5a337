/** A plain client of each dialect, for tests that examine bytes. */
import http from "node:http";
import type { Fixture } from "./fixture.ts";
import type { DialectName } from "./vendors.ts";

export interface Ask {
  readonly dialect: DialectName;
  /** `<provider>/<model>`. */
  readonly model: string;
  readonly stream?: boolean;
  /** The user's words. */
  readonly text?: string;
  /** More of the body. */
  readonly body?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export function requestBody({
  dialect,
  model,
  stream = false,
  text = "Hi",
  body = {},
}: Ask): string {
  const messages = [{ role: "user", content: text }];
  switch (dialect) {
    case "openai":
      return JSON.stringify({ model, messages, ...(stream ? { stream } : {}), ...body });
    case "anthropic":
      return JSON.stringify({
        model,
        messages,
        max_tokens: 64,
        ...(stream ? { stream } : {}),
        ...body,
      });
    case "gemini":
      return JSON.stringify({ contents: [{ role: "user", parts: [{ text }] }], ...body });
  }
}

export function requestPath({ dialect, model, stream = false }: Ask): string {
  switch (dialect) {
    case "openai":
      return "/v1/chat/completions";
    case "anthropic":
      return "/v1/messages";
    case "gemini":
      return (
        `/v1beta/models/${model}:` + (stream ? "streamGenerateContent?alt=sse" : "generateContent")
      );
  }
}

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly trailers: NodeJS.Dict<string>;
  readonly bytes: Buffer;
  readonly text: string;
  /** The message of an error, wherever the dialect puts it. */
  readonly message: string;
}

/** A request under way. */
export interface Exchange {
  readonly request: http.ClientRequest;
  /** Resolves with the headers. */
  readonly response: Promise<http.IncomingMessage>;
  /** Reads the rest: resolves with the whole answer; rejects when the connection breaks. */
  readonly answer: Promise<Answer>;
  /** Disconnects abruptly. */
  leave(): void;
}

export interface Target {
  readonly port: number;
  readonly token: string;
  /** Prefix of the path: `/ext`. */
  readonly prefix?: string;
  /** Local address to call from. */
  readonly from?: string;
}

export function begin(
  target: Target,
  ask: Ask,
  options: { readonly agent?: http.Agent | false } = {},
): Exchange {
  const payload = requestBody(ask);
  const request = http.request({
    host: "127.0.0.1",
    port: target.port,
    method: "POST",
    path: (target.prefix ?? "") + requestPath(ask),
    ...(target.from === undefined ? {} : { localAddress: target.from }),
    agent: options.agent ?? false,
    headers: {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(payload),
      authorization: `Bearer ${target.token}`,
      ...ask.headers,
    },
  });
  const response = new Promise<http.IncomingMessage>((resolve, reject) => {
    request.on("response", resolve);
    request.on("error", reject);
  });
  // A test that disconnects does not use them.
  response.catch(() => {});
  let answer: Promise<Answer> | undefined;
  request.end(payload);
  return {
    request,
    response,
    get answer() {
      if (answer === undefined) {
        answer = response.then(collect);
        answer.catch(() => {});
      }
      return answer;
    },
    leave: () => request.destroy(),
  };
}

export async function collect(response: http.IncomingMessage): Promise<Answer> {
  const parts: Buffer[] = [];
  for await (const part of response as AsyncIterable<Buffer>) parts.push(part);
  const bytes = Buffer.concat(parts);
  const text = bytes.toString("utf8");
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    trailers: response.trailers,
    bytes,
    text,
    get message() {
      return (JSON.parse(text) as { error: { message: string } }).error.message;
    },
  };
}

export async function call(fixture: Pick<Fixture, "stack" | "token">, ask: Ask): Promise<Answer> {
  return begin({ port: fixture.stack.port, token: fixture.token }, ask).answer;
}

/** Text of an answer, whole or streamed, in any dialect. */
export function textOf(dialect: DialectName, text: string): string {
  const bodies = text.startsWith("{")
    ? [text]
    : events(text)
        .map((event) => event.data)
        .filter((data) => data !== "[DONE]");
  return bodies.map((body) => pieceOf(dialect, JSON.parse(body) as Record<string, never>)).join("");
}

export interface ServerEvent {
  readonly event: string | undefined;
  readonly data: string;
}

/** Server-sent events without comments. */
export function events(text: string): ServerEvent[] {
  return text
    .split(/\r?\n\r?\n/)
    .map((block) => {
      const lines = block.split(/\r?\n/);
      const field = (name: string): string[] =>
        lines
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
      return { event: field("event")[0], data: field("data").join("\n") };
    })
    .filter((event) => event.data !== "");
}

interface AnyBody {
  readonly choices?: readonly {
    readonly message?: { readonly content?: string };
    readonly delta?: { readonly content?: string };
  }[];
  readonly content?: readonly { readonly text?: string }[];
  readonly delta?: { readonly text?: string };
  readonly candidates?: readonly {
    readonly content?: { readonly parts?: readonly { readonly text?: string }[] };
  }[];
}

function pieceOf(dialect: DialectName, body: AnyBody): string {
  switch (dialect) {
    case "openai":
      return body.choices?.[0]?.message?.content ?? body.choices?.[0]?.delta?.content ?? "";
    case "anthropic":
      return body.delta?.text ?? body.content?.map((block) => block.text ?? "").join("") ?? "";
    case "gemini":
      return body.candidates?.[0]?.content?.parts?.map((part) => part.text ?? "").join("") ?? "";
  }
}
