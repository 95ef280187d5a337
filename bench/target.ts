/** Targets of the load, and a check that they work. */
import { CLIENT_KEY, PATH, requestBody, SSE_PARTS, TEXT } from "./answers.ts";
import type { ProcessTree } from "./stats.ts";

export interface Endpoint {
  readonly port: number;
  readonly key: string;
  readonly model: string;
}

export interface McpEndpoint {
  readonly path: string;
  readonly key: string;
}

export interface Target extends Endpoint {
  readonly name: string;
  /** Its endpoint of the mock MCP server; undefined if it has none. */
  readonly mcp?: McpEndpoint;
  /** Whether each request has another prompt. */
  readonly unique?: boolean;
  /** undefined for the upstream itself, whose processes are not measured. */
  readonly tree: ProcessTree | undefined;
}

interface Body {
  readonly choices: readonly {
    readonly message?: { readonly content: string };
    readonly delta?: { readonly content?: string };
  }[];
  readonly usage?: { readonly completion_tokens: number } | null;
}

async function ask(
  { port, key, model }: Endpoint,
  stream: boolean,
): Promise<{ status: number; text: string }> {
  const response = await fetch(`http://127.0.0.1:${port}${PATH}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: requestBody({ model, stream }),
  });
  return { status: response.status, text: await response.text() };
}

export async function answers200(endpoint: Endpoint): Promise<true | undefined> {
  return (await ask(endpoint, false)).status === 200 ? true : undefined;
}

/**
 * A complete answer and a complete stream must arrive. The upstream refuses any key but the
 * provider's, so both also prove that the key was replaced; {@link checkRefusal} checks the
 * refusal.
 */
export async function check(target: Target): Promise<void> {
  const whole = await ask(target, false);
  expect(target, whole.status === 200, `status ${whole.status}: ${whole.text}`);
  const body = JSON.parse(whole.text) as Body;
  expect(target, body.choices[0]?.message?.content === TEXT, "the answer's text is another");
  expect(
    target,
    body.usage?.completion_tokens === SSE_PARTS.length,
    "the answer's usage is another",
  );

  const streamed = await ask(target, true);
  expect(
    target,
    streamed.status === 200,
    `status of a stream ${streamed.status}: ${streamed.text}`,
  );
  const events = [...streamed.text.matchAll(/^data: (.*)$/gm)].map((match) => match[1] ?? "");
  expect(target, events.pop() === "[DONE]", "the stream does not end with [DONE]");
  const parts = events.map((event) => JSON.parse(event) as Body);
  expect(
    target,
    parts.map((part) => part.choices[0]?.delta?.content ?? "").join("") === TEXT,
    "the stream's text is another",
  );
  expect(
    target,
    parts.at(-1)?.usage?.completion_tokens === SSE_PARTS.length,
    "the stream's usage is another",
  );
}

/** The upstream must refuse the clients' keys, because otherwise a 200 would prove nothing. */
export async function checkRefusal(upstream: Target): Promise<void> {
  const { status } = await ask({ ...upstream, key: CLIENT_KEY }, false);
  expect(upstream, status === 401, `it answers ${status} to a client's key`);
}

function expect(target: Target, condition: boolean, message: string): void {
  if (!condition) throw new Error(`${target.name}: ${message}`);
}
