/**
 * Serves the mock model in one dialect. The gateway's own dialects read the requests and write the
 * answers, so that the mock answers what the vendor's definitions say.
 */
import { createHash } from "node:crypto";
import type { ClientDialect } from "../llm/dialects/contract.ts";
import type { Block, ChatResponse, ContentEvent, ResponseIdentity } from "../llm/dialects/model.ts";
import type { MockAnswer } from "./answer.ts";

const NOW = 1_700_000_000_000;

export interface Asked {
  /** The request's body: clients merge messages of one id, so that each request needs its own. */
  readonly text: string;
  /** Name of the model, as the request writes it. */
  readonly model: string;
  readonly echo: ResponseIdentity["echo"];
}

function identityOf({ text, model, echo }: Asked): ResponseIdentity {
  const id = `mock${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
  return { id, model, now: NOW, echo };
}

export function wholeAnswer(dialect: ClientDialect, asked: Asked, answer: MockAnswer): Response {
  return Response.json(dialect.serialiseResponse(responseOf(answer), identityOf(asked)));
}

/** @param wantsUsage whether the client asked for usage in the stream */
export function streamedAnswer(
  dialect: ClientDialect,
  asked: Asked,
  answer: MockAnswer,
  wantsUsage: boolean,
): Response {
  const identity = identityOf(asked);
  const serialiser = dialect.streamSerialiser(identity, wantsUsage);
  const { finish, usage } = responseOf(answer);
  const parts = [
    ...eventsOf(answer, identity).map((event) => serialiser.event(event)),
    serialiser.close(finish, usage),
  ];
  const events = parts.filter((part) => part !== "").map((part) => Buffer.from(part));
  return new Response(ReadableStream.from(events), {
    headers: { "content-type": "text/event-stream", "cache-control": "no-cache" },
  });
}

function responseOf(answer: MockAnswer): ChatResponse {
  const { text, toolCalls, promptTokens, completionTokens } = answer;
  const texts: Block[] = text === "" ? [] : [{ kind: "text", text }];
  return {
    id: undefined,
    model: undefined,
    content: [...texts, ...toolCalls],
    finish: { kind: toolCalls.length > 0 ? "tool_calls" : "stop" },
    usage: {
      inputTokens: promptTokens,
      cachedInputTokens: 0,
      cacheWrite5mTokens: 0,
      cacheWrite1hTokens: 0,
      outputTokens: completionTokens,
      reasoningTokens: undefined,
    },
  };
}

/** One event for each word, and two for the arguments of a call. */
function eventsOf(
  { text, toolCalls }: MockAnswer,
  { id, model }: ResponseIdentity,
): ContentEvent[] {
  return [
    { kind: "start", id, model },
    ...(text.match(/\S+\s*/g) ?? []).map((piece): ContentEvent => ({ kind: "text", text: piece })),
    ...toolCalls.flatMap(({ id: callId, name, arguments: all }, call): ContentEvent[] => {
      const half = Math.ceil(all.length / 2);
      return [
        { kind: "call_start", call, id: callId, name, signature: undefined },
        { kind: "call_arguments", call, text: all.slice(0, half) },
        { kind: "call_arguments", call, text: all.slice(half) },
      ];
    }),
  ];
}
