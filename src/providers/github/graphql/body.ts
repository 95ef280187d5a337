/**
 * Parses the body of a GraphQL request: one document and its variables. Ambiguous bodies are
 * refused.
 */
import { type DocumentNode, parse } from "graphql";
import type { ServiceRequest } from "../../contract.ts";
import { isJsonObject, type StrictJson, parseStrictJson } from "../../strict-json.ts";

export type GraphqlBody =
  | {
      readonly kind: "document";
      readonly document: DocumentNode;
      readonly variables: Readonly<Record<string, StrictJson>>;
    }
  | { readonly kind: "refused"; readonly reason: string; readonly hint: string };

const MAX_TOKENS = 20_000;
const MEMBERS = new Set(["query", "variables", "operationName"]);
const SHAPE = 'Send {"query": "...", "variables": {...}}';

export function readGraphqlBody(request: ServiceRequest): GraphqlBody {
  const { headers, body } = request;
  if (headers.has("content-encoding"))
    return refused(
      "The body is compressed, so it cannot be evaluated",
      "Send it without content-encoding",
    );
  // As a form, the same bytes could contain another query; RFC 8259 explains why there is no other
  // charset.
  if (
    !/^application\/json(?:\s*;\s*charset="?utf-8"?)?\s*$/i.test(headers.get("content-type") ?? "")
  ) {
    return refused("The body is not declared to be JSON", "Send content-type: application/json");
  }
  if (request.query !== "")
    return refused("The address has a query string", "Put everything into the body");
  if (body === undefined) return refused("There is no body to evaluate", SHAPE);
  const parsed = parseStrictJson(body);
  if (parsed.kind === "invalid") return refused(`The body ${parsed.reason}`, SHAPE);
  const { value } = parsed;
  if (Array.isArray(value)) return refused("The body is a batch", "Send one query in a request");
  if (!isJsonObject(value)) return refused("The body is not an object", SHAPE);
  const extra = Object.keys(value).find((name) => !MEMBERS.has(name));
  if (extra !== undefined)
    return refused(
      "The body holds more than query, variables and operationName",
      "Persisted queries and extensions cannot be evaluated: send the query itself",
    );
  const { query, variables = null, operationName = null } = value;
  if (typeof query !== "string") return refused("The body holds no query", SHAPE);
  if (variables !== null && !isJsonObject(variables))
    return refused("`variables` is not an object", SHAPE);
  if (operationName !== null && typeof operationName !== "string")
    return refused("`operationName` is not a text", SHAPE);
  try {
    return {
      kind: "document",
      document: parse(query, { noLocation: true, maxTokens: MAX_TOKENS }),
      variables: variables ?? {},
    };
  } catch {
    // A syntax error, or nesting that exceeds the parser's limits.
    return refused(
      "The query is not valid GraphQL, or too large to be evaluated",
      "Send less in one query",
    );
  }
}

function refused(reason: string, hint: string): GraphqlBody {
  return { kind: "refused", reason, hint };
}
