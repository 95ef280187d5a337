/** AWS: signs each request by Signature Version 4 with the key of the Provider. */
import {
  type ActionResolution,
  ConfigError,
  type Injection,
  InjectionError,
  type PluginContext,
  type ProviderInstance,
  type ProviderPlugin,
  type ServiceRequest,
} from "../contract.ts";
import { parseQuery } from "../raw-url.ts";
import { type CredentialSource, fixedCredential } from "../credential-source.ts";
import { assumedRole, staticCredentials } from "./credentials.ts";
import { wordDenial } from "./denial.ts";
import { endpointOf, S3_HOSTS, type AwsEndpoint } from "./endpoint.ts";
import { bodyPayload, s3Payload } from "./payload.ts";
import { callOf } from "./protocols.ts";
import { isPresigned, resolve } from "./resolve.ts";
import { sign, type AwsCredentials, type SignedScope } from "./sign.ts";

/** DynamoDB and Kinesis allow the largest common bodies; functions and models allow less. */
const MAX_BODY_BYTES = 16 * 1024 * 1024;

/** Created by the signature, never taken from the agent. */
const OURS: ReadonlySet<string> = new Set([
  "x-amz-date",
  "x-amz-security-token",
  "x-amz-content-sha256",
  "x-amz-s3session-token",
]);

export const plugin: ProviderPlugin = {
  providerName: "aws",
  defaultHosts: [],
  hostPatterns: ["*.amazonaws.com", "*.amazonaws.com.cn", "*.api.aws", "*.on.aws"],
  authTypes: {
    "access-key": { required: ["accessKeyId", "secretAccessKey"], optional: ["sessionToken"] },
  },
  wordDenial,
  scopeKeys: { arns: "ARNs, e.g. arn:aws:s3:::reports/*" },
  scopeIgnoresCase: false,
  configKeys: {
    accountId:
      "Account that names without one are in: 12 digits. Needed to scope anything but S3 by ARN",
    externalId: "External id that the role's trust policy asks for",
    region: "Region of S3 hosts that name none, and of STS for roleArn; us-east-1 when left out",
    roleArn:
      "Role that the key assumes, for one hour at a time; requests are signed with its " +
      "temporary keys",
  },
  bodies: [
    // A POST to S3 is small: it deletes many keys, or begins or completes an upload.
    { hosts: [], methods: ["POST"], paths: ["/*"], maxBytes: MAX_BODY_BYTES },
    {
      hosts: [],
      exceptHosts: S3_HOSTS,
      methods: undefined,
      paths: ["/*"],
      maxBytes: MAX_BODY_BYTES,
    },
  ],
  credentialHeaders: [
    "authorization",
    "cookie",
    "proxy-authorization",
    "x-amz-date",
    "x-amz-s3session-token",
    "x-amz-security-token",
    "x-api-key",
  ],
  credentialQuery: [
    "AWSAccessKeyId",
    "Signature",
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Security-Token",
    "X-Amz-Signature",
    "X-Amz-SignedHeaders",
  ],
  create: (context) => new AwsInstance(context),
};

class AwsInstance implements ProviderInstance {
  readonly #context: PluginContext;
  readonly #credentials: CredentialSource<AwsCredentials>;
  readonly #region: string;
  readonly #account: string | undefined;

  constructor(context: PluginContext) {
    const { binding, config } = context;
    const wrong = (key: string, fix: string): ConfigError =>
      new ConfigError(`Provider ${binding}: config.${key} ${fix}`);
    const { region = "us-east-1", accountId, roleArn, externalId } = config;
    if (!/^[a-z]{2}(?:-[a-z]+)+-[0-9]{1,2}$/.test(region))
      throw wrong("region", "must be a region, such as eu-central-1");
    if (accountId !== undefined && !/^[0-9]{12}$/.test(accountId))
      throw wrong("accountId", "must be 12 digits, in quotes");
    const roleAccount =
      roleArn === undefined
        ? undefined
        : /^arn:aws[a-z-]*:iam::([0-9]{12}):role\/[\w+=,.@/-]+$/.exec(roleArn)?.[1];
    if (roleArn !== undefined && roleAccount === undefined)
      throw wrong("roleArn", "must be the ARN of a role: arn:aws:iam::<account>:role/<name>");
    if (
      externalId !== undefined &&
      (roleArn === undefined || !/^[\w+=,.@:/-]{2,1224}$/.test(externalId))
    )
      throw wrong("externalId", "belongs to config.roleArn, and is letters, digits and +=,.@:/-");
    if (roleAccount !== undefined && accountId !== undefined && roleAccount !== accountId)
      throw wrong(
        "accountId",
        "is not the account of config.roleArn, whose resources the role's names are",
      );
    const own = staticCredentials(context);
    this.#context = context;
    this.#region = region;
    this.#account = accountId ?? roleAccount;
    this.#credentials =
      roleArn === undefined
        ? fixedCredential(own)
        : assumedRole(context, own, { arn: roleArn, externalId, region });
  }

  resolveAction(request: ServiceRequest): ActionResolution {
    return resolve(request, this.#endpoint(request), this.#account);
  }

  async injectCredentials(request: ServiceRequest): Promise<Injection> {
    const endpoint = this.#endpoint(request);
    const query = parseQuery(request.query);
    // Nothing is signed for hosts that may belong to anybody, or with a query that the service may
    // interpret differently.
    if (endpoint === undefined)
      throw new InjectionError(`${request.host} is not a known AWS endpoint`, 400);
    if (query === undefined || isPresigned(request.query))
      throw new InjectionError("a request with this query cannot be signed", 400);
    const payload =
      endpoint.kind === "s3" || endpoint.kind === "s3-access-point"
        ? s3Payload(request)
        : bodyPayload(request);
    if (payload.kind === "refused") throw new InjectionError(payload.reason, 400);
    const headers = {
      ...signedHeaders(request),
      host: request.host,
      "x-amz-content-sha256": payload.value,
    };
    const credentials = await this.#credentials.current();
    const signed = await sign(
      { method: request.method, path: request.path, query, headers, body: undefined },
      signatureScope(request, endpoint),
      credentials,
      this.#context.clock.now(),
    );
    const set = [
      "authorization",
      "x-amz-content-sha256",
      "x-amz-date",
      "x-amz-security-token",
    ].flatMap((name) => {
      const value = signed[name];
      return value === undefined ? [] : [[name, value] as const];
    });
    return {
      set,
      remove: credentials.sessionToken === undefined ? ["x-amz-security-token"] : [],
      setQuery: [],
    };
  }

  start(): Promise<void> {
    return this.#credentials.start();
  }

  stop(): Promise<void> {
    return this.#credentials.stop();
  }

  refreshToken(): Promise<void> {
    return this.#credentials.refresh();
  }

  #endpoint(request: ServiceRequest): AwsEndpoint | undefined {
    return endpointOf(request.host, this.#region);
  }
}

/**
 * Returns only the headers that AWS requires to be signed: proxies in between may change the
 * others.
 */
function signedHeaders(request: ServiceRequest): Record<string, string> {
  const isSigned = (name: string): boolean =>
    name === "content-type" ||
    name === "content-md5" ||
    (name.startsWith("x-amz-") && !OURS.has(name));
  return Object.fromEntries([...request.headers].filter(([name]) => isSigned(name)));
}

function signatureScope(request: ServiceRequest, endpoint: AwsEndpoint): SignedScope {
  const { region } = endpoint;
  if (endpoint.kind === "s3" || endpoint.kind === "s3-access-point")
    return { service: "s3", region, rawPath: true };
  if (endpoint.kind === "method") return { service: endpoint.signingName, region, rawPath: false };
  const names = new Set(endpoint.services.map(({ signingName }) => signingName));
  const call = names.size === 1 ? undefined : callOf(request, endpoint.services);
  const [only = ""] = names;
  if (call?.kind === "doubt")
    throw new InjectionError("the request does not tell which service it is for", 400);
  return { service: call?.service.signingName ?? only, region, rawPath: false };
}
