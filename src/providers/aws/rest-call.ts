/** Finds the operation of a REST service by method and path. */
import type { ServiceRequest } from "../contract.ts";
import { type Parameters } from "../raw-url.ts";
import { plainSegments } from "../url-path.ts";
import { doubt, jsonFields, safe, type AwsCall } from "./call.ts";
import type { PathPart, RestOperation, Service } from "./service-table.ts";

interface Match {
  readonly service: Service;
  readonly operation: RestOperation;
  readonly labels: Readonly<Record<string, string>>;
}

export function restCall(
  request: ServiceRequest,
  services: readonly Service[],
  query: Parameters,
): AwsCall {
  // Slashes in labels such as ARNs arrive escaped.
  const path = plainSegments(request.path, { slashes: true });
  if (path === undefined)
    return doubt(
      "The path can be read in more than one way",
      "Send it without //, dot segments, semicolons, plus signs, and escapes that are not needed.",
    );
  const matches = services.flatMap((service) =>
    service.rest.flatMap((operation) =>
      matchOf(service, operation, request.method, path.segments, query),
    ),
  );
  const best = mostSpecific(matches);
  const [first, ...others] = best;
  if (first === undefined)
    return doubt(
      `${safe(request.method)} ${safe(request.path)} is not a known operation of ${request.host}`,
    );
  if (
    others.some(
      ({ service, operation }) =>
        service.signingName !== first.service.signingName ||
        operation.actions.join() !== first.operation.actions.join(),
    )
  ) {
    return doubt(
      `${safe(request.method)} ${safe(request.path)} is several operations of ${request.host}`,
    );
  }
  return {
    kind: "call",
    service: first.service,
    operation: first.operation,
    labels: first.labels,
    query,
    fields: () => jsonFields(request),
  };
}

function matchOf(
  service: Service,
  operation: RestOperation,
  method: string,
  segments: readonly string[],
  query: Parameters,
): Match[] {
  if (operation.method !== method) return [];
  const labels = labelsOf(operation.path, segments);
  if (labels === undefined) return [];
  for (const { name, value } of operation.query) {
    const values = query.filter(([other]) => other === name);
    if (values.length !== 1 || (value !== undefined && values[0]?.[1] !== value)) return [];
  }
  return [{ service, operation, labels }];
}

/** Returns the value of each label of a path; undefined if the path does not match. */
function labelsOf(
  parts: readonly PathPart[],
  segments: readonly string[],
): Record<string, string> | undefined {
  const labels: Record<string, string> = {};
  const greedy = parts.findIndex((part) => part.kind === "label" && part.greedy);
  const extra = greedy < 0 ? 0 : segments.length - parts.length;
  if (extra < 0 || (greedy < 0 && segments.length !== parts.length)) return undefined;
  let at = 0;
  for (const [index, part] of parts.entries()) {
    const taken = segments.slice(at, at + (index === greedy ? extra + 1 : 1));
    at += taken.length;
    const text = taken.join("/");
    if (part.kind === "label") labels[part.name] = text;
    else if (part.text !== text) return undefined;
  }
  return labels;
}

/**
 * Literals take precedence over labels, and labels over greedy ones, from the left; then the route
 * with more required parameters wins.
 */
function mostSpecific(matches: readonly Match[]): readonly Match[] {
  const ranks = matches.map(
    ({ operation }) =>
      operation.path.map(rank).join("") + String.fromCharCode(0x7a - operation.query.length),
  );
  const best = ranks.toSorted()[0];
  return matches.filter((_, index) => ranks[index] === best);
}

function rank(part: PathPart): string {
  if (part.kind === "literal") return "0";
  return part.greedy ? "2" : "1";
}
