/**
 * The official SDKs, unmodified but for base URL and key: a call that a guard blocks raises their
 * ordinary permission error with the guard's message, also where a stream was asked for.
 */
import Anthropic, { PermissionDeniedError as AnthropicDenied } from "@anthropic-ai/sdk";
import { ApiError, GoogleGenAI } from "@google/genai";
import OpenAI, { PermissionDeniedError as OpenAIDenied } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../support/fixture.ts";
import { ClassifierStub, INJECTION, JAILBREAK } from "../support/guard/classifier.ts";
import { TOOL } from "../support/guard/places.ts";
import { bindingYaml, guardedYaml, SCAN_ALL } from "../support/guard/resources.ts";
import { accessKeyYaml, rawKey } from "../support/resources.ts";
import { MODELS } from "../support/samples.ts";
import { DIALECTS, type Vendor } from "../support/vendors.ts";

let classifier: ClassifierStub;
let token: string;

beforeAll(async () => {
  classifier = await ClassifierStub.start();
});

const fixture = useFixture({
  providers: Object.fromEntries(
    DIALECTS.map((name) => [name, { spec: { externalAccess: { enabled: true } } }]),
  ),
  files: () => {
    const guards = [{ binding: "strict", scan: SCAN_ALL }];
    return {
      "strict.yaml": bindingYaml("strict", classifier.url),
      "guarded.yaml": guardedYaml(
        "guarded",
        DIALECTS.map((name) => `${name}/*`),
        guards,
      ),
      ...Object.fromEntries(
        DIALECTS.map((name) => [`key-${name}.yaml`, accessKeyYaml(`to-${name}`, name, { guards })]),
      ),
    };
  },
});

beforeAll(async () => {
  token = await fixture.stack.token("guarded");
});

afterAll(async () => classifier?.close());

/** Base URL and key of a caller inside and of one outside. */
const CALLERS = ["an agent", "an access key"] as const;
type Caller = (typeof CALLERS)[number];
const access = (caller: Caller, vendor: (typeof DIALECTS)[number]) =>
  caller === "an agent"
    ? { apiKey: token, baseURL: fixture.stack.baseUrl, model: `${vendor}/${MODELS[vendor]}` }
    : {
        apiKey: rawKey(`to-${vendor}`),
        baseURL: `${fixture.stack.externalUrl}/ext`,
        model: MODELS[vendor],
      };

const caught = (promise: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(promise).then(
    () => undefined,
    (error: unknown) => error,
  );

const IN_PROMPT =
  /The guard strict found a prompt injection in \S+ of the request, with a score of 0\.97\. Nothing was sent/;
const IN_RESULT =
  /The guard strict found a jailbreak in the result of the tool web_fetch \(\S+\), with a score of 0\.90\./;
const IN_ANSWER =
  /The guard strict found a prompt injection in the model's answer, .* The answer is withheld\./;

/** The member `detail` of the body, as the SDK keeps it. */
const detailOf = (where: string, label: string, tool = "") =>
  expect.objectContaining({ code: "guard_violation", binding: "strict", where, label, tool });

function nothingSent(): void {
  for (const name of DIALECTS) expect(fixture.vendors[name].requests).toHaveLength(0);
}

describe.each(CALLERS)("openai as %s", (caller) => {
  const open = (): { client: OpenAI; model: string; vendor: Vendor } => {
    const { apiKey, baseURL, model } = access(caller, "openai");
    // As it is set by default: a 403 is not repeated.
    const client = new OpenAI({ apiKey, baseURL: `${baseURL}/v1` });
    return { client, model, vendor: fixture.vendors.openai };
  };
  const expectDenied = (error: unknown, message: RegExp): void => {
    expect(error).toBeInstanceOf(OpenAIDenied);
    expect(error).toMatchObject({
      status: 403,
      code: "guard_violation",
      type: "permission_error",
      message: expect.stringMatching(message),
    });
    nothingSent();
  };

  test.each([false, true])("chat (streamed: %s)", async (stream) => {
    const { client, model } = open();
    const content = `Please ${INJECTION}.`;
    const error = await caught(
      client.chat.completions.create({ model, messages: [{ role: "user", content }], stream }),
    );
    expectDenied(error, IN_PROMPT);
  });

  test("a tool's result, in the helper that streams", async () => {
    const { client, model } = open();
    const error = await caught(
      client.chat.completions
        .stream({
          model,
          messages: [
            { role: "user", content: "Read the page." },
            {
              role: "assistant",
              tool_calls: [
                { id: "call_1", type: "function", function: { name: TOOL, arguments: "{}" } },
              ],
            },
            { role: "tool", tool_call_id: "call_1", content: `Hello, ${JAILBREAK}.` },
          ],
        })
        .finalChatCompletion(),
    );
    expectDenied(error, IN_RESULT);
  });

  test.each([false, true])("responses (streamed: %s)", async (stream) => {
    const { client, model } = open();
    const error = await caught(client.responses.create({ model, input: INJECTION, stream }));
    expectDenied(error, IN_PROMPT);
  });

  test("an answer", async () => {
    const { client, model, vendor } = open();
    vendor.next(vendor.says({ text: [`Now ${INJECTION}.`] }));
    const error = await caught(
      client.chat.completions.create({ model, messages: [{ role: "user", content: "Hi" }] }),
    );
    expect(error).toBeInstanceOf(OpenAIDenied);
    expect(error).toMatchObject({ status: 403, message: expect.stringMatching(IN_ANSWER) });
    expect(vendor.requests).toHaveLength(1);
  });

  test("a benign call, and a benign stream", async () => {
    const { client, model, vendor } = open();
    vendor.always(vendor.says({ text: ["Hello ", "there"] }));
    const messages = [{ role: "user" as const, content: "Hi" }];
    const answer = await client.chat.completions.create({ model, messages });
    expect(answer.choices[0]?.message.content).toBe("Hello there");
    let text = "";
    for await (const chunk of await client.chat.completions.create({
      model,
      messages,
      stream: true,
    }))
      text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("Hello there");
  });
});

describe.each(CALLERS)("@anthropic-ai/sdk as %s", (caller) => {
  const open = (): { client: Anthropic; model: string; vendor: Vendor } => {
    const { apiKey, baseURL, model } = access(caller, "anthropic");
    const client = new Anthropic({ apiKey, authToken: null, baseURL });
    return { client, model, vendor: fixture.vendors.anthropic };
  };
  const ask = { max_tokens: 64, messages: [{ role: "user" as const, content: INJECTION }] };
  const expectDenied = (error: unknown, message: RegExp, detail: object): void => {
    expect(error).toBeInstanceOf(AnthropicDenied);
    expect(error).toMatchObject({
      status: 403,
      message: expect.stringMatching(message),
      error: {
        type: "error",
        error: { type: "permission_error", message: expect.stringMatching(message) },
        detail,
      },
    });
  };

  test.each([false, true])("messages (streamed: %s)", async (stream) => {
    const { client, model } = open();
    const error = await caught(client.messages.create({ ...ask, model, stream }));
    expectDenied(error, IN_PROMPT, detailOf("prompt", "injection"));
    nothingSent();
  });

  test("a tool's result, in the helper that streams", async () => {
    const { client, model } = open();
    const error = await caught(
      client.messages
        .stream({
          model,
          max_tokens: 64,
          messages: [
            { role: "user", content: "Read the page." },
            {
              role: "assistant",
              content: [{ type: "tool_use", id: "toolu_1", name: TOOL, input: {} }],
            },
            {
              role: "user",
              content: [{ type: "tool_result", tool_use_id: "toolu_1", content: JAILBREAK }],
            },
          ],
        })
        .finalMessage(),
    );
    expectDenied(error, IN_RESULT, detailOf("tool_result", "jailbreak", TOOL));
    nothingSent();
  });

  test("counting tokens", async () => {
    const { client, model } = open();
    const { messages } = ask;
    const error = await caught(client.messages.countTokens({ messages, model }));
    expectDenied(error, IN_PROMPT, detailOf("prompt", "injection"));
    nothingSent();
  });

  test("an answer", async () => {
    const { client, model, vendor } = open();
    vendor.next(vendor.says({ text: [INJECTION] }));
    const messages = [{ role: "user" as const, content: "Hi" }];
    const error = await caught(client.messages.create({ ...ask, messages, model }));
    expectDenied(error, IN_ANSWER, detailOf("response", "injection"));
    expect(vendor.requests).toHaveLength(1);
  });
});

describe.each(CALLERS)("@google/genai as %s", (caller) => {
  const open = (): { client: GoogleGenAI; model: string; vendor: Vendor } => {
    const { apiKey, baseURL, model } = access(caller, "gemini");
    const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: baseURL } });
    return { client, model, vendor: fixture.vendors.gemini };
  };
  const expectDenied = (error: unknown, message: RegExp): void => {
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ status: 403, message: expect.stringMatching(message) });
    expect((error as ApiError).message).toContain("PERMISSION_DENIED");
  };

  test("generateContent", async () => {
    const { client, model } = open();
    const error = await caught(client.models.generateContent({ model, contents: INJECTION }));
    expectDenied(error, IN_PROMPT);
    nothingSent();
  });

  test("generateContentStream", async () => {
    const { client, model } = open();
    const error = await caught(client.models.generateContentStream({ model, contents: INJECTION }));
    expectDenied(error, IN_PROMPT);
    nothingSent();
  });

  test("a function's result", async () => {
    const { client, model } = open();
    const error = await caught(
      client.models.generateContent({
        model,
        contents: [
          { role: "user", parts: [{ text: "Read the page." }] },
          { role: "model", parts: [{ functionCall: { name: TOOL, args: {} } }] },
          {
            role: "user",
            parts: [{ functionResponse: { name: TOOL, response: { output: JAILBREAK } } }],
          },
        ],
      }),
    );
    expectDenied(error, IN_RESULT);
    nothingSent();
  });

  test("countTokens", async () => {
    const { client, model } = open();
    expectDenied(
      await caught(client.models.countTokens({ model, contents: INJECTION })),
      IN_PROMPT,
    );
    nothingSent();
  });

  test("an answer", async () => {
    const { client, model, vendor } = open();
    vendor.next(vendor.says({ text: [INJECTION] }));
    const error = await caught(client.models.generateContent({ model, contents: "Hi" }));
    expectDenied(error, IN_ANSWER);
    expect(vendor.requests).toHaveLength(1);
  });
});
