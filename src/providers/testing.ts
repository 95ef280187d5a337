/** Test helpers for plugins: a clock that tests advance, requests, a context, a token server. */
import { pino } from "pino";
import { FakeClock } from "../platform/testing.ts";
import { Secret } from "../platform/secret.ts";
import type { PluginContext, ServiceRequest } from "./contract.ts";

/** Creates `GET https://host/path?query`, split as in the pipeline: raw, nothing decoded. */
export function request(
  line: string,
  options: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string | Buffer;
  } = {},
): ServiceRequest {
  const match = /^([^ ]+) https:\/\/([^/?]+)(\/[^?]*)(?:\?(.*))?$/s.exec(line);
  if (match === null) throw new Error(`not METHOD https://host/path: ${line}`);
  const [, method = "", host = "", path = "", query = ""] = match;
  const body = options.body === undefined ? undefined : Buffer.from(options.body);
  return {
    method,
    host,
    path,
    query,
    headers: new Map(Object.entries(options.headers ?? {})),
    body,
  };
}

export interface PluginCall {
  readonly url: string;
  readonly method: string;
  readonly headers: Headers;
  readonly body: string;
}

/** A token server that answers with the result of `respond`, and records its calls. */
export class FakeServer {
  readonly calls: PluginCall[] = [];
  respond: (call: PluginCall) => Response | Promise<Response>;

  constructor(respond: (call: PluginCall) => Response | Promise<Response>) {
    this.respond = respond;
  }

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const body =
      init.body instanceof URLSearchParams || typeof init.body === "string"
        ? String(init.body)
        : "";
    const call = { url, method: init.method ?? "GET", headers: new Headers(init.headers), body };
    this.calls.push(call);
    return this.respond(call);
  };
}

/** Creates a context that captures log lines, and whose `fetch` fails unless one is given. */
export function context(
  options: { readonly secrets?: Readonly<Record<string, string>> } & Partial<
    Omit<PluginContext, "secrets" | "log" | "clock">
  > & {
      readonly clock?: FakeClock;
    } = {},
): PluginContext & { readonly clock: FakeClock; readonly lines: string[] } {
  const lines: string[] = [];
  return {
    binding: "bound",
    authType: "token",
    config: {},
    state: undefined,
    fetch: () => Promise.reject(new Error("nothing is to be fetched")),
    random: () => 0.5,
    ...options,
    clock: options.clock ?? new FakeClock(),
    secrets: new Map(
      Object.entries(options.secrets ?? {}).map(([key, value]) => [key, new Secret(value)]),
    ),
    log: pino({ level: "trace" }, { write: (line: string) => void lines.push(line) }),
    lines,
  };
}

/**
 * Data about a plugin for the contract suite: `contract-sample.ts` of its folder exports it as
 * `sample`.
 */
export interface ContractSample {
  /** A working Secret for each kind of `spec.auth.type`. */
  readonly auth: Readonly<
    Record<
      string,
      {
        readonly secrets: Readonly<Record<string, string>>;
        readonly config?: Readonly<Record<string, string>>;
        /** Further parts of the context. */
        readonly context?: Pick<PluginContext, "mcp">;
      }
    >
  >;
  /** Answers of the token server, if there is one. */
  readonly respond?: (call: PluginCall) => Response | Promise<Response>;
  /**
   * Parts of credentials that must only appear in an injection, besides the Secret's values: tokens
   * that `respond` returns.
   */
  readonly tokens?: readonly string[];
  /** Requests that are resolved, and their actions. */
  readonly requests: readonly {
    readonly request: ServiceRequest;
    readonly actions: readonly string[];
  }[];
  /** Endings that the last name of a request's path may have, with the reason. */
  readonly namesMayEnd?: { readonly ends: readonly string[]; readonly reason: string };
  /** Checks of the suite that do not apply to this plugin, with the reason. */
  readonly exceptions?: Partial<Record<ContractException, string>>;
}

export type ContractException =
  /**
   * Dots, empty segments and encoded slashes of a path are part of a name that the service takes
   * literally.
   */
  | "paths are names"
  /** Sets headers that are not credentials, and are therefore not removed from requests. */
  | "sets other headers"
  /** A cookie is not a credential for this service. */
  | "cookies stay"
  /** There are no default hosts, and no scope. */
  | "hosts and scopes by settings"
  /** A kind of credential is sent in no request. */
  | "no header"
  /** Paths that are not understood need a rule of `policy.httpRules`. */
  | "other paths by rule";
