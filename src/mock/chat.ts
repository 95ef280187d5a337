/**
 * What the mock model says: a function of the request alone. It echoes the last user message; asked
 * with tools and a message that names one of them, it calls it (all that are named, so parallel
 * calls can be had).
 */
export interface MockToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

export interface MockAnswer {
  readonly text: string;
  readonly toolCalls: readonly MockToolCall[];
  readonly promptTokens: number;
  readonly completionTokens: number;
}

interface MockRequest {
  readonly messages?: readonly { readonly role?: string; readonly content?: unknown }[];
  readonly tools?: readonly { readonly function?: { readonly name?: string } }[];
}

export function mockAnswer(request: MockRequest): MockAnswer {
  const messages = request.messages ?? [];
  const last = messages.at(-1);
  const said = textOf(last?.content);
  const names = (request.tools ?? []).map((tool) => tool.function?.name ?? "");
  const called =
    last?.role === "user" ? names.filter((name) => name !== "" && said.includes(name)) : [];
  const toolCalls = called.map((name, i) => ({
    id: `call_mock_${i}`,
    name,
    arguments: JSON.stringify({ input: said.slice(0, 100) }),
  }));
  const text =
    toolCalls.length > 0
      ? ""
      : last?.role === "tool"
        ? `The tool said: ${said}`
        : `You said: ${said || "nothing"}`;
  return {
    text,
    toolCalls,
    promptTokens: words(messages.map((message) => textOf(message.content)).join(" ")),
    completionTokens: words(text) + toolCalls.length * 5,
  };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((part: unknown) => {
      const text =
        typeof part === "object" && part !== null ? (part as { text?: unknown }).text : undefined;
      return typeof text === "string" ? text : "";
    })
    .join("");
}

function words(text: string): number {
  return text.split(/\s+/).filter((word) => word !== "").length;
}
