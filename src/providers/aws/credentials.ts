/** The key of a user, or temporary keys of an assumed role, which are renewed. */
import { Secret } from "../../platform/secret.ts";
import { ConfigError, type PluginContext } from "../contract.ts";
import type { CredentialSource } from "../credential-source.ts";
import { type FetchedToken, TokenExchangeError, TokenRefresher } from "../token-refresher.ts";
import { sign, type AwsCredentials } from "./sign.ts";

const MINUTE_MS = 60_000;
const SESSION_S = 3600;
const MAX_ANSWER_CHARS = 64 * 1024;

/** @throws ConfigError */
export function staticCredentials({ binding, secrets }: PluginContext): AwsCredentials {
  const value = (key: string): string => secrets.get(key)?.reveal().trim() ?? "";
  const wrong = (key: string, fix: string): ConfigError =>
    new ConfigError(`Provider ${binding}: the Secret's key ${key} ${fix}`);
  const accessKeyId = value("accessKeyId");
  const secretAccessKey = value("secretAccessKey");
  const sessionToken = secrets.has("sessionToken") ? value("sessionToken") : undefined;
  if (!/^[A-Z0-9]{16,128}$/.test(accessKeyId))
    throw wrong("accessKeyId", "must be an access key's id, such as AKIA...");
  if (!/^[A-Za-z0-9/+=]{16,128}$/.test(secretAccessKey))
    throw wrong(
      "secretAccessKey",
      "must be the secret part of the access key, without spaces or line ends",
    );
  if (sessionToken !== undefined && !/^[\x21-\x7e]+$/.test(sessionToken))
    throw wrong("sessionToken", "must be a session token, or be left out");
  if (accessKeyId.startsWith("ASIA") && sessionToken === undefined)
    throw wrong("sessionToken", "is missing: a temporary key (ASIA...) has one");
  return { accessKeyId, secretAccessKey, sessionToken };
}

export interface Role {
  readonly arn: string;
  readonly externalId: string | undefined;
  /** Region of the STS endpoint. */
  readonly region: string;
}

export function assumedRole(
  context: PluginContext,
  own: AwsCredentials,
  role: Role,
): CredentialSource<AwsCredentials> {
  const { binding, clock, random, log } = context;
  const refresher = new TokenRefresher({
    binding,
    fetchToken: (signal) => assumeRole(context, own, role, signal),
    maxAgeMs: 50 * MINUTE_MS,
    marginMs: 10 * MINUTE_MS,
    clock,
    random,
    log,
  });
  return {
    current: async () => JSON.parse((await refresher.current()).reveal()) as AwsCredentials,
    start: () => refresher.start(),
    stop: () => refresher.stop(),
    refresh: () => refresher.refresh(),
  };
}

/** https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRole.html */
async function assumeRole(
  context: PluginContext,
  own: AwsCredentials,
  role: Role,
  signal: AbortSignal,
): Promise<FetchedToken> {
  const { clock } = context;
  const host = `sts.${role.region}.amazonaws.com${role.region.startsWith("cn-") ? ".cn" : ""}`;
  const body = new URLSearchParams({
    Action: "AssumeRole",
    Version: "2011-06-15",
    RoleArn: role.arn,
    RoleSessionName: `svc-${context.binding}`.replace(/[^A-Za-z0-9_=,.@-]/g, "-").slice(0, 64),
    DurationSeconds: String(SESSION_S),
    ...(role.externalId === undefined ? {} : { ExternalId: role.externalId }),
  }).toString();
  const headers = { host, "content-type": "application/x-www-form-urlencoded; charset=utf-8" };
  const request = { method: "POST", path: "/", query: [], headers, body: Buffer.from(body) };
  const signed = await sign(
    request,
    { service: "sts", region: role.region, rawPath: false },
    own,
    clock.now(),
  );
  const { host: _host, ...sent } = signed;
  const response = await context.fetch(`https://${host}/`, {
    method: "POST",
    headers: sent,
    body,
    signal,
  });
  if (!response.ok) {
    const refused = response.status >= 400 && response.status < 500 && response.status !== 429;
    throw new TokenExchangeError(
      `STS answered ${response.status} to AssumeRole` +
        (refused
          ? "; check the access key, config.roleArn, config.externalId and the role's trust policy"
          : ""),
      { refused },
    );
  }
  return readAnswer(await response.text(), clock.now());
}

function readAnswer(text: string, now: number): FetchedToken {
  const field = (name: string): string =>
    new RegExp(`<${name}>([\\x21-\\x3b\\x3d-\\x7e]+)</${name}>`).exec(text)?.[1] ?? "";
  const [accessKeyId, secretAccessKey, sessionToken] = [
    field("AccessKeyId"),
    field("SecretAccessKey"),
    field("SessionToken"),
  ];
  const expiresAt = Date.parse(field("Expiration"));
  if (
    text.length > MAX_ANSWER_CHARS ||
    [accessKeyId, secretAccessKey, sessionToken].includes("") ||
    Number.isNaN(expiresAt)
  ) {
    throw new TokenExchangeError("STS's answer to AssumeRole holds no credentials");
  }
  const credentials: AwsCredentials = { accessKeyId, secretAccessKey, sessionToken };
  // A wrong local clock must not make the session look longer than it can be.
  return {
    token: new Secret(JSON.stringify(credentials)),
    expiresAt: Math.min(expiresAt, now + SESSION_S * 1000),
  };
}
