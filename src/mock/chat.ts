/**
 * Answers of the mock model, a pure function of the request. It echoes the last user message,
 * truncated to {@link ECHO_CHARACTERS}. If the request has tools and the message names some of
 * them, the model calls all of these (which allows parallel calls).
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

/** Maximum number of echoed characters: a model's answers are short, whatever the prompt. */
const ECHO_CHARACTERS = 65_536;

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
  const echo = said.slice(0, ECHO_CHARACTERS);
  const text =
    toolCalls.length > 0
      ? ""
      : last?.role === "tool"
        ? `The tool said: ${echo}`
        : `You said: ${echo || "nothing"}`;
  return {
    text,
    toolCalls,
    promptTokens: messages.reduce((sum, message) => sum + countWords(textOf(message.content)), 0),
    completionTokens: countWords(text) + toolCalls.length * 5,
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

/** Counts words without creating them: a prompt may be as large as a request. */
export function countWords(text: string): number {
  let count = 0;
  let inWord = false;
  for (let i = 0; i < text.length; i += 1) {
    const space = text.charCodeAt(i) <= 0x20 || text[i]?.trim() === "";
    if (!space && !inWord) count += 1;
    inWord = !space;
  }
  return count;
}
