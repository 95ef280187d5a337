/**
 * The mock model behind OpenAI's Responses API, whole and streamed: the same answers as in chats.
 * Field names: `Response` and `ResponseStreamEvent` of the openai SDK.
 */
import { type MockAnswer, mockAnswer } from "./chat.ts";

type Json = Readonly<Record<string, unknown>>;

const ID = "resp_mock";
const CREATED = 1_700_000_000;

/** Returns the response to a request, whose `input` must be present. */
export function mockResponse(request: Json): object {
  const answer = answerOf(request);
  return responseObject(request, "completed", outputOf(request, answer), answer);
}

/** Returns the events of the same response, as server-sent events. */
export function mockResponseEvents(request: Json): readonly string[] {
  const answer = answerOf(request);
  const output = outputOf(request, answer);
  const events: string[] = [];
  const send = (type: string, fields: object): void => {
    const data = JSON.stringify({ type, sequence_number: events.length, ...fields });
    events.push(`event: ${type}\ndata: ${data}\n\n`);
  };
  const begun = { response: responseObject(request, "in_progress", []) };
  send("response.created", begun);
  send("response.in_progress", begun);
  output.forEach((item, index) => sendItem(item, index, send));
  send("response.completed", { response: responseObject(request, "completed", output, answer) });
  return events;
}

type Item =
  | { readonly type: "message"; readonly id: string; readonly content: readonly [Text] }
  | { readonly type: "function_call"; readonly id: string; readonly arguments: string }
  | { readonly type: "custom_tool_call"; readonly id: string; readonly input: string };

interface Text {
  readonly type: "output_text";
  readonly text: string;
}

function sendItem(item: Item, index: number, send: (type: string, fields: object) => void): void {
  const place = { item_id: item.id, output_index: index };
  switch (item.type) {
    case "message": {
      const [part] = item.content;
      const at = { ...place, content_index: 0 };
      const empty = { ...part, text: "" };
      send("response.output_item.added", open(index, { ...item, content: [] }));
      send("response.content_part.added", { ...at, part: empty });
      for (const delta of part.text.match(/\S+\s*/g) ?? [])
        send("response.output_text.delta", { ...at, delta, logprobs: [] });
      send("response.output_text.done", { ...at, text: part.text, logprobs: [] });
      send("response.content_part.done", { ...at, part });
      break;
    }
    case "function_call": {
      const text = item.arguments;
      send("response.output_item.added", open(index, { ...item, arguments: "" }));
      send("response.function_call_arguments.delta", { ...place, delta: text });
      send("response.function_call_arguments.done", { ...place, arguments: text });
      break;
    }
    case "custom_tool_call": {
      const { input } = item;
      send("response.output_item.added", open(index, { ...item, input: "" }));
      send("response.custom_tool_call_input.delta", { ...place, delta: input });
      send("response.custom_tool_call_input.done", { ...place, input });
      break;
    }
  }
  send("response.output_item.done", { output_index: index, item });
}

function open(index: number, item: object): object {
  return { output_index: index, item: { ...item, status: "in_progress" } };
}

/** Asks the mock model in the form of a chat. */
function answerOf(request: Json): MockAnswer {
  const { input } = request;
  const items: readonly unknown[] = Array.isArray(input)
    ? input
    : [{ role: "user", content: input }];
  return mockAnswer({
    messages: items.filter(isObject).map((item) => {
      const { type, role, content, output } = item;
      return typeof type === "string" && type.endsWith("_output")
        ? { role: "tool", content: output }
        : { role: typeof role === "string" ? role : "assistant", content };
    }),
    tools: toolsOf(request).map(({ name }) => ({ function: { name } })),
  });
}

function toolsOf(request: Json): readonly { readonly name: string; readonly custom: boolean }[] {
  const { tools } = request;
  return (Array.isArray(tools) ? tools : [])
    .filter(isObject)
    .flatMap(({ type, name }) =>
      typeof name === "string" && (type === "function" || type === "custom")
        ? [{ name, custom: type === "custom" }]
        : [],
    );
}

function outputOf(request: Json, { text, toolCalls }: MockAnswer): readonly Item[] {
  const custom = new Set(toolsOf(request).flatMap((tool) => (tool.custom ? [tool.name] : [])));
  const status = "completed";
  if (toolCalls.length === 0) {
    const part = { type: "output_text", text, annotations: [], logprobs: [] } as const;
    const role = "assistant";
    return [{ type: "message", id: "msg_mock", status, role, content: [part] } as Item];
  }
  return toolCalls.map((call, index): Item => {
    const called = { status, call_id: call.id, name: call.name };
    return custom.has(call.name)
      ? { type: "custom_tool_call", id: `ctc_mock_${index}`, ...called, input: call.arguments }
      : { type: "function_call", id: `fc_mock_${index}`, ...called, arguments: call.arguments };
  });
}

/** @param answer the answer, if it is complete */
function responseObject(
  request: Json,
  status: "in_progress" | "completed",
  output: readonly object[],
  answer?: MockAnswer,
): object {
  return {
    id: ID,
    object: "response",
    created_at: CREATED,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    model: request["model"],
    output,
    parallel_tool_calls: true,
    temperature: null,
    tool_choice: "auto",
    tools: [],
    top_p: null,
    usage: answer === undefined ? null : usageOf(answer),
  };
}

function usageOf({ promptTokens, completionTokens }: MockAnswer): object {
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + completionTokens,
  };
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}
