/**
 * Workload identity federation: an external token (a projected file of the pod) is exchanged at
 * STS, and optionally again for a token of a service account. https://google.aip.dev/auth/4117
 */
import { readFile } from "node:fs/promises";
import { Secret } from "../../platform/secret.ts";
import { ConfigError, type PluginContext } from "../contract.ts";
import { type FetchedToken, TokenExchangeError } from "../token-refresher.ts";
import { post, readJson, tokenOf } from "./token.ts";

export interface ExternalAccount {
  readonly audience: string;
  readonly tokenType: string;
  readonly tokenUrl: string;
  readonly file: string;
  /** Member of the file's JSON that contains the token; undefined if the file is the token. */
  readonly field: string | undefined;
  readonly impersonationUrl: string | undefined;
}

/** @throws ConfigError */
export function readExternalAccount(context: PluginContext): ExternalAccount {
  const json = readJson(context, "externalAccount");
  const wrong = (fix: string): ConfigError =>
    new ConfigError(`Provider ${context.binding}: the Secret's key externalAccount ${fix}`);
  const {
    type,
    audience,
    subject_token_type: tokenType,
    token_url: tokenUrl,
    credential_source: source,
    service_account_impersonation_url: impersonationUrl,
  } = json;
  if (type !== "external_account")
    throw wrong(
      "must be a configuration of workload identity federation: its type is not external_account",
    );
  if (typeof audience !== "string" || !audience.startsWith("//iam.googleapis.com/"))
    throw wrong("has no audience that begins with //iam.googleapis.com/");
  if (typeof tokenType !== "string" || !tokenType.startsWith("urn:ietf:params:oauth:token-type:"))
    throw wrong("has no subject_token_type that is read from a file");
  if (tokenUrl !== "https://sts.googleapis.com/v1/token")
    throw wrong("has another token_url than https://sts.googleapis.com/v1/token");
  const { file, format } = (typeof source === "object" && source !== null ? source : {}) as {
    readonly file?: unknown;
    readonly format?: { readonly type?: unknown; readonly subject_token_field_name?: unknown };
  };
  if (typeof file !== "string" || !file.startsWith("/"))
    throw wrong(
      "has no credential_source.file with an absolute path: of its kinds, files alone are " +
        "supported",
    );
  const field = format?.type === "json" ? format.subject_token_field_name : undefined;
  if (format?.type === "json" && typeof field !== "string")
    throw wrong("has no credential_source.format.subject_token_field_name");
  if (
    impersonationUrl !== undefined &&
    (typeof impersonationUrl !== "string" ||
      !/^https:\/\/iamcredentials\.googleapis\.com\/v1\/projects\/-\/serviceAccounts\/[\w.@-]+:generateAccessToken$/.test(
        impersonationUrl,
      ))
  ) {
    throw wrong(
      "has a service_account_impersonation_url that is not of iamcredentials.googleapis.com",
    );
  }
  return {
    audience,
    tokenType,
    tokenUrl,
    file,
    field: typeof field === "string" ? field : undefined,
    impersonationUrl,
  };
}

/** @throws TokenExchangeError */
export async function exchangeExternalAccount(
  context: PluginContext,
  account: ExternalAccount,
  scopes: string,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const platform = "https://www.googleapis.com/auth/cloud-platform";
  const body = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    audience: account.audience,
    scope: account.impersonationUrl === undefined ? scopes : platform,
    requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
    subject_token: await subjectToken(account),
    subject_token_type: account.tokenType,
  });
  const federated = tokenOf(
    await post(context, account.tokenUrl, {
      body,
      signal,
      advice: "check the pool's provider and its attribute conditions",
    }),
    context.clock.now(),
  );
  if (account.impersonationUrl === undefined) return federated;
  const answer = await post(context, account.impersonationUrl, {
    body: JSON.stringify({ scope: scopes.split(" "), lifetime: "3600s" }),
    headers: { authorization: `Bearer ${federated.token.reveal()}` },
    signal,
    advice:
      "check that the identity may impersonate the service account " +
      "(roles/iam.workloadIdentityUser)",
  });
  const { accessToken, expireTime } = answer;
  const expiresAt = typeof expireTime === "string" ? Date.parse(expireTime) : Number.NaN;
  if (
    typeof accessToken !== "string" ||
    !/^[\x21-\x7e]+$/.test(accessToken) ||
    Number.isNaN(expiresAt)
  )
    throw new TokenExchangeError("the answer holds no token of the service account");
  // A slow local clock must not make the lifetime look longer than requested.
  return {
    token: new Secret(accessToken),
    expiresAt: Math.min(expiresAt, context.clock.now() + 3_600_000),
  };
}

/** Read again for each exchange, because the file is renewed externally. */
async function subjectToken(account: ExternalAccount): Promise<string> {
  try {
    const text = (await readFile(account.file, "utf8")).trim();
    const token: unknown =
      account.field === undefined
        ? text
        : (JSON.parse(text) as Record<string, unknown>)[account.field];
    if (typeof token === "string" && token !== "") return token;
  } catch {
    // The operator may see the file's path, but nobody its contents.
  }
  throw new TokenExchangeError(
    `no token can be read from ${account.file}: is it mounted in the sidecar?`,
  );
}
