/**
 * Determines the service and operation of a request in each of AWS's protocols: JSON
 * (`x-amz-target`), CBOR (in the path), query (`Action`) and REST (method and path). A request that
 * is valid in two of them is refused. https://smithy.io/2.0/aws/protocols/
 */
import type { ServiceRequest } from "../contract.ts";
import { parseForm, parseQuery, repeatedName, type Parameters } from "../raw-url.ts";
import { doubt, jsonFields, safe, type AwsCall, type AwsJsonObject } from "./call.ts";
import { restCall } from "./rest-call.ts";
import type { Service } from "./service-table.ts";

export function callOf(request: ServiceRequest, services: readonly Service[]): AwsCall {
  const doubtful = doubtOf(request);
  if (doubtful !== undefined) return doubtful;
  const query = parseQuery(request.query);
  if (query === undefined)
    return doubt(
      "The query can be read in more than one way",
      "Escape a plus as %2B, a space as %20 and a semicolon as %3B.",
    );
  const target = request.headers.get("x-amz-target");
  const cbor = /^\/service\/([A-Za-z0-9_.]+)\/operation\/([A-Za-z0-9_]+)$/.exec(request.path);
  const isForm = mediaType(request) === "application/x-www-form-urlencoded";
  const hasAction = query.some(([name]) => name.toLowerCase() === "action");
  if (target !== undefined) {
    if (cbor !== null || isForm || hasAction)
      return doubt(
        "The operation is named in two places: x-amz-target and the path, the query or a form",
      );
    return jsonCall(request, target, services, query);
  }
  if (cbor !== null && request.headers.get("smithy-protocol") === "rpc-v2-cbor")
    return cborCall(request, cbor, services, query);
  const speaksQuery = services.some((service) => service.speaksQuery);
  if (speaksQuery && (isForm || hasAction)) return queryCall(request, isForm, services, query);
  return restCall(request, services, query);
}

function doubtOf(request: ServiceRequest): AwsCall | undefined {
  if (mediaType(request) === "application/vnd.amazon.eventstream")
    return doubt(
      "Streams of signed events cannot be signed again",
      "Use the operation that does not stream its input.",
    );
  return undefined;
}

function mediaType(request: ServiceRequest): string {
  return (request.headers.get("content-type") ?? "").split(";")[0]?.trim().toLowerCase() ?? "";
}

function jsonCall(
  request: ServiceRequest,
  target: string,
  services: readonly Service[],
  query: Parameters,
): AwsCall {
  if (request.method !== "POST" || request.path !== "/" || query.length > 0)
    return doubt("x-amz-target belongs on POST / without a query");
  if (!/^application\/x-amz-json-1\.[01]$/.test(mediaType(request)))
    return doubt("x-amz-target belongs to content-type application/x-amz-json-1.0 or 1.1");
  const [, prefix = "", name = ""] = /^([A-Za-z0-9_.]+)\.([A-Za-z0-9_]+)$/.exec(target) ?? [];
  return named(
    services.filter((service) => service.target === prefix),
    name,
    request,
    { query, fields: () => jsonFields(request) },
  );
}

function cborCall(
  request: ServiceRequest,
  path: RegExpExecArray,
  services: readonly Service[],
  query: Parameters,
): AwsCall {
  if (request.method !== "POST" || query.length > 0)
    return doubt("rpc-v2-cbor belongs on POST without a query");
  const [, target = "", name = ""] = path;
  // The name is the last part of the target.
  const matching = services.filter(
    (service) => service.target === target || service.target?.split(".").at(-1) === target,
  );
  return named(matching, name, request, { query, fields: () => undefined });
}

function queryCall(
  request: ServiceRequest,
  isForm: boolean,
  services: readonly Service[],
  query: Parameters,
): AwsCall {
  // SQS's own URLs of queues: a parameter must then also name the queue.
  if (request.path !== "/" && !/^\/[0-9]{12}\/[A-Za-z0-9_.-]+$/.test(request.path))
    return doubt("The query protocol belongs on the path /");
  let parameters = query;
  if (isForm) {
    if (request.method !== "POST") return doubt("A form belongs on POST");
    if (query.length > 0)
      return doubt(
        "There are parameters in the query and in the body at once",
        "Send all parameters in the body.",
      );
    if (request.body === undefined) return doubt("The body was not read");
    if (request.headers.has("content-encoding"))
      return doubt(
        "The form is compressed",
        "Switch request compression off: AWS_DISABLE_REQUEST_COMPRESSION=true.",
      );
    const form = parseForm(request.body);
    if (form === undefined) return doubt("The form can be read in more than one way");
    parameters = form;
  } else if (request.method !== "GET" || bodyMayBe(request))
    return doubt(
      "Action in the query belongs on GET without a body",
      "Send all parameters in the body of a POST.",
    );
  const repeated = repeatedName(parameters);
  if (repeated !== undefined) return doubt(`The parameter ${safe(repeated)} stands twice`);
  const fields = Object.fromEntries(parameters);
  const action = Object.hasOwn(fields, "Action") ? fields["Action"] : undefined;
  if (action === undefined) return doubt("The parameter Action is missing");
  if (request.path !== "/" && pathOf(fields["QueueUrl"]) !== request.path)
    return doubt("The path and QueueUrl name different queues");
  return named(
    services.filter((service) => service.speaksQuery),
    action,
    request,
    { query, fields: () => fields },
  );
}

function pathOf(url: string | undefined): string | undefined {
  return /^https?:\/\/[^/]+(\/.*)$/.exec(url ?? "")?.[1];
}

function bodyMayBe(request: ServiceRequest): boolean {
  const length = request.headers.get("content-length");
  return (
    (request.body?.length ?? 0) > 0 ||
    request.headers.has("transfer-encoding") ||
    (length !== undefined && length !== "0")
  );
}

/**
 * Several services share some hosts: all services with this operation must agree on its actions.
 */
function named(
  services: readonly Service[],
  name: string,
  request: ServiceRequest,
  rest: { readonly query: Parameters; readonly fields: () => AwsJsonObject | undefined },
): AwsCall {
  const found = services.flatMap((service) => {
    const operation = service.rpc(name);
    return operation === undefined ? [] : [{ service, operation }];
  });
  const [first, ...others] = found;
  if (first === undefined)
    return doubt(`${safe(name)} is not a known operation of ${request.host}`);
  if (
    others.some(
      ({ service, operation }) =>
        service.signingName !== first.service.signingName ||
        operation.actions.join() !== first.operation.actions.join(),
    )
  ) {
    return doubt(`${safe(name)} is an operation of several services of ${request.host}`);
  }
  return { kind: "call", ...first, labels: {}, ...rest };
}
