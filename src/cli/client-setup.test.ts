/** The official SDKs, with what `svc gateway env` sets: where do they call, and with which key? */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { anthropicBaseURL, openaiBaseURL } from "./client-setup.ts";

const BASE = "https://gateway.example.com/team";

interface Call {
  readonly url: string;
  readonly headers: Headers;
}

function recorder(calls: Call[]): typeof fetch {
  return async (input, init) => {
    calls.push({ url: input instanceof Request ? input.url : input.toString(), headers: new Headers(init?.headers) });
    return Response.json({});
  };
}

test("Anthropic's adds /v1/messages", async () => {
  const calls: Call[] = [];
  const client = new Anthropic({ baseURL: anthropicBaseURL(BASE), apiKey: "wrapped", authToken: null, fetch: recorder(calls) });
  await client.messages.create({ model: "m", max_tokens: 1, messages: [] });
  await client.messages.countTokens({ model: "m", messages: [] });
  expect(calls.map(({ url }) => url)).toEqual([`${BASE}/ext/v1/messages`, `${BASE}/ext/v1/messages/count_tokens`]);
  // One key, in one of the headers that the gateway reads.
  expect([calls[0]?.headers.get("x-api-key"), calls[0]?.headers.get("authorization")].filter((value) => value !== null)).toEqual([expect.stringMatching(/^(?:Bearer )?wrapped$/)]);
});

test("OpenAI's adds /chat/completions", async () => {
  const calls: Call[] = [];
  const client = new OpenAI({ baseURL: openaiBaseURL(BASE), apiKey: "raw", fetch: recorder(calls) });
  await client.chat.completions.create({ model: "m", messages: [] });
  expect(calls.map(({ url }) => url)).toEqual([`${BASE}/ext/v1/chat/completions`]);
  expect(calls[0]?.headers.get("authorization")).toBe("Bearer raw");
});
