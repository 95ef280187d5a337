/**
 * Finds the operation of a method and a path. Built once from a service's routes and queried for
 * every request. As in services' own routers, a literal takes precedence over a parameter, and a
 * route without the method does not match.
 */
import type { Segment } from "./url-path.ts";

export interface Route {
  readonly method: string;
  /** Template as the service writes it: `/repos/{owner}/{repo}/issues`. */
  readonly template: string;
  /** Category in the service's documentation: `issues`, `pulls`, ... */
  readonly category: string;
  readonly subcategory: string;
  /** `issues/list-for-repo` */
  readonly operation: string;
}

export interface RouteMatch {
  readonly route: Route;
  /** By name: the segments of each parameter; several only for a parameter that spans them. */
  readonly parameters: ReadonlyMap<string, readonly Segment[]>;
}

interface Node {
  readonly words: Map<string, Node>;
  /** Narrow parameters before wide ones. */
  readonly parameters: {
    readonly kind: string;
    readonly accepts: (segment: Segment) => boolean;
    readonly rank: number;
    readonly node: Node;
  }[];
  spanning: Node | undefined;
  readonly routes: Map<string, CompiledRoute>;
}

interface CompiledRoute {
  readonly route: Route;
  /** Name of the parameter at each position, or undefined for a literal. */
  readonly places: readonly (string | undefined)[];
  /** The last parameter may be empty: `/contents/` is the root folder. */
  readonly mayEndEmpty: boolean;
}

const INTEGER = /^\d{1,20}$/;
const PARAMETER = /^\{([^:}]+)(?::([^}]+))?\}$/;
const MAX_SEGMENTS = 128;

export class RouteTrie {
  readonly #root = emptyNode();

  /** @param line `METHOD path category subcategory operation` */
  add(line: string): Route {
    const [method = "", typed = "", category = "", subcategory = "", operation = ""] =
      line.split(" ");
    const words = typed
      .split("/")
      .slice(1)
      .filter((word) => word !== "");
    let node = this.#root;
    let spans = false;
    const places = words.map((word) => {
      const [, name, kind = "any"] = PARAMETER.exec(word) ?? [];
      if (name === undefined && word.includes("{"))
        throw new Error(`parameter within a segment: ${typed}`);
      if (kind === "multi" && spans) throw new Error(`two parameters that span segments: ${typed}`);
      spans ||= kind === "multi";
      node = name === undefined ? wordNode(node, word) : parameterNode(node, kind);
      return name;
    });
    const route = {
      method,
      template: typed.replaceAll(/:[a-z]{1,20}\}/g, "}"),
      category,
      subcategory,
      operation,
    };
    node.routes.set(method, {
      route,
      places,
      mayEndEmpty: words.at(-1)?.endsWith(":multi}") ?? false,
    });
    return route;
  }

  /** Serves the same paths below another prefix, `typed`, as below `template`. */
  alias(typed: string, template: string): void {
    const follow = (text: string, step: (node: Node, word: string) => Node): Node =>
      text.split("/").slice(1).reduce(step, this.#root);
    const target = follow(template, (node, word) => {
      const next = word.startsWith("{")
        ? node.parameters.find(({ kind }) => kind === "any")?.node
        : node.words.get(word);
      if (next === undefined) throw new Error(`no route begins with ${template}`);
      return next;
    });
    const words = typed.split("/").slice(1);
    const last = words.pop() ?? "";
    const parent = words.reduce((node, word) => wordNode(node, word), this.#root);
    const kind = PARAMETER.exec(last)?.[2] ?? "any";
    if (parent.parameters.some((each) => each.kind === kind)) throw new Error(`taken: ${typed}`);
    addParameter(parent, kind, target);
  }

  find(
    method: string,
    segments: readonly Segment[],
    trailingSlash: boolean,
  ): RouteMatch | undefined {
    if (segments.length > MAX_SEGMENTS) return undefined;
    return this.#walk(
      this.#root,
      method === "HEAD" ? "GET" : method,
      segments,
      0,
      undefined,
      trailingSlash,
    );
  }

  #walk(
    node: Node,
    method: string,
    segments: readonly Segment[],
    at: number,
    span: readonly [number, number] | undefined,
    trailingSlash: boolean,
  ): RouteMatch | undefined {
    const segment = segments[at];
    if (segment === undefined) {
      const exact = node.routes.get(method);
      if (exact !== undefined && (!trailingSlash || exact.mayEndEmpty))
        return matched(exact, segments, span);
      const empty = trailingSlash ? node.spanning?.routes.get(method) : undefined;
      return empty?.mayEndEmpty === true ? matched(empty, segments, [at, at]) : undefined;
    }
    const word = segment.slashed ? undefined : node.words.get(segment.text);
    if (word !== undefined) {
      const found = this.#walk(word, method, segments, at + 1, span, trailingSlash);
      if (found !== undefined) return found;
    }
    for (const { accepts, node: next } of node.parameters) {
      if (!accepts(segment)) continue;
      const found = this.#walk(next, method, segments, at + 1, span, trailingSlash);
      if (found !== undefined) return found;
    }
    if (node.spanning === undefined) return undefined;
    // The shortest first, so that literals after the parameter match as literals where possible.
    for (let end = at + 1; end <= segments.length; end++) {
      const found = this.#walk(node.spanning, method, segments, end, [at, end], trailingSlash);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

function matched(
  compiled: CompiledRoute,
  segments: readonly Segment[],
  span: readonly [number, number] | undefined,
): RouteMatch {
  const parameters = new Map<string, readonly Segment[]>();
  let at = 0;
  for (const name of compiled.places) {
    const end: number = span !== undefined && at === span[0] ? span[1] : at + 1;
    if (name !== undefined) parameters.set(name, segments.slice(at, end));
    at = end;
  }
  return { route: compiled.route, parameters };
}

function emptyNode(): Node {
  return { words: new Map(), parameters: [], spanning: undefined, routes: new Map() };
}

function wordNode(node: Node, word: string): Node {
  const next = node.words.get(word) ?? emptyNode();
  node.words.set(word, next);
  return next;
}

function parameterNode(node: Node, kind: string): Node {
  if (kind === "multi") return (node.spanning ??= emptyNode());
  return (
    node.parameters.find((each) => each.kind === kind)?.node ??
    addParameter(node, kind, emptyNode())
  );
}

function addParameter(node: Node, kind: string, next: Node): Node {
  node.parameters.push({ kind, node: next, ...accepting(kind) });
  node.parameters.sort((a, b) => a.rank - b.rank);
  return next;
}

function accepting(kind: string): {
  readonly accepts: (segment: Segment) => boolean;
  readonly rank: number;
} {
  if (kind === "int") return { rank: 1, accepts: ({ text }) => INTEGER.test(text) };
  if (kind === "any") return { rank: 2, accepts: ({ slashed }) => !slashed };
  const values = new Set(kind.split("|"));
  return { rank: 0, accepts: ({ text }) => values.has(text) };
}
