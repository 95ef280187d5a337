/**
 * Azure Resource Manager: the action is the resource's type and the method's operation, as in
 * roles. Segments are pairs of type and name after the last `providers`; a POST ends in the name of
 * its operation.
 * https://learn.microsoft.com/azure/role-based-access-control/resource-provider-operations
 */
import type { ActionResolution, ServiceResource, ServiceRequest } from "../contract.ts";
import type { Parameters } from "../raw-url.ts";
import { parseStrictJson } from "../strict-json.ts";
import { Locators } from "./locators.ts";
import { type AzurePlaces, unscopable, within } from "./resources.ts";
import { unresolved } from "./unresolved.ts";

const NAMESPACE = /^[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)+$/;
const TYPE = /^[A-Za-z][A-Za-z0-9._-]*$/;
/** POST actions whose responses contain keys, tokens, passwords or links that contain one. */
const CREDENTIAL_ACTIONS: ReadonlySet<string> = new Set([
  "list",
  "getaccesstoken",
  "gettoken",
  "begingetaccess",
  "publishxml",
  "newpassword",
  "resetpassword",
  "resetserviceprincipalprofile",
  "createtoken",
  "vpnclientpackage",
]);

/**
 * Further credential actions by a verb and a word after it; an empty list matches every name with
 * the verb.
 */
const CREDENTIAL_VERBS: readonly (readonly [verb: string, words: readonly string[]])[] = [
  [
    "list",
    [
      "key",
      "credential",
      "secret",
      "sas",
      "connectionstring",
      "token",
      "password",
      "kubeconfig",
      "authorization",
    ],
  ],
  ["regenerate", []],
  ["generate", ["credential", "token", "sas", "key", "password"]],
  ["retrieve", ["script", "key"]],
  ["generatevpn", []],
  ["get", ["sharedkey", "credential", "password", "token"]],
];

function answersWithCredentials(name: string): boolean {
  const action = name.toLowerCase();
  if (CREDENTIAL_ACTIONS.has(action)) return true;
  return CREDENTIAL_VERBS.some(([verb, words]) => {
    if (!action.startsWith(verb)) return false;
    return words.length === 0 || words.some((word) => action.includes(word, verb.length));
  });
}

/** Operations whose bodies name other places, or that move resources. */
const WRITES_FURTHER =
  /^microsoft\.resources\/(?:deployments|deploymentstacks|links|.*moveresources|.*validatemoveresources)/i;
/** Actions whose responses concern other places, for any method. */
const REACHES_FURTHER: readonly (readonly [action: RegExp, reason: string])[] = [
  [
    /^microsoft\.(?:operationalinsights\/workspaces|insights\/components)\/(?:.*\/)?(?:api|query|search)(?:\/|$)|^microsoft\.(?:insights\/logs|resourcegraph)\//i,
    "a query may read from any workspace",
  ],
  [
    /^microsoft\.compute\/(?:.*\/)?(?:sharedgalleries|communitygalleries)(?:\/|$)/i,
    "galleries that are shared are of other subscriptions",
  ],
];

type Segments = readonly string[];

/** Parameters that filter or shape a response. */
const WITHIN_PARAMETERS =
  /^(?:api-version|\$(?:count|expand|filter|orderby|select|skip|skiptoken|top))$/i;

export function resolveArm(
  request: ServiceRequest,
  segments: Segments,
  query: Parameters,
  places: AzurePlaces,
): ActionResolution {
  const { method } = request;
  const place = placeOf(segments);
  if (place === undefined)
    return unresolved("This path is not a known path of Azure Resource Manager");
  const typed = typeOf(segments, place.rest);
  if (typed === undefined) return unresolved("The path's types and names do not come in pairs");
  const verb = verbOf(method, typed);
  if (verb === undefined) return unresolved("This method is not known of this kind of path");
  if (verb.credentials)
    return unresolved(
      `${verb.action} answers with credentials, or may, and an agent must not have them`,
    );
  const further = furtherReason(verb.action, method);
  const besides =
    further === undefined ? placesBesides(request, segments, query, places) : [unscopable(further)];
  const known = new Set(place.resources.map(keyOf));
  return {
    kind: "resolved",
    actions: [
      {
        action: verb.action,
        resources: [...place.resources, ...besides.filter((each) => !known.has(keyOf(each)))],
      },
    ],
  };
}

function keyOf(resource: ServiceResource): string {
  return resource.kind === "scoped" ? `${resource.key}=${resource.value}` : resource.kind;
}

function furtherReason(action: string, method: string): string | undefined {
  if (WRITES_FURTHER.test(action) && method !== "GET" && method !== "HEAD")
    return "a deployment, a link or a move reaches into other resource groups";
  return REACHES_FURTHER.find(([pattern]) => pattern.test(action))?.[1];
}

/** Returns the places that the query and the body name. */
function placesBesides(
  { body, headers }: ServiceRequest,
  segments: Segments,
  query: Parameters,
  places: AzurePlaces,
): readonly ServiceResource[] {
  const locators = new Locators(places, is(segments[0], "subscriptions") ? segments[1] : undefined);
  for (const [name, value] of query) if (!WITHIN_PARAMETERS.test(name)) locators.addText(value);
  if (body === undefined) return locators.resources;
  const type = headers.get("content-type") ?? "";
  const isJson = /^application\/(?:[\w.-]+\+)?json(?:\s*;\s*charset="?utf-8"?)?\s*$/i.test(type);
  const parsed = isJson && !headers.has("content-encoding") ? parseStrictJson(body) : undefined;
  if (parsed?.kind !== "parsed")
    return [unscopable("the body may name other places, and is not plain JSON")];
  locators.addDocument(parsed.value);
  return locators.resources;
}

interface Place {
  readonly resources: readonly ServiceResource[];
  /** The part after subscription and group, or the whole path. */
  readonly rest: Segments;
}

const is = (segment: string | undefined, word: string): boolean => segment?.toLowerCase() === word;

function placeOf(segments: Segments): Place | undefined {
  const [first, subscription, groups, group] = segments;
  // A scope inside a name: an id of another resource as an extension's parent would be ambiguous.
  if (segments.slice(1).some((segment) => is(segment, "subscriptions"))) return undefined;
  if (!is(first, "subscriptions")) {
    return is(first, "providers") || is(first, "tenants")
      ? {
          resources: [unscopable("the request is about the whole tenant")],
          rest: segments,
        }
      : undefined;
  }
  if (subscription === undefined)
    return {
      resources: [unscopable("a list of all subscriptions is in none")],
      rest: [],
    };
  if (is(groups, "resourcegroups") && group !== undefined)
    return { resources: within(subscription, group), rest: segments.slice(4) };
  // A group named later in the path would not be evaluated.
  if (segments.slice(3).some((segment) => is(segment, "resourcegroups"))) return undefined;
  return {
    resources: within(subscription, undefined),
    rest: segments.slice(2),
  };
}

interface Typed {
  /** `Microsoft.Compute/virtualMachines/extensions`. */
  readonly type: string;
  /** Whether the path ends in a type and not in a name. */
  readonly open: boolean;
  /** The last type, for which a POST names the operation; empty for a list without operations. */
  readonly last: string;
}

function typeOf(segments: Segments, rest: Segments): Typed | undefined {
  const at = rest.findLastIndex((segment) => is(segment, "providers"));
  if (at >= 0 && rest.length > at + 2) {
    const [namespace = "", ...pairs] = rest.slice(at + 1);
    return NAMESPACE.test(namespace) ? paired(namespace, pairs) : undefined;
  }
  // Resources of Resource Manager itself: subscriptions, groups, and lists of them.
  if (at >= 0 && rest.length === at + 2)
    return { type: "Microsoft.Resources/providers", open: true, last: "" };
  if (is(segments[0], "tenants"))
    return segments.length === 1
      ? { type: "Microsoft.Resources/tenants", open: true, last: "" }
      : undefined;
  if (is(segments[0], "providers"))
    return { type: "Microsoft.Resources/providers", open: true, last: "" };
  if (segments.length <= 2)
    return { type: "Microsoft.Resources/subscriptions", open: segments.length === 1, last: "" };
  const isGroup = is(segments[2], "resourcegroups") && segments.length > 3;
  const base = isGroup
    ? "Microsoft.Resources/subscriptions/resourceGroups"
    : "Microsoft.Resources/subscriptions";
  if (rest.length === 0) return { type: base, open: false, last: "" };
  return paired(base, rest);
}

function paired(base: string, pairs: Segments): Typed | undefined {
  const types = pairs.filter((_, index) => index % 2 === 0);
  if (types.length === 0 || !types.every((type) => TYPE.test(type))) return undefined;
  return {
    type: [base, ...types].join("/"),
    open: pairs.length % 2 === 1,
    last: types.at(-1) as string,
  };
}

function verbOf(
  method: string,
  { type, open, last }: Typed,
): { readonly action: string; readonly credentials: boolean } | undefined {
  switch (method) {
    case "GET":
    case "HEAD":
      return { action: `${type}/read`, credentials: false };
    case "PUT":
    case "PATCH":
      return open ? undefined : { action: `${type}/write`, credentials: false };
    case "DELETE":
      return open ? undefined : { action: `${type}/delete`, credentials: false };
    case "POST":
      return open && last !== ""
        ? { action: `${type}/action`, credentials: answersWithCredentials(last) }
        : undefined;
    default:
      return undefined;
  }
}
