/**
 * What a provider plugin is: it knows one kind of external service, and nothing of Envoy, of
 * Kubernetes or of policy. It says what a request is (an action on a resource) and puts a
 * credential on one that was permitted. Who may do what is decided by the binding pipeline, which
 * calls it. All plugins pass one suite: contract.test.ts.
 */
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import type { Secret } from "../platform/secret.ts";

/** A request of an agent, as it is on the wire: what is judged here is what is forwarded. */
export interface ServiceRequest {
  /** As sent; `GET`, ... */
  readonly method: string;
  /** Lower-case, without port and trailing dot. */
  readonly host: string;
  /** Raw: not decoded, not normalised. Begins with `/`, holds no `?`. */
  readonly path: string;
  /** Raw, without `?`; empty for none. */
  readonly query: string;
  /** By lower-case name; a repeated header's values are joined with `, `. */
  readonly headers: ReadonlyMap<string, string>;
  /** Whole, where a {@link BodyRule} asks for it; else undefined. */
  readonly body: Buffer | undefined;
}

/** What an action touches, as a Provider's `spec.scope` names it. */
export type Resource =
  /**
   * Held against the globs of `spec.scope.<key>`. Records show `shown` where it says more than what
   * is compared: the blob of a container.
   */
  | {
      readonly kind: "scoped";
      readonly key: ScopeKey;
      readonly value: string;
      readonly shown?: string;
    }
  /**
   * Touches something that the scope's words cannot name: denied where a scope is set. With `keys`,
   * only where one of these is.
   */
  | { readonly kind: "unscopable"; readonly reason: string; readonly keys?: readonly ScopeKey[] }
  /**
   * Touches nothing that a scope could be about (a rate limit, one's own identity): a scope does
   * not matter.
   */
  | { readonly kind: "none" };

export type ScopeKey =
  | "repositories"
  | "arns"
  | "projects"
  | "subscriptions"
  | "resourceGroups"
  | "containers"
  | "channels";

/** One thing that a request does. */
export interface ResolvedAction {
  /** E.g. `pulls:read`, `s3:GetObject`. No `*`. */
  readonly action: string;
  /**
   * Wider actions that cover it, such as `messages:write` for `messages:delete`: to a policy that
   * names one of these, it is that as well.
   */
  readonly broader?: readonly string[];
  /** All of them must be in scope. Empty is `none`. */
  readonly resources: readonly Resource[];
}

export type ActionResolution =
  /** At least one; the request is permitted only if every one is. */
  | { readonly kind: "resolved"; readonly actions: readonly ResolvedAction[] }
  /**
   * Denied in enforce mode: on doubt, deny. `reason` is a sentence for the agent, `hint` says what
   * would work.
   */
  | { readonly kind: "unresolved"; readonly reason: string; readonly hint?: string };

/** Changes that put the credential on. Names of headers are lower-case. */
export interface Injection {
  readonly set: readonly (readonly [name: string, value: string])[];
  readonly remove: readonly string[];
  /** Query parameters to add; values as they are, not yet encoded. */
  readonly setQuery: readonly (readonly [name: string, value: string])[];
}

export const NO_INJECTION: Injection = { set: [], remove: [], setQuery: [] };

/**
 * Requests whose body must be read whole before they can be judged or signed. Compiled into Envoy's
 * routes.
 */
export interface BodyRule {
  /** Hosts as in {@link ProviderPlugin.hosts}; empty for all of the binding's. */
  readonly hosts: readonly string[];
  /**
   * RE2, of the whole host: left out though `hosts` names them, so that what streams to them is not
   * held.
   */
  readonly exceptHosts?: string;
  /** Undefined for all. */
  readonly methods: readonly string[] | undefined;
  /**
   * Exact paths, prefixes that end in `*`, or suffixes that begin with `*` (of the path, without
   * the query). `{}` stands for one segment.
   */
  readonly paths: readonly string[];
  /**
   * RE2, of the whole path: left out though `paths` names them. Their bodies stream and are not
   * read.
   */
  readonly exceptPaths?: string;
  /**
   * RE2, of the whole `content-type` in any case: left out, so that transfers and streams of that
   * type are not held. Such a body is not read.
   */
  readonly exceptContentTypes?: string;
  /** A larger body is refused with 413. */
  readonly maxBytes: number;
}

/**
 * What the agent is told of a request that was not let through. Names of what was asked for are the
 * agent's own words.
 */
export interface Denial {
  readonly status: number;
  readonly code: string;
  /** For people. */
  readonly message: string;
  /** As JSON tells them: binding, action, resource, rule, ... */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface WordedDenial {
  /** `content-type` is among them. Names are lower-case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
}

/** What a plugin may use of the world. */
export interface PluginContext {
  /** Name of the Provider that is bound. */
  readonly binding: string;
  /** `spec.auth.type`. */
  readonly authType: string;
  /** The Secret's values by key. */
  readonly secrets: ReadonlyMap<string, Secret>;
  /** `spec.config`: the plugin's own settings, text by name; unknown names are an error. */
  readonly config: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /**
   * To token servers: resolves names by DNS alone and verifies certificates; never through the
   * agent's interception.
   */
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly log: Logger;
}

/** A plugin at work for one binding. */
export interface ProviderInstance {
  /** Pure. Never throws: what cannot be judged is unresolved. */
  resolveAction(request: ServiceRequest): ActionResolution;
  /**
   * Called only for what was permitted, after the audit record is written and after the agent's own
   * credentials are off ({@link ProviderPlugin.credentialHeaders}).
   * @throws InjectionError where no credential can be had now; the request is refused with 502 or
   * 503
   */
  injectCredentials(request: ServiceRequest): Injection | Promise<Injection>;
  /**
   * Gets what must be had before the first request, and keeps it fresh in the background until
   * {@link stop}.
   */
  start(): Promise<void>;
  stop(): Promise<void>;
  /**
   * Gets a new token now; concurrent calls share one exchange. Nothing to do where credentials do
   * not age.
   */
  refreshToken(): Promise<void>;
}

/**
 * One kind of external service: a folder of `src/providers` whose `plugin.ts` exports it as
 * `plugin`.
 */
export interface ProviderPlugin {
  /** `spec.type` of a Provider. */
  readonly providerName: string;
  /** Hosts that are intercepted, exact. */
  readonly defaultHosts: readonly string[];
  /**
   * Hosts that are intercepted, each `*.` and a domain: any number of labels before it, at least
   * one.
   */
  readonly hostPatterns: readonly string[];
  /**
   * Hosts that `spec.config` puts in the place of both lists, exact; undefined, or no such
   * function, for none.
   */
  hostsFor?(config: Readonly<Record<string, string>>): readonly string[] | undefined;
  /** The path as logs and the audit trail may show it; for services that take credentials in it. */
  redactPath?(path: string): string;
  /**
   * A denial in the form in which the service's own clients show its message; undefined, or no such
   * function, for JSON with a `message`. Pure; escapes what it puts in.
   */
  wordDenial?(request: ServiceRequest, denial: Denial): WordedDenial | undefined;
  /** Kinds of `spec.auth.type` and the Secret's keys that each needs. */
  readonly authTypes: Readonly<
    Record<string, { readonly required: readonly string[]; readonly optional: readonly string[] }>
  >;
  /**
   * Its scope vocabulary: keys of `spec.scope` that it fills, with what the globs of each are held
   * against. A Provider whose scope has another key is refused, since nothing would be held to it.
   */
  readonly scopeKeys: Readonly<Partial<Record<ScopeKey, string>>>;
  /** Whether globs of `spec.scope` are compared without regard to case. */
  readonly scopeIgnoresCase: boolean;
  /** Names of `spec.config`, with what each is. */
  readonly configKeys: Readonly<Record<string, string>>;
  readonly bodies: readonly BodyRule[];
  /**
   * Headers and query parameters by which an agent could bring a credential of its own: taken off,
   * whatever the mode.
   */
  readonly credentialHeaders: readonly string[];
  readonly credentialQuery: readonly string[];
  /** @throws ConfigError */
  create(context: PluginContext): ProviderInstance;
}

/**
 * Settings or a Secret that cannot work. The message says what and how to mend it, and shows no
 * value.
 */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/**
 * No credential can be had now. The message is for the agent: it shows no value and no address of
 * ours.
 */
export class InjectionError extends Error {
  override readonly name = "InjectionError";
  readonly status: 502 | 503 | 400;

  constructor(message: string, status: 502 | 503 | 400 = 503) {
    super(message);
    this.status = status;
  }
}
