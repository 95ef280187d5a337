import { type ContractSample, request } from "../testing.ts";

/**
 * A response of Slack to a refresh token:
 * https://docs.slack.dev/authentication/using-token-rotation
 */
export function rotated(number: number): Response {
  return Response.json({
    ok: true,
    access_token: `xoxe.xoxb-1-access-${number}`,
    expires_in: 43_200,
    refresh_token: `xoxe-1-refresh-${number}`,
    token_type: "bot",
  });
}

const FORM = { "content-type": "application/x-www-form-urlencoded" };

export const sample: ContractSample = {
  auth: {
    "api-key": { secrets: { token: "xoxb-0123456789-abcdefghij" } },
    oauth2: {
      secrets: {
        clientId: "4711.0815-client",
        clientSecret: "s3cr3t-of-client",
        refreshToken: "xoxe-1-refresh-0",
      },
    },
  },
  respond: () => rotated(1),
  tokens: ["xoxe.xoxb-1-access-1", "xoxe-1-refresh-1"],
  requests: [
    {
      request: request("POST https://slack.com/api/chat.postMessage", {
        headers: FORM,
        body: "channel=C1&text=hi",
      }),
      actions: ["chat:write"],
    },
    {
      request: request("GET https://slack.com/api/conversations.history?channel=C1"),
      actions: ["channels:history"],
    },
    {
      request: request("GET https://files.slack.com/files-pri/T1-F1/a.txt"),
      actions: ["files:read"],
    },
  ],
};
