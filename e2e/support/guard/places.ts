/** Requests that contain a text in one place, in each API that the guard scans. */
import type { DialectName, Handler, Vendor } from "../vendors.ts";

export const PLACES = [
  "system",
  "user",
  "tool result, a string",
  "tool result, blocks",
  "tool arguments",
  "thinking",
  "tool definition",
  "response",
] as const;

export type Place = (typeof PLACES)[number];
type RequestPlace = Exclude<Place, "response">;

/** What a guard reports about a text. */
export interface Reported {
  readonly where: "prompt" | "tool_result" | "response";
  readonly tool: string;
  readonly param: string;
}

/** A request, and where it has the text. */
interface Sample {
  readonly body: object;
  readonly param: string;
}

export interface GuardedApi {
  readonly name: string;
  /** Which fake serves it. */
  readonly vendor: DialectName;
  /** Form of its errors. */
  readonly errors: DialectName;
  readonly path: (model: string, stream: boolean) => string;
  readonly streams: boolean;
  /** Whether the model answers with text. */
  readonly answers: boolean;
  readonly sample: (place: RequestPlace, text: string) => Sample;
  /** Members beside the text's. */
  readonly rest: (model: string, stream: boolean) => object;
  /** Answers with a text. */
  readonly reply: (vendor: Vendor, text: string) => Handler;
  /** Place of the text in the answer. */
  readonly answerParam: { readonly whole: string; readonly streamed: string };
}

/** The tool of every sample. */
export const TOOL = "web_fetch";

const modelInBody = (model: string, stream: boolean): object => ({
  model,
  ...(stream ? { stream } : {}),
});

function openaiSample(place: RequestPlace, text: string): Sample {
  const user = { role: "user", content: "Hi" };
  const call = (args: object): object => ({
    role: "assistant",
    content: null,
    tool_calls: [
      {
        id: "call_1",
        type: "function",
        function: { name: TOOL, arguments: JSON.stringify(args) },
      },
    ],
  });
  const result = (content: unknown): Sample["body"] => ({
    messages: [user, call({}), { role: "tool", tool_call_id: "call_1", content }],
  });
  switch (place) {
    case "system":
      return {
        body: { messages: [{ role: "system", content: text }, user] },
        param: "messages[0].content",
      };
    case "user":
      return {
        body: { messages: [{ role: "user", content: text }] },
        param: "messages[0].content",
      };
    case "tool result, a string":
      return { body: result(text), param: "messages[2].content" };
    case "tool result, blocks":
      return {
        body: result([
          { type: "text", text: "First." },
          { type: "text", text },
        ]),
        param: "messages[2].content[1]",
      };
    case "tool arguments":
      return {
        body: { messages: [user, call({ q: text })] },
        param: "messages[1].tool_calls[0]",
      };
    case "thinking":
      return {
        body: {
          messages: [user, { role: "assistant", content: "Hm.", reasoning_content: text }, user],
        },
        param: "messages[1].reasoning_content",
      };
    case "tool definition":
      return {
        body: {
          messages: [user],
          tools: [
            { type: "function", function: { name: TOOL, description: text, parameters: {} } },
          ],
        },
        param: "tools[0]",
      };
  }
}

function anthropicSample(place: RequestPlace, text: string): Sample {
  const user = { role: "user", content: "Hi" };
  const assistant = (...content: object[]): object => ({ role: "assistant", content });
  const call = (input: object): object => ({ type: "tool_use", id: "toolu_1", name: TOOL, input });
  const result = (content: unknown): object => ({
    messages: [
      user,
      assistant(call({})),
      { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content }] },
    ],
  });
  switch (place) {
    case "system":
      return { body: { system: text, messages: [user] }, param: "system" };
    case "user":
      return {
        body: { messages: [{ role: "user", content: [{ type: "text", text }] }] },
        param: "messages[0].content[0]",
      };
    case "tool result, a string":
      return { body: result(text), param: "messages[2].content[0].content" };
    case "tool result, blocks":
      return {
        body: result([
          { type: "text", text: "First." },
          { type: "text", text },
        ]),
        param: "messages[2].content[0].content[1]",
      };
    case "tool arguments":
      return {
        body: { messages: [user, assistant(call({ q: text }))] },
        param: "messages[1].content[0]",
      };
    case "thinking":
      return {
        body: {
          messages: [
            user,
            assistant(
              { type: "thinking", thinking: text, signature: "c2lnbmVk" },
              { type: "text", text: "Hm." },
            ),
            user,
          ],
        },
        param: "messages[1].content[0]",
      };
    case "tool definition":
      return {
        body: {
          messages: [user],
          tools: [{ name: TOOL, description: text, input_schema: { type: "object" } }],
        },
        param: "tools[0]",
      };
  }
}

function geminiSample(place: RequestPlace, text: string): Sample {
  const user = { role: "user", parts: [{ text: "Hi" }] };
  const called = (args: object): object => ({
    role: "model",
    parts: [{ functionCall: { name: TOOL, args } }],
  });
  const result = (response: object): object => ({
    contents: [
      user,
      called({}),
      { role: "user", parts: [{ functionResponse: { name: TOOL, response } }] },
    ],
  });
  switch (place) {
    case "system":
      return {
        body: { systemInstruction: { parts: [{ text }] }, contents: [user] },
        param: "systemInstruction.parts[0]",
      };
    case "user":
      return {
        body: { contents: [{ role: "user", parts: [{ text }] }] },
        param: "contents[0].parts[0]",
      };
    case "tool result, a string":
      return { body: result({ output: text }), param: "contents[2].parts[0]" };
    case "tool result, blocks":
      return {
        body: result({
          content: [
            { type: "text", text: "First." },
            { type: "text", text },
          ],
        }),
        param: "contents[2].parts[0]",
      };
    case "tool arguments":
      return { body: { contents: [user, called({ q: text })] }, param: "contents[1].parts[0]" };
    case "thinking":
      return {
        body: {
          contents: [
            user,
            { role: "model", parts: [{ text, thought: true }, { text: "Hm." }] },
            user,
          ],
        },
        param: "contents[1].parts[0]",
      };
    case "tool definition":
      return {
        body: {
          contents: [user],
          tools: [{ functionDeclarations: [{ name: TOOL, description: text }] }],
        },
        param: "tools[0]",
      };
  }
}

function responsesSample(place: RequestPlace, text: string): Sample {
  const user = { role: "user", content: "Hi" };
  const call = (args: object): object => ({
    type: "function_call",
    call_id: "call_1",
    name: TOOL,
    arguments: JSON.stringify(args),
  });
  const result = (output: unknown): object => ({
    input: [user, call({}), { type: "function_call_output", call_id: "call_1", output }],
  });
  switch (place) {
    case "system":
      return { body: { instructions: text, input: "Hi" }, param: "instructions" };
    case "user":
      return { body: { input: [{ role: "user", content: text }] }, param: "input[0].content" };
    case "tool result, a string":
      return { body: result(text), param: "input[2].output" };
    case "tool result, blocks":
      return {
        body: result([
          { type: "input_text", text: "First." },
          { type: "input_text", text },
        ]),
        param: "input[2].output[1]",
      };
    case "tool arguments":
      return { body: { input: [user, call({ q: text })] }, param: "input[1]" };
    case "thinking":
      return {
        body: {
          input: [
            user,
            { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text }] },
            user,
          ],
        },
        param: "input[1]",
      };
    case "tool definition":
      return {
        body: {
          input: "Hi",
          tools: [{ type: "function", name: TOOL, description: text, parameters: {} }],
        },
        param: "tools[0]",
      };
  }
}

const saysText = (vendor: Vendor, text: string): Handler =>
  vendor.says({ text: [text.slice(0, 7), text.slice(7)] });

/** OpenAI's Responses API, whole or streamed. */
function responds(vendor: Vendor, text: string): Handler {
  const item = {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text, annotations: [] }],
  };
  const response = {
    id: "resp_1",
    object: "response",
    created_at: 1_700_000_000,
    status: "completed",
    model: "gpt-4o-mini",
    output: [item],
    usage: { input_tokens: 9, output_tokens: 2, total_tokens: 11 },
  };
  return (request, reply) => {
    if (request.json["stream"] !== true) return vendor.replies(200, response)(request, reply);
    reply.writeHead(200, { "content-type": "text/event-stream" });
    const place = { item_id: "msg_1", output_index: 0, content_index: 0 };
    const events = [
      { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
      { type: "response.output_text.delta", ...place, delta: text.slice(0, 7) },
      { type: "response.output_text.delta", ...place, delta: text.slice(7) },
      { type: "response.completed", response },
    ];
    for (const [index, event] of events.entries()) {
      const data = JSON.stringify({ ...event, sequence_number: index });
      reply.write(`event: ${event.type}\ndata: ${data}\n\n`);
    }
    reply.end();
  };
}

const GEMINI_ANSWER = { whole: "candidates[0].content.parts[0]", streamed: "text.0" };

/** By name. */
export const APIS: readonly GuardedApi[] = [
  {
    name: "chat",
    vendor: "openai",
    errors: "openai",
    path: () => "/v1/chat/completions",
    streams: true,
    answers: true,
    sample: openaiSample,
    rest: modelInBody,
    reply: saysText,
    answerParam: { whole: "choices[0].message.content", streamed: "0.content" },
  },
  {
    name: "messages",
    vendor: "anthropic",
    errors: "anthropic",
    path: () => "/v1/messages",
    streams: true,
    answers: true,
    sample: anthropicSample,
    rest: (model, stream) => ({ ...modelInBody(model, stream), max_tokens: 64 }),
    reply: saysText,
    answerParam: { whole: "content[0]", streamed: "0.text_delta" },
  },
  {
    name: "count_tokens",
    vendor: "anthropic",
    errors: "anthropic",
    path: () => "/v1/messages/count_tokens",
    streams: false,
    answers: false,
    sample: anthropicSample,
    rest: modelInBody,
    reply: (vendor) => vendor.replies(200, { input_tokens: 42 }),
    answerParam: { whole: "", streamed: "" },
  },
  {
    name: "generateContent",
    vendor: "gemini",
    errors: "gemini",
    path: (model, stream) =>
      `/v1beta/models/${model}:` + (stream ? "streamGenerateContent?alt=sse" : "generateContent"),
    streams: true,
    answers: true,
    sample: geminiSample,
    rest: () => ({}),
    reply: saysText,
    answerParam: GEMINI_ANSWER,
  },
  {
    name: "countTokens",
    vendor: "gemini",
    errors: "gemini",
    path: (model) => `/v1beta/models/${model}:countTokens`,
    streams: false,
    answers: false,
    sample: geminiSample,
    rest: () => ({}),
    reply: (vendor) => vendor.replies(200, { totalTokens: 42 }),
    answerParam: GEMINI_ANSWER,
  },
  {
    name: "countTokens of a whole request",
    vendor: "gemini",
    errors: "gemini",
    path: (model) => `/v1beta/models/${model}:countTokens`,
    streams: false,
    answers: false,
    sample: (place, text) => {
      const { body, param } = geminiSample(place, text);
      return {
        body: { generateContentRequest: body },
        param: `generateContentRequest.${param}`,
      };
    },
    rest: () => ({}),
    reply: (vendor) => vendor.replies(200, { totalTokens: 42 }),
    answerParam: GEMINI_ANSWER,
  },
  {
    name: "responses",
    vendor: "openai",
    errors: "openai",
    path: () => "/v1/responses",
    streams: true,
    answers: true,
    sample: responsesSample,
    rest: modelInBody,
    reply: responds,
    answerParam: {
      whole: "output[0].content[0]",
      streamed: "response.output_text.delta.0.0.0",
    },
  },
];

/** Returns what a guard reports about the text; the body has it in this place. */
export function reportedOf(api: GuardedApi, place: Place, stream: boolean): Reported {
  if (place === "response") {
    const { whole, streamed } = api.answerParam;
    return { where: "response", tool: "", param: stream ? streamed : whole };
  }
  const { param } = api.sample(place, "");
  return place.startsWith("tool result")
    ? { where: "tool_result", tool: TOOL, param }
    : { where: "prompt", tool: "", param };
}
