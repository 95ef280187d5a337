/**
 * Azure Resource Manager: the action is the resource's type and what the method does, as roles have it. Segments stand in
 * pairs of type and name behind the last `providers`; a POST ends in the name of what it does.
 * https://learn.microsoft.com/azure/role-based-access-control/resource-provider-operations
 */
import type { ActionResolution, Resource } from "../contract.ts";
import { unscopable, within } from "./resources.ts";
import { unresolved } from "./unresolved.ts";

const NAMESPACE = /^[A-Za-z][A-Za-z0-9-]*(?:\.[A-Za-z0-9-]+)+$/;
const TYPE = /^[A-Za-z][A-Za-z0-9._-]*$/;
/** Of POST: what answers with keys, tokens, passwords or links that hold one. */
const CREDENTIALS =
  /^(?:list.*(?:key|credential|secret|sas|connectionstring|token|password|kubeconfig|authorization).*|list|regenerate.*|generate.*(?:credential|token|sas|key|password).*|getaccesstoken|gettoken|begingetaccess|publishxml|newpassword|resetpassword|resetserviceprincipalprofile|retrieve.*(?:script|key).*|createtoken|vpnclientpackage|generatevpn.*|get.*(?:sharedkey|credential|password|token).*)$/i;
/** Their bodies name other places. */
const REACHES_FURTHER =
  /^microsoft\.resources\/(?:deployments|deploymentstacks|.*moveresources|.*validatemoveresources)/i;

type Segments = readonly string[];

export function resolveArm(method: string, segments: Segments): ActionResolution {
  const place = placeOf(segments);
  if (place === undefined)
    return unresolved("This path is not one of Azure Resource Manager's that is known");
  const typed = typeOf(segments, place.rest);
  if (typed === undefined) return unresolved("The path's types and names do not come in pairs");
  const verb = verbOf(method, typed);
  if (verb === undefined) return unresolved("This method is not known of this kind of path");
  if (verb.credentials)
    return unresolved(
      `${verb.action} answers with credentials, or may, and an agent must not have them`,
    );
  const further =
    REACHES_FURTHER.test(verb.action) && method !== "GET" && method !== "HEAD"
      ? [unscopable("a deployment or a move reaches into other resource groups")]
      : [];
  return {
    kind: "resolved",
    actions: [{ action: verb.action, resources: [...place.resources, ...further] }],
  };
}

interface Place {
  readonly resources: readonly Resource[];
  /** What is behind subscription and group, or the whole path. */
  readonly rest: Segments;
  readonly level: "tenant" | "subscription" | "group";
}

const is = (segment: string | undefined, word: string): boolean => segment?.toLowerCase() === word;

function placeOf(segments: Segments): Place | undefined {
  const [first, subscription, groups, group] = segments;
  // A scope inside a name: an id of another resource as an extension's parent would be read twice.
  if (segments.slice(1).some((segment) => is(segment, "subscriptions"))) return undefined;
  if (!is(first, "subscriptions")) {
    return is(first, "providers") || is(first, "tenants")
      ? {
          resources: [unscopable("the request is about the whole tenant")],
          rest: segments,
          level: "tenant",
        }
      : undefined;
  }
  if (subscription === undefined)
    return {
      resources: [unscopable("a list of all subscriptions is in none")],
      rest: [],
      level: "tenant",
    };
  if (is(groups, "resourcegroups") && group !== undefined)
    return { resources: within(subscription, group), rest: segments.slice(4), level: "group" };
  // A group named further behind would be outside of what is judged.
  if (segments.slice(3).some((segment) => is(segment, "resourcegroups"))) return undefined;
  return {
    resources: within(subscription, undefined),
    rest: segments.slice(2),
    level: "subscription",
  };
}

interface Typed {
  /** `Microsoft.Compute/virtualMachines/extensions`. */
  readonly type: string;
  /** Whether the path ends in a type and not in a name. */
  readonly open: boolean;
  /** The last type, which a POST does; empty for a list that nothing can be done to. */
  readonly last: string;
}

function typeOf(segments: Segments, rest: Segments): Typed | undefined {
  const at = rest.findLastIndex((segment) => is(segment, "providers"));
  if (at >= 0 && rest.length > at + 2) {
    const [namespace = "", ...pairs] = rest.slice(at + 1);
    return NAMESPACE.test(namespace) ? paired(namespace, pairs) : undefined;
  }
  // What Resource Manager itself keeps: subscriptions, groups, and lists of them.
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
        ? { action: `${type}/action`, credentials: CREDENTIALS.test(last) }
        : undefined;
    default:
      return undefined;
  }
}
