import { type ContractSample, request } from "../testing.ts";

export const sample: ContractSample = {
  auth: { token: { secrets: { token: "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.discord-bot-token" } } },
  requests: [
    {
      request: request(
        "GET https://discord.com/api/v10/channels/41771983423143937/messages?limit=5",
      ),
      actions: ["messages:read"],
    },
    {
      request: request("POST https://discord.com/api/v10/channels/41771983423143937/messages"),
      actions: ["messages:write"],
    },
    { request: request("GET https://discord.com/api/v9/users/@me"), actions: ["users:read"] },
  ],
};
