import { type ContractSample, request } from "../testing.ts";

const URL = "https://mcp.example.com/mcp";
const message = (body: object): ReturnType<typeof request> =>
  request(`POST ${URL}`, {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", ...body }),
  });

const server = { transport: "http", host: "mcp.example.com", path: "/mcp" } as const;

export const sample: ContractSample = {
  auth: {
    "api-key": { secrets: { token: "token-of-the-server-0123456789" }, context: { mcp: server } },
    oauth2: {
      secrets: { clientId: "client-of-the-sidecar", clientSecret: "secret-of-the-client-012345" },
      config: { tokenUrl: "https://login.example.com/token", scope: "tools" },
      context: { mcp: server },
    },
    environment: {
      secrets: { SERVER_TOKEN: "value-of-the-variable-0123456789" },
      context: { mcp: { ...server, transport: "stdio", command: ["server"] } },
    },
  },
  respond: () =>
    Response.json({
      access_token: "access-token-0123456789",
      expires_in: 3_600,
      token_type: "Bearer",
    }),
  tokens: ["access-token-0123456789"],
  requests: [
    { request: message({ id: 1, method: "initialize" }), actions: ["session:initialize"] },
    { request: message({ id: 1, method: "tools/list" }), actions: ["tools:list"] },
    {
      request: message({ id: 2, method: "tools/call", params: { name: "echo" } }),
      actions: ["tools:call"],
    },
    { request: request(`GET ${URL}`), actions: ["session:stream"] },
    { request: request(`DELETE ${URL}`), actions: ["session:end"] },
  ],
  exceptions: {
    "hosts and scopes by settings": "the host is that of the URL, and there is no scope",
    "no header": "a process gets its credentials as variables (environment)",
    "other paths by rule": "other paths are left to policy.httpRules",
  },
};
