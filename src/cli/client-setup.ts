/**
 * Instructions for well-known clients to use the external gateway. No snippet contains the key: it
 * comes from the environment, or from `svc gateway env`.
 *
 * One base URL serves all: the OpenAI SDK (openai 6.49) adds `/chat/completions` to it, the
 * Anthropic SDK (@anthropic-ai/sdk 1.12) `/v1/messages`, and the gateway treats
 * `/ext/v1/v1/messages` as `/ext/v1/messages`.
 */

export function clientBaseURL(baseURL: string): string {
  return `${baseURL}/ext/v1`;
}

export interface ClientSetup {
  readonly client: string;
  readonly title: string;
  /** Returns the lines to show. @param baseURL of the gateway */
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
      `client = Anthropic(base_url="${clientBaseURL(baseURL)}", ` +
        `api_key=os.environ["ANTHROPIC_API_KEY"])`,
      "",
      "// TypeScript",
      `const client = new Anthropic({ baseURL: "${clientBaseURL(baseURL)}", apiKey: ` +
        "process.env.ANTHROPIC_API_KEY });",
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
      `client = OpenAI(base_url="${clientBaseURL(baseURL)}", api_key=os.environ["OPENAI_API_KEY"])`,
      "",
      "// TypeScript",
      `const client = new OpenAI({ baseURL: "${clientBaseURL(baseURL)}", apiKey: ` +
        "process.env.OPENAI_API_KEY });",
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
      `curl ${clientBaseURL(baseURL)}/chat/completions -H "Authorization: Bearer ` +
        `$OPENAI_API_KEY" -H 'Content-Type: application/json' -d ` +
        `'{"model":"<model>","messages":[{"role":"user","content":"Hello"}]}'`,
    ],
  },
];

/** One client's lines, indented, under its title. */
export function renderSetup({ title, lines }: ClientSetup, baseURL: string): string {
  return `${title}:\n\n${lines(baseURL)
    .map((line) => (line === "" ? "" : `  ${line}`))
    .join("\n")}\n`;
}
