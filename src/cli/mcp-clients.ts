/**
 * Configurations of MCP clients for the gateway. Where a client can read the key from the
 * environment or ask for it, its file does not contain the key.
 */

/** What a configuration is made from. */
export interface McpTarget {
  /** Name of the Provider, which is the client's name of the server too. */
  readonly provider: string;
  /** Base URL of the gateway. */
  readonly baseURL: string;
  /** The raw access key, or {@link KEY_PLACEHOLDER}. */
  readonly accessKey: string;
}

export interface McpClientSetup {
  readonly client: string;
  /** Returns the text of the configuration, with its final newline. */
  readonly render: (target: McpTarget) => string;
  /** Lines that say where the text belongs, and how the client gets the key. */
  readonly hints: readonly string[];
  /** Whether the text contains the key. */
  readonly showsKey: boolean;
}

/** Stands for a key that is not stored here. */
export const KEY_PLACEHOLDER = "<ACCESS_KEY>";

/** Variable from which clients read the key. */
const KEY_VARIABLE = "SVC_ACCESS_KEY";

const FROM_ENVIRONMENT = `Set ${KEY_VARIABLE} to the AccessKey in the environment of the client.`;

/** Returns the URL of Streamable HTTP. */
function streamableURL({ baseURL, provider }: McpTarget): string {
  return `${baseURL}/ext/mcp/${provider}`;
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** The form without a client's name: server-sent events, which every client knows. */
export const PLAIN_MCP_SETUP: McpClientSetup = {
  client: "",
  render: (target) =>
    json({
      mcpServers: {
        [target.provider]: {
          transport: "sse",
          url: `${streamableURL(target)}/sse`,
          headers: { Authorization: `Bearer ${target.accessKey}` },
        },
      },
    }),
  hints: ["--client <client> prints the form of a client."],
  showsKey: true,
};

export const MCP_CLIENT_SETUPS: readonly McpClientSetup[] = [
  {
    // https://code.claude.com/docs/en/mcp
    client: "claude",
    render: (target) =>
      json({
        mcpServers: {
          [target.provider]: {
            type: "http",
            url: streamableURL(target),
            headers: { Authorization: `Bearer \${${KEY_VARIABLE}}` },
          },
        },
      }),
    hints: [
      "Claude Code reads this from .mcp.json in the project's root folder. Check it: " +
        "claude mcp list",
      FROM_ENVIRONMENT,
    ],
    showsKey: false,
  },
  {
    // Its file takes local programs only: mcp-remote connects them to a URL.
    client: "claude-desktop",
    render: (target) =>
      json({
        mcpServers: {
          [target.provider]: {
            command: "npx",
            args: [
              "-y",
              "mcp-remote",
              streamableURL(target),
              "--transport",
              "http-only",
              ...(target.baseURL.startsWith("http:") ? ["--allow-http"] : []),
              // Without a space, which gets lost on Windows.
              "--header",
              "Authorization:${AUTHORIZATION}",
            ],
            env: { AUTHORIZATION: `Bearer ${target.accessKey}` },
          },
        },
      }),
    hints: [
      "Claude Desktop reads this from claude_desktop_config.json, in " +
        "~/Library/Application Support/Claude (macOS), %APPDATA%\\Claude (Windows) or " +
        "~/.config/Claude (Linux). It needs Node.js, whose npx runs mcp-remote.",
    ],
    showsKey: true,
  },
  {
    client: "cursor",
    render: (target) =>
      json({
        mcpServers: {
          [target.provider]: {
            url: streamableURL(target),
            headers: { Authorization: `Bearer \${env:${KEY_VARIABLE}}` },
          },
        },
      }),
    hints: [
      "Cursor reads this from .cursor/mcp.json in the project, or from ~/.cursor/mcp.json.",
      FROM_ENVIRONMENT,
    ],
    showsKey: false,
  },
  {
    // https://code.visualstudio.com/docs/copilot/reference/mcp-configuration
    client: "vscode",
    render: (target) => {
      const id = `${target.provider}-key`;
      return json({
        inputs: [
          {
            type: "promptString",
            id,
            description: `AccessKey of the MCP server ${target.provider}`,
            password: true,
          },
        ],
        servers: {
          [target.provider]: {
            type: "http",
            url: streamableURL(target),
            headers: { Authorization: `Bearer \${input:${id}}` },
          },
        },
      });
    },
    hints: [
      "VS Code reads this from .vscode/mcp.json, or from the file that the command " +
        '"MCP: Open User Configuration" opens.',
      "It asks for the AccessKey when the server starts.",
    ],
    showsKey: false,
  },
  {
    // Streamable HTTP only; a table `headers` would be ignored without a message.
    client: "codex",
    render: (target) =>
      [
        `[mcp_servers.${target.provider}]`,
        `url = ${JSON.stringify(streamableURL(target))}`,
        `bearer_token_env_var = ${JSON.stringify(KEY_VARIABLE)}`,
        "",
      ].join("\n"),
    hints: [
      "Codex reads this from ~/.codex/config.toml, or from .codex/config.toml of a trusted " +
        "project.",
      FROM_ENVIRONMENT,
    ],
    showsKey: false,
  },
];
