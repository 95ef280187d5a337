/** Determines the IAM actions and ARNs of a request to AWS. */
import type { ActionResolution, ServiceRequest } from "../contract.ts";
import { parseQuery } from "../raw-url.ts";
import { plainSegments } from "../url-path.ts";
import { arn, unscopable, type Input } from "./arns.ts";
import { doubt, safe, type AwsCall } from "./call.ts";
import { handsOutCredentials } from "./credential-operations.ts";
import { transaction } from "./dynamodb.ts";
import type { AwsEndpoint } from "./endpoint.ts";
import { bodyPayload } from "./payload.ts";
import { callOf } from "./protocols.ts";
import { resolveS3 } from "./resolve-s3.ts";
import { readThrough, resourcesOf } from "./resources.ts";

/** In any case, because some servers ignore case: a signature in the query, old or new. */
const PRESIGNED =
  /(?:^|&)(?:x-amz-(?:algorithm|credential|signature|security-token|date|signedheaders|expires)|awsaccesskeyid|signature)(?:=|&|$)/i;

export function resolve(
  request: ServiceRequest,
  endpoint: AwsEndpoint | undefined,
  account: string | undefined,
): ActionResolution {
  if (endpoint === undefined)
    return doubtful(
      doubt(
        `${safe(request.host)} is not a known AWS endpoint`,
        "Use a regional endpoint of a service, such as sqs.eu-west-1.amazonaws.com.",
      ),
    );
  if (isPresigned(request.query)) {
    return doubtful(
      doubt(
        "The URL is presigned: its signature is not made with the real key",
        "Call the API itself; the proxy signs it.",
      ),
    );
  }
  if (endpoint.kind === "s3" || endpoint.kind === "s3-access-point")
    return resolveS3(request, endpoint);
  const payload = bodyPayload(request);
  if (payload.kind === "refused") return { ...payload, kind: "unresolved" };
  if (endpoint.kind === "method") return resolveByMethod(request, endpoint);
  const call = callOf(request, endpoint.services);
  const hasBody = request.body !== undefined && request.body.length > 0;
  return call.kind === "doubt" ? doubtful(call) : resolveCall(call, hasBody, endpoint, account);
}

function resolveCall(
  call: AwsCall & { readonly kind: "call" },
  hasBody: boolean,
  endpoint: AwsEndpoint,
  account: string | undefined,
): ActionResolution {
  const { service, operation, labels, query, fields } = call;
  if (handsOutCredentials(service.id, operation.name)) {
    return doubtful(
      doubt(
        `${operation.name} answers with credentials, which an agent must not have`,
        "Call the service itself: the proxy signs with the credential of the Provider.",
      ),
    );
  }
  const once = remembered(fields);
  const input: Input = {
    operation: operation.name,
    place: endpoint,
    account,
    labels,
    query: (name) => query.flatMap(([other, value]) => (other === name ? [value] : [])),
    hasBody: hasBody || query.some(([name]) => name === "Action"),
    fields: once,
  };
  if (service.id === "dynamodb" && operation.name.startsWith("Transact")) {
    const parts = transaction(input);
    if (parts === undefined)
      return doubtful(
        doubt(
          "The items of the transaction are not understood",
          "Send TransactItems, each with one of ConditionCheck, Delete, Get, Put, Update.",
        ),
      );
    return {
      kind: "resolved",
      actions: parts.map(({ action, resource }) => ({ action, resources: [resource] })),
    };
  }
  const resources = resourcesOf(service.id, input);
  return {
    kind: "resolved",
    actions: [
      ...operation.actions.map((action) => ({ action, resources })),
      ...readThrough(service.id, input),
    ],
  };
}

function remembered<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);

/** Customers' own APIs and domains, and API Gateway, whose IAM actions are the methods. */
function resolveByMethod(
  request: ServiceRequest,
  endpoint: AwsEndpoint & { readonly kind: "method" },
): ActionResolution {
  const { method } = request;
  const path = plainSegments(request.path, { slashes: true });
  if (path === undefined || parseQuery(request.query) === undefined)
    return doubtful(doubt("The path or the query can be read in more than one way"));
  if (!METHODS.has(method))
    return doubtful(doubt(`${safe(method)} is not a known method of ${endpoint.service}`));
  const title = `${method[0] ?? ""}${method.slice(1).toLowerCase()}`;
  switch (endpoint.service) {
    case "apigateway":
      return {
        kind: "resolved",
        actions: [
          {
            action: `apigateway:${method}`,
            resources: [
              arn(
                `arn:${endpoint.partition}:apigateway:${endpoint.region}::/` +
                  path.segments.join("/"),
              ),
              ...(["GET", "HEAD", "DELETE"].includes(method)
                ? []
                : [unscopable("the body may name another API, a function or a role")]),
            ],
          },
        ],
      };
    case "es":
      return ofAnybody(`es:ESHttp${title}`);
    case "execute-api":
      return ofAnybody(
        path.segments.includes("@connections")
          ? "execute-api:ManageConnections"
          : "execute-api:Invoke",
      );
    case "aoss":
      return ofAnybody("aoss:APIAccessAll");
    case "lambda-url":
      return ofAnybody("lambda:InvokeFunctionUrl");
  }
}

/** The host does not contain an account: it may belong to anybody. */
function ofAnybody(action: string): ActionResolution {
  return {
    kind: "resolved",
    actions: [{ action, resources: [unscopable("the account of the host is unknown")] }],
  };
}

function doubtful(call: AwsCall & { readonly kind: "doubt" }): ActionResolution {
  const { reason, hint } = call;
  return { kind: "unresolved", reason, ...(hint === undefined ? {} : { hint }) };
}

/** Returns whether a query contains a signature; escapes in a parameter's name do not hide it. */
export function isPresigned(query: string): boolean {
  const plain = query.replace(/%([0-9A-Fa-f]{2})/g, (all, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return /[A-Za-z0-9-]/.test(character) ? character : all;
  });
  return PRESIGNED.test(plain);
}
