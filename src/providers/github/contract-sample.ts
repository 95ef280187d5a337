import { generateKeyPairSync } from "node:crypto";
import { type ContractSample, request } from "../testing.ts";

export const INSTALLATION_TOKEN = "ghs_installation0123456789";

/** In the form that GitHub generates: PKCS #1. */
export const { privateKey: APP_KEY, publicKey: APP_PUBLIC_KEY } = generateKeyPairSync("rsa", {
  modulusLength: 2_048,
  privateKeyEncoding: { type: "pkcs1", format: "pem" },
  publicKeyEncoding: { type: "spki", format: "pem" },
});

export const APP_SECRETS = {
  appId: "Iv23liSecretiveApp",
  installationId: "98765432",
  privateKey: APP_KEY,
};

/** A response valid for one hour, by a server with the given clock. */
export function installationToken(nowMs: number, token = INSTALLATION_TOKEN): Response {
  const body = {
    token,
    expires_at: new Date(nowMs + 3_600_000).toISOString(),
    permissions: { contents: "read" },
  };
  return Response.json(body, { status: 201, headers: { date: new Date(nowMs).toUTCString() } });
}

export const sample: ContractSample = {
  auth: {
    token: { secrets: { token: "github_pat_0123456789abcdef" } },
    app: { secrets: APP_SECRETS },
  },
  respond: () => installationToken(1_700_000_000_000),
  tokens: [INSTALLATION_TOKEN],
  requests: [
    { request: request("GET https://api.github.com/repos/o/r/pulls/1"), actions: ["pulls:read"] },
    {
      request: request("PUT https://api.github.com/repos/o/r/pulls/1/merge"),
      actions: ["pulls:write", "contents:write"],
    },
    {
      request: request("GET https://github.com/o/r.git/info/refs?service=git-upload-pack"),
      actions: ["contents:read"],
    },
    {
      request: request("POST https://github.com/o/r/git-receive-pack"),
      actions: ["contents:write"],
    },
    {
      request: request("POST https://uploads.github.com/repos/o/r/releases/1/assets?name=a.zip"),
      actions: ["releases:write", "contents:write"],
    },
    {
      request: request("POST https://api.github.com/graphql", {
        headers: { "content-type": "application/json" },
        body: '{"query":"{repository(owner:\\"o\\",name:\\"r\\"){issues(first:1){nodes{title}}}}"}',
      }),
      actions: ["issues:read"],
    },
  ],
};
