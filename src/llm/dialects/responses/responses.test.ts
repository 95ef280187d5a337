import { describe, expect, test } from "vitest";
import { BadRequestError, type DialectName } from "../dialect.ts";
import type { RequestEcho } from "../model.ts";
import { createStreamReader, translateRequest, translateResponse } from "../registry.ts";
import { SseParser } from "../sse.ts";
import { streams, toSse } from "../testdata/fixtures/streams.ts";
import { JsonBody } from "../../request/json-body.ts";
import { responses } from "./dialect.ts";
import { upstreamName } from "./tools.ts";

const IDENTITY = { model: "m", id: "ID", now: 1_000 } as const;

interface StreamedEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly output_index?: number;
  readonly item?: { readonly id: string };
  readonly delta?: string;
  readonly response?: { readonly output: readonly object[]; readonly status: string };
}

function stream(upstream: DialectName, sse: string, echo?: RequestEcho): StreamedEvent[] {
  const client = "responses";
  const reader = createStreamReader({ upstream, client, wantsUsage: true, ...IDENTITY, echo });
  const text = Buffer.concat([reader.push(Buffer.from(sse)), reader.end()]);
  return new SseParser().push(text).map(({ name, data }) => {
    const event = JSON.parse(data) as StreamedEvent;
    expect(event.type).toBe(name);
    return event;
  });
}

function echoOf(body: object): RequestEcho {
  const echo = responses.readEcho?.(JsonBody.read(Buffer.from(JSON.stringify(body))));
  if (echo === undefined) throw new Error("no echo");
  return echo;
}

describe.each(["openai", "anthropic", "gemini"] as const)("a stream of %s", (upstream) => {
  test.each(Object.entries(streams[upstream]))("%s is consistent", (_name, sent) => {
    const events = stream(upstream, toSse(upstream, sent));
    // Sequence numbers have no gaps.
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
    // Every item that is closed was opened at the same place, and the end repeats it.
    const added = new Map<number | undefined, string | undefined>();
    for (const { type, output_index, item } of events) {
      if (type === "response.output_item.added") added.set(output_index, item?.id);
      if (type === "response.output_item.done") expect(added.get(output_index)).toBe(item?.id);
    }
    const done = events
      .filter(({ type }) => type === "response.output_item.done")
      .toSorted((a, b) => (a.output_index ?? 0) - (b.output_index ?? 0));
    expect(events.at(-1)?.response?.output).toEqual(done.map(({ item }) => item));
  });
});

describe("a custom tool", () => {
  const body = { model: "m", tools: [{ type: "custom", name: "patch" }] };
  const answer = (text: string) => ({
    choices: [
      {
        index: 0,
        finish_reason: "tool_calls",
        message: {
          role: "assistant",
          tool_calls: [
            { id: "c1", type: "function", function: { name: "patch", arguments: text } },
          ],
        },
      },
    ],
  });
  const shown = (text: string): unknown => {
    const { body: translated } = translateResponse({
      upstream: "openai",
      client: "responses",
      body: answer(text),
      ...IDENTITY,
      echo: echoOf(body),
    });
    return (JSON.parse(translated.toString()) as { output: unknown[] }).output[0];
  };

  test.each([
    ['{"input":"*** Begin"}', "*** Begin"],
    ['{"input":""}', ""],
    // Arguments of another form are kept as they are.
    ['{"patch":"x"}', '{"patch":"x"}'],
    ['{"input":7}', '{"input":7}'],
    ["*** Begin", "*** Begin"],
  ])("%s is its input %s", (text, input) => {
    expect(shown(text)).toEqual({
      id: "ctc_ID_0",
      type: "custom_tool_call",
      status: "completed",
      call_id: "c1",
      name: "patch",
      input,
    });
  });

  test("its input is streamed when it is whole, and calls may be interleaved", () => {
    const delta = (index: number, call: object): string =>
      `data: ${JSON.stringify({
        choices: [{ index: 0, delta: { tool_calls: [{ index, ...call }] } }],
      })}\n\n`;
    const sse = [
      delta(0, { id: "c1", function: { name: "patch", arguments: '{"input":' } }),
      delta(1, { id: "c2", function: { name: "f", arguments: "{" } }),
      delta(0, { function: { arguments: '"x"}' } }),
      delta(1, { function: { arguments: "}" } }),
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n',
      "data: [DONE]\n\n",
    ].join("");
    const events = stream("openai", sse, echoOf(body));
    expect(events.at(-1)?.response).toMatchObject({
      status: "completed",
      output: [
        { type: "custom_tool_call", call_id: "c1", name: "patch", input: "x" },
        { type: "function_call", call_id: "c2", name: "f", arguments: "{}" },
      ],
    });
    const deltas = events.filter(({ type }) => type.endsWith(".delta"));
    expect(deltas.map(({ type, delta: text }) => [type, text])).toEqual([
      ["response.function_call_arguments.delta", "{"],
      ["response.function_call_arguments.delta", "}"],
      ["response.custom_tool_call_input.delta", "x"],
    ]);
  });
});

describe("a tool that OpenAI defines and the client runs", () => {
  const echo = echoOf({
    model: "m",
    tools: [{ type: "shell" }, { type: "local_shell" }, { type: "apply_patch" }],
  });
  const shown = (name: string, text: string): unknown => {
    const call = { id: "c1", type: "function", function: { name, arguments: text } };
    const message = { role: "assistant", tool_calls: [call] };
    const { body } = translateResponse({
      upstream: "openai",
      client: "responses",
      body: { choices: [{ index: 0, finish_reason: "tool_calls", message }] },
      ...IDENTITY,
      echo,
    });
    return (JSON.parse(body.toString()) as { output: unknown[] }).output[0];
  };

  test.each<[string, string, object]>([
    [
      "shell",
      '{"commands":["ls"],"timeout_ms":5}',
      {
        id: "sh_ID_0",
        type: "shell_call",
        action: { commands: ["ls"], timeout_ms: 5, max_output_length: null },
        environment: { type: "local" },
      },
    ],
    [
      "local_shell",
      '{"command":["ls","-l"]}',
      {
        id: "lsh_ID_0",
        type: "local_shell_call",
        action: {
          type: "exec",
          command: ["ls", "-l"],
          env: {},
          working_directory: null,
          timeout_ms: null,
          user: null,
        },
      },
    ],
    [
      "apply_patch",
      '{"type":"create_file","path":"a.txt","diff":"+hi"}',
      {
        id: "apc_ID_0",
        type: "apply_patch_call",
        operation: { type: "create_file", path: "a.txt", diff: "+hi" },
      },
    ],
  ])("%s", (name, text, item) => {
    expect(shown(name, text)).toEqual({ ...item, status: "completed", call_id: "c1" });
  });

  test.each(["{}", "[]", "no JSON", '{"commands":7,"command":[1],"type":2,"path":[]}'])(
    "arguments %s do not break the answer",
    (text) => {
      for (const name of ["shell", "local_shell", "apply_patch"])
        expect(shown(name, text)).toMatchObject({ call_id: "c1" });
    },
  );

  test("its stream has the item alone", () => {
    const call = {
      index: 0,
      id: "c1",
      function: { name: "shell", arguments: '{"commands":["ls"]}' },
    };
    const sse =
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n` +
      'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n' +
      "data: [DONE]\n\n";
    const events = stream("openai", sse, echo);
    expect(events.map(({ type }) => type).slice(2)).toEqual([
      "response.output_item.added",
      "response.output_item.done",
      "response.completed",
    ]);
    expect(events[3]?.item).toMatchObject({ type: "shell_call", action: { commands: ["ls"] } });
  });
});

test("a call that the output limit truncated is never closed", () => {
  const call = { index: 0, id: "c1", function: { name: "patch", arguments: '{"input":"*** Beg' } };
  const sse =
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n` +
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n' +
    "data: [DONE]\n\n";
  const echo = echoOf({ model: "m", tools: [{ type: "custom", name: "patch" }] });
  const events = stream("openai", sse, echo);
  expect(events.map(({ type }) => type)).toEqual([
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.incomplete",
  ]);
  expect(events.at(-1)?.response).toMatchObject({
    output: [],
    incomplete_details: { reason: "max_output_tokens" },
  });
});

test("a limit of the caller is requested, if the request has none", () => {
  const limitOf = (body: object): unknown => {
    const request = {
      from: "responses",
      to: "anthropic",
      model: "m",
      stream: false,
      mode: "strict",
    } as const;
    const translated = translateRequest({ ...request, body, outputCap: 77 });
    return (JSON.parse(translated.body.toString()) as { max_tokens: number }).max_tokens;
  };
  expect(limitOf({ model: "m", input: "x" })).toBe(77);
  expect(limitOf({ model: "m", input: "x", max_output_tokens: 9 })).toBe(9);
});

describe("a tool of a namespace", () => {
  test("has one name at the upstream, and its own in the answer", () => {
    const body = {
      model: "m",
      input: "Hi",
      tools: [
        { type: "namespace", name: "mcp__files", tools: [{ type: "function", name: "read" }] },
      ],
    };
    const request = {
      from: "responses",
      to: "openai",
      body,
      model: "m",
      stream: false,
      mode: "strict",
    } as const;
    expect(JSON.parse(translateRequest(request).body.toString())).toMatchObject({
      tools: [{ function: { name: "mcp__files__read" } }],
    });
    expect(echoOf(body).tools.get("mcp__files__read")).toEqual({
      kind: "function",
      name: "read",
      namespace: "mcp__files",
    });
  });

  test("has a name that every vendor accepts, and no other tool's", () => {
    const long = "n".repeat(60);
    const names = ["a", "b"].map((end) => upstreamName(`read_${end}`, long));
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{64}$/);
    expect(upstreamName("read", "mcp__files__")).toBe("mcp__files__read");
    expect(upstreamName("read", undefined)).toBe("read");
  });
});

describe("the settings that an answer repeats", () => {
  test("are those of the request, without what is large", () => {
    const schema = { type: "object", description: "x".repeat(20_000) };
    const { settings, tools } = echoOf({
      model: "m",
      instructions: "secret words",
      temperature: 0.5,
      metadata: { a: "b" },
      top_p: null,
      text: { format: { type: "json_schema", name: "n", schema } },
      tools: [{ type: "function", name: "f" }, { type: "web_search" }],
    });
    expect(settings).toEqual({ temperature: 0.5, metadata: { a: "b" } });
    expect(tools.size).toBe(0);
  });

  test("are bounded, since they are kept while the call lives", () => {
    const custom = (name: string) => ({ type: "custom", name });
    const many = Array.from({ length: 5_000 }, (_, n) => custom(`t${n}`));
    expect(echoOf({ model: "m", tools: many }).tools.size).toBe(1_000);
    const long = "n".repeat(10_000);
    const tools = [custom(long), { type: "namespace", name: long, tools: [custom("f")] }];
    expect(echoOf({ model: "m", tools }).tools.size).toBe(0);
  });

  test.each([null, 7, "x", {}, [null, 7, [], { type: "namespace", name: 7, tools: 3 }]])(
    "are read from tools that are %j",
    (tools) => {
      expect(echoOf({ model: "m", tools }).tools.size).toBe(0);
    },
  );
});

describe("hostile input", () => {
  const refused = (body: object): BadRequestError => {
    try {
      translateRequest({
        from: "responses",
        to: "openai",
        body,
        model: "m",
        stream: false,
        mode: "lenient",
      });
    } catch (error) {
      if (error instanceof BadRequestError) return error;
      throw error;
    }
    throw new Error("accepted");
  };

  test.each<[string, object, string]>([
    ["no input", {}, "input"],
    ["an object as input", { input: {} }, "input"],
    ["an item that is no object", { input: ["x"] }, "input[0]"],
    ["a role of another API", { input: [{ role: "tool", content: "x" }] }, "input[0].role"],
    [
      "content without a type",
      { input: [{ role: "user", content: [{}] }] },
      "input[0].content[0].type",
    ],
    [
      "a system message with an image",
      {
        input: [
          {
            role: "system",
            content: [{ type: "input_image", image_url: "data:image/png;base64,AA" }],
          },
        ],
      },
      "input[0].content",
    ],
    ["a call without an id", { input: [{ type: "function_call", name: "f" }] }, "input[0].call_id"],
    ["a tool without a type", { input: "x", tools: [{ name: "f" }] }, "tools[0].type"],
    [
      "a hosted tool in a namespace",
      { input: "x", tools: [{ type: "namespace", name: "n", tools: [{ type: "mcp" }] }] },
      "tools[0].tools[0].type",
    ],
    [
      "an MCP server",
      { input: "x", tools: [{ type: "mcp", server_url: "https://x" }] },
      "tools[0]",
    ],
    ["a conversation", { input: "x", conversation: { id: "c" } }, "conversation"],
    ["a stored prompt", { input: "x", prompt: { id: "p" } }, "prompt"],
    ["a background call", { input: "x", background: true }, "background"],
    ["a background that is no boolean", { input: "x", background: "yes" }, "background"],
  ])("%s is refused with its place", (_name, body, param) => {
    expect(refused(body).param).toBe(param);
  });

  test.each([
    ["previous_response_id", "resp_1"],
    ["conversation", "conv_1"],
    ["prompt", { id: "p" }],
    ["background", true],
  ])("%s is refused as stored by OpenAI only", (field, value) => {
    const { code, message } = refused({ input: "x", [field]: value });
    expect(code).toBe("unsupported_by_upstream");
    expect(message).toMatch(/only OpenAI (stores|does)/);
  });
});
