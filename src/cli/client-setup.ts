/**
 * What to put where so that well-known clients use the external gateway. No snippet holds the key: it comes from the
 * environment, or from `svc gateway env`.
 *
 * Base URLs: the official Anthropic SDK (@anthropic-ai/sdk 1.12) adds `/v1/messages` to ANTHROPIC_BASE_URL, so that it
 * ends with `/ext`; the OpenAI SDK (openai 6.49) adds `/chat/completions` to OPENAI_BASE_URL, so that it ends with `/ext/v1`.
 */

export function anthropicBaseURL(baseURL: string): string {
  return `${baseURL}/ext`;
}

export function openaiBaseURL(baseURL: string): string {
  return `${baseURL}/ext/v1`;
}

export interface ClientSetup {
  readonly client: string;
  readonly title: string;
  /** Lines to show. @param baseURL of the gateway */
  readonly lines: (baseURL: string) => readonly string[];
}

const EVAL = 'eval "$(svc gateway env)"';

export const CLIENT_SETUPS: readonly ClientSetup[] = [
  {
    client: "claude-code",
    title: "Claude Code: in the shell that starts it",
    lines: () => [EVAL, "claude --model <model>"],
  },
  {
    client: "anthropic",
    title: "Anthropic SDKs: they read ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY; or in code",
    lines: (baseURL) => [
      EVAL,
      "",
      "# Python",
      "from anthropic import Anthropic",
      `client = Anthropic(base_url="${anthropicBaseURL(baseURL)}", api_key=os.environ["ANTHROPIC_API_KEY"])`,
      "",
      "// TypeScript",
      `const client = new Anthropic({ baseURL: "${anthropicBaseURL(baseURL)}", apiKey: process.env.ANTHROPIC_API_KEY });`,
    ],
  },
  {
    client: "openai",
    title: "OpenAI SDKs: they read OPENAI_BASE_URL and OPENAI_API_KEY; or in code",
    lines: (baseURL) => [
      EVAL,
      "",
      "# Python",
      "from openai import OpenAI",
      `client = OpenAI(base_url="${openaiBaseURL(baseURL)}", api_key=os.environ["OPENAI_API_KEY"])`,
      "",
      "// TypeScript",
      `const client = new OpenAI({ baseURL: "${openaiBaseURL(baseURL)}", apiKey: process.env.OPENAI_API_KEY });`,
    ],
  },
  {
    client: "aider",
    title: "aider: it reads OPENAI_API_BASE",
    lines: () => [EVAL, 'OPENAI_API_BASE="$OPENAI_BASE_URL" aider --model openai/<model>'],
  },
  {
    client: "curl",
    title: "curl",
    lines: (baseURL) => [
      EVAL,
      `curl ${openaiBaseURL(baseURL)}/chat/completions -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' -d '{"model":"<model>","messages":[{"role":"user","content":"Hello"}]}'`,
    ],
  },
];

/** One client's lines, indented, under its title. */
export function renderSetup({ title, lines }: ClientSetup, baseURL: string): string {
  return `${title}:\n\n${lines(baseURL).map((line) => (line === "" ? "" : `  ${line}`)).join("\n")}\n`;
}
