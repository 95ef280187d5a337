/**
 * A server with everything that the official conformance suite asks for, of both eras: sessions (up
 * to 2025-11-25), and stateless (2026-07-28). The suite's names of tools, prompts and resources,
 * and what they answer, are those of the suite's own examples:
 * https://github.com/modelcontextprotocol/conformance
 *
 * Program: `conformance-server.ts <port>`.
 */
import { randomBytes, randomUUID } from "node:crypto";
import http from "node:http";
import { text } from "node:stream/consumers";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import {
  acceptedContent,
  type CallToolResult,
  classifyInboundRequest,
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  createRequestStateCodec,
  type EventStore,
  fromJsonSchema,
  type GetPromptResult,
  inputRequired,
  type InputRequests,
  type InputRequiredResult,
  isInitializeRequest,
  McpServer,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as z from "zod";

const port = Number(process.argv[2]);

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

type Content = CallToolResult["content"][number];
type PromptMessage = GetPromptResult["messages"][number];
type ToolAnswer = CallToolResult | InputRequiredResult;

const say = (words: string): Content & PromptMessage["content"] => ({ type: "text", text: words });
const image = { type: "image", data: PNG, mimeType: "image/png" } as const;
const answer = (...content: Content[]): CallToolResult => ({ content });
const user = (content: PromptMessage["content"]): PromptMessage => ({ role: "user", content });

const embedded = (uri: string, mimeType: string, words: string) =>
  ({ type: "resource", resource: { uri, mimeType, text: words } }) as const;

/** Tools that always give the same answer. */
const FIXED_TOOLS: Readonly<Record<string, readonly Content[]>> = {
  test_simple_text: [say("This is a simple text response for testing.")],
  test_image_content: [image],
  test_audio_content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  test_embedded_resource: [
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ],
  test_multiple_content_types: [
    say("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ],
  test_streaming_elicitation: [say("no requests on this stream")],
};

const FIXED_PROMPTS: Readonly<Record<string, readonly PromptMessage[]>> = {
  test_simple_prompt: [user(say("This is a simple prompt for testing."))],
  test_prompt_with_image: [user(image), user(say("Please analyze the image above."))],
};

const RESOURCES: Readonly<
  Record<string, { mimeType: string } & ({ text: string } | { blob: string })>
> = {
  "test://static-text": {
    mimeType: "text/plain",
    text: "This is the content of the static text resource.",
  },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "Watched resource content" },
};

/** JSON Schema 2020-12 with keywords that an intermediary could lose. */
const RICH_SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const options = (prefix: string) => [1, 2, 3].map((n) => `${prefix}${n}`);
const titled = (noun: string) =>
  ["First", "Second", "Third"].map((order, i) => ({
    const: `value${i + 1}`,
    title: `${order} ${noun}`,
  }));

/** Forms of elicitations, by the tool that asks. */
const FORMS: Readonly<Record<string, { readonly message: string; readonly properties: object }>> = {
  test_elicitation_sep1034_defaults: {
    message: "Please review and update the form fields with defaults",
    properties: {
      name: { type: "string", description: "User name", default: "John Doe" },
      age: { type: "integer", description: "User age", default: 30 },
      score: { type: "number", description: "User score", default: 95.5 },
      status: {
        type: "string",
        description: "User status",
        enum: ["active", "inactive", "pending"],
        default: "active",
      },
      verified: { type: "boolean", description: "Verification status", default: true },
    },
  },
  test_elicitation_sep1330_enums: {
    message: "Please select options from the enum fields",
    properties: {
      untitledSingle: { type: "string", enum: options("option") },
      titledSingle: { type: "string", oneOf: titled("Option") },
      legacyEnum: {
        type: "string",
        enum: options("opt"),
        enumNames: ["Option One", "Option Two", "Option Three"],
      },
      untitledMulti: {
        type: "array",
        minItems: 1,
        maxItems: 3,
        items: { type: "string", enum: options("option") },
      },
      titledMulti: {
        type: "array",
        minItems: 1,
        maxItems: 3,
        items: { anyOf: titled("Choice") },
      },
    },
  },
};

const codec = createRequestStateCodec<Record<string, unknown>>({ key: randomBytes(32) });

const elicitText = (message: string, field: string) =>
  inputRequired.elicit({
    message,
    requestedSchema: {
      type: "object",
      properties: { [field]: { type: "string" } },
      required: [field],
    },
  });

const confirm = () =>
  inputRequired.elicit({
    message: "Please confirm",
    requestedSchema: {
      type: "object",
      properties: { ok: { type: "boolean" } },
      required: ["ok"],
    },
  });

const complete = (words: string) =>
  inputRequired.createMessage({
    messages: [{ role: "user", content: { type: "text", text: words } }],
    maxTokens: 50,
  });

/** What a client says that it can be asked. */
type ClientCapabilities = Readonly<
  Partial<Record<"elicitation" | "sampling" | "roots", object | undefined>>
>;

/** Answers of the client to the requests of an earlier result. */
const given = (ctx: ServerContext, key: string) =>
  ctx.mcpReq.inputResponses?.[key] as
    | { readonly content?: { readonly text?: string }; readonly roots?: readonly unknown[] }
    | undefined;

const accepted = (ctx: ServerContext, key: string): Readonly<Record<string, unknown>> | undefined =>
  acceptedContent(ctx.mcpReq.inputResponses, key);

const ask = async (
  inputRequests: InputRequests,
  state?: Record<string, unknown>,
): Promise<InputRequiredResult> =>
  inputRequired({
    inputRequests,
    ...(state === undefined ? {} : { requestState: await codec.mint(state) }),
  });

/** Tools of revision 2026-07-28 that answer with questions (SEP-2322). */
const ASKING: Readonly<Record<string, (ctx: ServerContext) => ToolAnswer | Promise<ToolAnswer>>> = {
  test_missing_capability: (ctx) =>
    given(ctx, "llm_answer") === undefined
      ? ask({ llm_answer: complete("Reply with the single word: pong") })
      : answer(say("done")),
  test_input_required_result_elicitation: (ctx) => {
    const name = accepted(ctx, "user_name")?.["name"];
    return typeof name === "string"
      ? answer(say(`Hello, ${name}!`))
      : ask({ user_name: elicitText("What is your name?", "name") });
  },
  test_input_required_result_sampling: (ctx) => {
    const got = given(ctx, "capital_question");
    return got === undefined
      ? ask({ capital_question: complete("What is the capital of France?") })
      : answer(say(`Sampling response: ${got.content?.text ?? JSON.stringify(got)}`));
  },
  test_input_required_result_list_roots: (ctx) => {
    const roots = given(ctx, "client_roots")?.roots;
    return roots === undefined
      ? ask({ client_roots: inputRequired.listRoots() })
      : answer(say(`Client exposed ${roots.length} root(s): ${JSON.stringify(roots)}`));
  },
  test_input_required_result_request_state: (ctx) =>
    accepted(ctx, "confirm") === undefined || ctx.mcpReq.requestState() === undefined
      ? ask({ confirm: confirm() }, { nonce: randomUUID() })
      : answer(say("state-ok: requestState verified and confirmation received")),
  test_input_required_result_tampered_state: (ctx) =>
    accepted(ctx, "confirm") === undefined || ctx.mcpReq.requestState() === undefined
      ? ask({ confirm: confirm() }, { nonce: randomUUID() })
      : answer(say("integrity-ok: requestState verified")),
  test_input_required_result_multiple_inputs: (ctx) => {
    const name = accepted(ctx, "user_name")?.["name"];
    const greeting = given(ctx, "greeting")?.content?.text;
    const roots = given(ctx, "client_roots")?.roots;
    return typeof name !== "string" || greeting === undefined || roots === undefined
      ? ask(
          {
            user_name: elicitText("What is your name?", "name"),
            greeting: complete("Generate a greeting"),
            client_roots: inputRequired.listRoots(),
          },
          { nonce: randomUUID() },
        )
      : answer(say(`${greeting} ${name}, ${roots.length} root(s) visible`));
  },
  test_input_required_result_multi_round: (ctx) => {
    const state = ctx.mcpReq.requestState<Record<string, unknown>>();
    switch (state?.["round"]) {
      case undefined:
        return ask({ step1: elicitText("Step 1: What is your name?", "name") }, { round: 1 });
      case 1: {
        const name = accepted(ctx, "step1")?.["name"];
        return ask({ step2: elicitText("Step 2: Which color?", "color") }, { round: 2, name });
      }
      default: {
        const color = accepted(ctx, "step2")?.["color"];
        return answer(
          say(`Multi-round complete: ${String(state?.["name"])} likes ${String(color)}`),
        );
      }
    }
  },
  test_input_required_result_capabilities: (ctx) => {
    if (ctx.mcpReq.inputResponses !== undefined) return answer(say("fulfilled"));
    const { [CLIENT_CAPABILITIES_META_KEY]: declared } = (ctx.mcpReq.envelope ?? {}) as Readonly<
      Record<string, ClientCapabilities | undefined>
    >;
    const asked: InputRequests = {
      ...(declared?.elicitation && { user_name: elicitText("What is your name?", "name") }),
      ...(declared?.sampling && { greeting: complete("Generate a short greeting") }),
      ...(declared?.roots && { client_roots: inputRequired.listRoots() }),
    };
    return Object.keys(asked).length === 0 ? answer(say("nothing to ask")) : ask(asked);
  },
};

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Sessions of the older revisions. */
const sessions = new Map<string, NodeStreamableHTTPServerTransport>();

function createServer(): McpServer {
  const server = new McpServer(
    { name: "conformance", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
      },
      requestState: { verify: (state, ctx) => codec.verify(state, ctx) },
    },
  );
  const none = { inputSchema: z.object({}) };
  for (const [name, content] of Object.entries(FIXED_TOOLS))
    server.registerTool(name, { description: name }, () => answer(...content));
  for (const [name, handle] of Object.entries(ASKING))
    server.registerTool(name, { description: name, ...none }, (_args, ctx) => handle(ctx));
  for (const [name, { message, properties }] of Object.entries(FORMS)) {
    server.registerTool(name, { description: name, ...none }, async (_args, ctx) => {
      const requestedSchema = { type: "object", properties, required: [] };
      const { action, content } = await elicit(ctx, message, requestedSchema);
      return answer(say(`Elicitation completed: action=${action}, content=${content}`));
    });
  }
  registerTalkers(server);
  registerSchemas(server);
  registerPrompts(server);
  registerResources(server);
  const low = server.server;
  for (const method of [
    "resources/subscribe",
    "resources/unsubscribe",
    "logging/setLevel",
  ] as const)
    low.setRequestHandler(method, () => ({}));
  low.setRequestHandler("completion/complete", () => ({
    completion: { values: [], total: 0, hasMore: false },
  }));
  return server;
}

async function elicit(
  ctx: ServerContext,
  message: string,
  requestedSchema: object,
): Promise<{ readonly action: string; readonly content: string }> {
  const request = { method: "elicitation/create", params: { message, requestedSchema } };
  const got = (await ctx.mcpReq.send(request as never)) as { action?: string; content?: unknown };
  return { action: String(got.action), content: JSON.stringify(got.content ?? {}) };
}

/** Tools that send messages before their answer. */
function registerTalkers(server: McpServer): void {
  const none = { inputSchema: z.object({}) };
  const log = (ctx: ServerContext, data: string) =>
    ctx.mcpReq.notify({ method: "notifications/message", params: { level: "info", data } });
  server.registerTool(
    "test_tool_with_logging",
    { description: "logs", ...none },
    async (_, ctx) => {
      for (const stage of ["started", "processing", "completed"]) {
        await log(ctx, `Tool execution ${stage}`);
        await pause(20);
      }
      return answer(say("Tool with logging executed successfully"));
    },
  );
  server.registerTool(
    "test_logging_tool",
    { description: "logs if asked", ...none },
    async (_, ctx) => {
      await ctx.mcpReq.log("info", "test_logging_tool ran");
      return answer(say("logged"));
    },
  );
  server.registerTool(
    "test_tool_with_progress",
    { description: "progress", ...none },
    async (_, ctx) => {
      const { _meta: meta } = ctx.mcpReq;
      const progressToken = meta?.progressToken;
      for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
        const params = { progressToken: progressToken as string, progress, total: 100 };
        await ctx.mcpReq.notify({ method: "notifications/progress", params });
        await pause(20);
      }
      return answer(say(String(progressToken)));
    },
  );
  // Not of the suite: long enough to cut its connection.
  server.registerTool("slow", { description: "takes a second", ...none }, async (_, ctx) => {
    const { _meta: meta } = ctx.mcpReq;
    for (let progress = 1; progress <= 5; progress += 1) {
      const params = { progressToken: meta?.progressToken ?? "", progress, total: 5 };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
      await pause(200);
    }
    return answer(say("slow work completed"));
  });
  server.registerTool("test_error_handling", { description: "fails" }, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  server.registerTool(
    "test_reconnection",
    { description: "ends its stream", ...none },
    async (_, ctx) => {
      sessions.get(ctx.sessionId ?? "")?.closeSSEStream(ctx.mcpReq.id);
      await pause(100);
      return answer(say("Reconnection test completed successfully."));
    },
  );
  const prompted = { inputSchema: z.object({ prompt: z.string() }) };
  server.registerTool(
    "test_sampling",
    { description: "samples", ...prompted },
    async (args, ctx) => {
      const messages = [{ role: "user", content: { type: "text", text: args.prompt } }];
      const request = { method: "sampling/createMessage", params: { messages, maxTokens: 100 } };
      const got = (await ctx.mcpReq.send(request as never)) as { content?: { text?: string } };
      return answer(say(`LLM response: ${got.content?.text ?? "none"}`));
    },
  );
  const message = { inputSchema: z.object({ message: z.string() }) };
  server.registerTool(
    "test_elicitation",
    { description: "elicits", ...message },
    async (args, ctx) => {
      const properties = { response: { type: "string", description: "User's response" } };
      const schema = { type: "object", properties, required: ["response"] };
      const { action, content } = await elicit(ctx, args.message, schema);
      return answer(say(`User response: action=${action}, content=${content}`));
    },
  );
  server.registerTool(
    "test_trigger_tool_change",
    { description: "tells listeners", ...none },
    () => {
      stateless.notify.toolsChanged();
      return answer(say("published"));
    },
  );
  server.registerTool(
    "test_trigger_prompt_change",
    { description: "tells listeners", ...none },
    () => {
      stateless.notify.promptsChanged();
      return answer(say("published"));
    },
  );
}

function registerSchemas(server: McpServer): void {
  server.registerTool(
    "json_schema_2020_12_tool",
    { description: "JSON Schema 2020-12", inputSchema: fromJsonSchema(RICH_SCHEMA as never) },
    (args) => answer(say(`called with ${JSON.stringify(args)}`)),
  );
  const mirrored = {
    type: "object",
    properties: {
      region: { type: "string", "x-mcp-header": "Region" },
      level: { type: "integer" },
    },
  };
  server.registerTool(
    "test_x_mcp_header",
    {
      description: "mirrored",
      inputSchema: fromJsonSchema<{ region?: string }>(mirrored as never),
    },
    (args) => answer(say(`region=${args.region ?? "none"}`)),
  );
}

function registerPrompts(server: McpServer): void {
  for (const [name, messages] of Object.entries(FIXED_PROMPTS))
    server.registerPrompt(name, { description: name }, () => ({ messages: [...messages] }));
  const two = { arg1: z.string(), arg2: z.string() };
  server.registerPrompt(
    "test_prompt_with_arguments",
    { description: "arguments", argsSchema: z.object(two) },
    ({ arg1, arg2 }) => ({
      messages: [user(say(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))],
    }),
  );
  server.registerPrompt(
    "test_prompt_with_embedded_resource",
    { description: "a resource", argsSchema: z.object({ resourceUri: z.string() }) },
    ({ resourceUri }) => ({
      messages: [
        user(embedded(resourceUri, "text/plain", "Embedded resource content for testing.")),
        user(say("Please process the embedded resource above.")),
      ],
    }),
  );
  server.registerPrompt("test_input_required_result_prompt", { description: "asks" }, (ctx) => {
    const context = accepted(ctx, "user_context")?.["context"];
    return typeof context === "string"
      ? { messages: [user(say(`Use the following context: ${context}`))] }
      : ask({ user_context: elicitText("What context should the prompt use?", "context") });
  });
}

function registerResources(server: McpServer): void {
  for (const [uri, content] of Object.entries(RESOURCES))
    server.registerResource(
      uri.slice("test://".length),
      uri,
      { title: uri, mimeType: content.mimeType },
      () => ({ contents: [{ uri, ...content }] }),
    );
  server.registerResource(
    "template",
    new ResourceTemplate("test://template/{id}/data", { list: undefined }),
    { title: "Resource Template", mimeType: "application/json" },
    (uri, { id }) => {
      const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` });
      return { contents: [{ uri: uri.href, mimeType: "application/json", text: data }] };
    },
  );
}

/** Keeps the events of all streams, so that each can be resumed. */
function createEventStore(): EventStore {
  const events: { readonly id: string; readonly stream: string; readonly message: never }[] = [];
  return {
    storeEvent: (stream, message) => {
      const id = `${stream}::${String(events.length).padStart(6, "0")}`;
      events.push({ id, stream, message: message as never });
      return Promise.resolve(id);
    },
    replayEventsAfter: async (last, { send }) => {
      const [stream = ""] = last.split("::");
      for (const event of events)
        if (event.stream === stream && event.id > last && Object.keys(event.message).length > 0)
          await send(event.id, event.message);
      return stream;
    },
  };
}

const stateless = createMcpHandler(() => createServer());
const serveStateless = toNodeHandler(stateless);

async function serveSession(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  body: unknown,
): Promise<void> {
  const id = request.headers["mcp-session-id"];
  const known = typeof id === "string" ? sessions.get(id) : undefined;
  if (known !== undefined) return known.handleRequest(request, response, body);
  if (id !== undefined || !isInitializeRequest(body)) {
    const error = { code: -32_001, message: "Session not found" };
    response.writeHead(id === undefined ? 400 : 404, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
    return;
  }
  const server = createServer();
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: createEventStore(),
    retryInterval: 500,
    onsessioninitialized: (own) => void sessions.set(own, transport),
  });
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- not an EventTarget
  transport.onclose = () => void sessions.delete(transport.sessionId ?? "");
  await server.connect(transport);
  await transport.handleRequest(request, response, body);
}

async function serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const { method = "", headers } = request;
  // The suite's scenario of DNS rebinding, straight at this server.
  if (!/^(?:localhost|127\.0\.0\.1)(?::|$)/.test(headers.host ?? "")) {
    response.writeHead(403).end();
    return;
  }
  const body: unknown = method === "POST" ? JSON.parse(await text(request)) : undefined;
  const { kind } = classifyInboundRequest({
    httpMethod: method,
    protocolVersionHeader: headers["mcp-protocol-version"] as string | undefined,
    mcpMethodHeader: headers["mcp-method"] as string | undefined,
    body,
  } as never);
  if (method === "POST" && kind !== "legacy")
    return serveStateless(request as never, response, body);
  return serveSession(request, response, body);
}

http
  .createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  })
  .listen(port, "127.0.0.1", () => process.stdout.write("ready\n"));
