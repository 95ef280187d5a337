/**
 * Tests the destination and the key of the official SDKs with the variables of `svc gateway env`.
 */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { expect, test } from "vitest";
import { parseRoute } from "../llm/request/routes.ts";
import { clientBaseURL } from "./client-setup.ts";

const BASE = "https://gateway.example.com";

interface Call {
  readonly url: string;
  readonly headers: Headers;
}

function recorder(calls: Call[]): typeof fetch {
  return async (input, init) => {
    calls.push({
      url: input instanceof Request ? input.url : input.toString(),
      headers: new Headers(init?.headers),
    });
    return Response.json({});
  };
}

/** The path that the gateway derives from a call's path. */
function operation({ url }: Call): string | undefined {
  expect(new URL(url).origin).toBe(BASE);
  const route = parseRoute(new URL(url).pathname);
  expect(route?.audience).toBe("external");
  return route?.operation;
}

test("Anthropic's reaches its paths", async () => {
  const calls: Call[] = [];
  const client = new Anthropic({
    baseURL: clientBaseURL(BASE),
    apiKey: "wrapped",
    authToken: null,
    fetch: recorder(calls),
  });
  await client.messages.create({ model: "m", max_tokens: 1, messages: [] });
  await client.messages.countTokens({ model: "m", messages: [] });
  expect(calls.map(operation)).toEqual(["chat", "count_tokens"]);
  // One key, in one of the headers that the gateway reads.
  expect(
    [calls[0]?.headers.get("x-api-key"), calls[0]?.headers.get("authorization")].filter(
      (value) => value !== null,
    ),
  ).toEqual([expect.stringMatching(/^(?:Bearer )?wrapped$/)]);
});

test("OpenAI's reaches its paths", async () => {
  const calls: Call[] = [];
  const client = new OpenAI({
    baseURL: clientBaseURL(BASE),
    apiKey: "raw",
    fetch: recorder(calls),
  });
  await client.chat.completions.create({ model: "m", messages: [] });
  await client.embeddings.create({ model: "m", input: "x" }).catch(() => undefined);
  expect(calls.map(operation)).toEqual(["chat", "embeddings"]);
  expect(calls[0]?.headers.get("authorization")).toBe("Bearer raw");
});
