/**
 * Compiles resources into the policy for requests, and a status for every object. Pure: all
 * external inputs are in its options. An object that cannot be used is left out, with its reason in
 * the status; the others are not affected.
 *
 * - A ModelProvider that is not ready is left out; agents keep their other models.
 * - A fallback that cannot be used is left out; its owner stays ready, with reason
 *   DegradedFallbacks.
 * - An object that refers to a skipped ModelProvider (`svc.io/when-env`) keeps its readiness, and
 *   its message mentions it.
 * - Every Agent that is not skipped can authenticate, also one without a usable model, or one that
 *   would run as root: its requests are denied, not unauthenticated.
 * - A caller that names a GuardBinding that does not exist is denied every call; one that would
 *   relax a binding is guarded as the binding says, and is not ready.
 */
import { createHash } from "node:crypto";
import type {
  AgentPolicy,
  KeyEntry,
  McpServerPolicy,
  PolicySnapshot,
  ModelProviderPolicy,
} from "../policy/snapshot.ts";
import type { Reason, Verdict } from "../policy/status.ts";
import { sortVerdicts } from "../policy/status.ts";
import type { AccessKey } from "../resources/access-key.ts";
import { type Agent, runsAsRoot } from "../resources/agent.ts";
import type { Endpoint } from "../resources/base-url.ts";
import type { Resource } from "../resources/kinds.ts";
import { keyOf } from "../resources/metadata.ts";
import { covers, intersect, isPattern, splitModelRef } from "../resources/model-names.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { SecretResource } from "../resources/secret.ts";
import { type CompiledMcpServers, compileMcpServers } from "./mcp-servers.ts";
import { CompiledKey, idleRestrictions } from "./policy-key.ts";
import type { ProviderScope, ScopedProvider } from "./policy-agent.ts";
import { type CallerGuards, PolicyGuards } from "./policy-guards.ts";
import { CompiledAgent } from "./policy-agent.ts";
import type { ProviderBase } from "./policy-provider.ts";
import { compileProvider, resolveProvider } from "./policy-provider.ts";
import type { Env } from "./policy-secrets.ts";
import { isEnvSet, valueOf, variableOf } from "./policy-secrets.ts";

export interface PolicyOptions {
  /** Environment for `${NAME}` and `svc.io/when-env`. */
  readonly env: Env;
  /** SHA-256 (hex) of each valid workload token of an Agent: two while the key is rotated. */
  readonly tokenHashesOf: (namespace: string, name: string) => readonly string[];
  /** Milliseconds since the epoch: determines the expired keys, for their status. */
  readonly now: number;
  /** Address of the mock upstream; undefined if none runs. */
  readonly mockEndpoint: Endpoint | undefined;
  /** Base URL of the installation's guard service; undefined if none runs. */
  readonly guardEndpoint: string | undefined;
}

export interface CompiledPolicy {
  readonly snapshot: PolicySnapshot;
  /** One for each object, by kind, namespace and name. */
  readonly statuses: readonly Verdict[];
  /**
   * When the same resources have to be compiled again, because a status changes with time alone:
   * milliseconds since the epoch; undefined for never.
   */
  readonly recheckAt: number | undefined;
}

export function compilePolicy(resources: ResourceSet, options: PolicyOptions): CompiledPolicy {
  const { env } = options;
  const statuses: Verdict[] = [];
  const report = (resource: Resource, ready: boolean, reason: Reason, message: string) => {
    const { kind, namespace, name } = resource;
    statuses.push({ kind, namespace, name, ready, reason, message });
  };
  /** Reports a skipped resource, and returns whether it is skipped. */
  const skips = (resource: Resource): boolean => {
    if (resource.whenEnv === undefined || isEnvSet(env, resource.whenEnv)) return false;
    report(resource, false, "Skipped", `environment variable ${resource.whenEnv} is not set`);
    return true;
  };

  for (const secret of resources.secrets.values()) {
    if (!skips(secret)) reportSecret(secret, env, report);
  }

  const bases = new Map<string, ProviderBase | "skipped">();
  for (const [key, provider] of resources.modelProviders) {
    bases.set(
      key,
      skips(provider) ? "skipped" : resolveProvider(provider, resources, env, options.mockEndpoint),
    );
  }

  const guards = new PolicyGuards(resources, options);
  const version = createHash("sha256");
  const mark = (...parts: readonly string[]) => version.update(`${JSON.stringify(parts)}\n`);
  mark("mock", JSON.stringify(options.mockEndpoint ?? null));

  const providers = new Map<string, ModelProviderPolicy>();
  const scopes = new Map<string, MutableScope>();
  for (const [key, base] of bases) {
    if (base === "skipped") {
      const { namespace, name } = splitKey(key);
      const scope = scopeOf(scopes, namespace);
      scope.skipped.add(name);
      scope.notReady.add(name);
      mark("skipped", key);
      continue;
    }
    const { resource } = base;
    const scope = scopeOf(scopes, resource.namespace);
    if (base.kind === "unusable") {
      scope.notReady.add(resource.name);
      report(resource, false, base.reason, base.message);
      mark("unusable", key);
      continue;
    }
    const { scoped, broken, skipped } = compileProvider(base, (other) => bases.get(other));
    providers.set(key, scoped.policy);
    scope.ready.set(resource.name, scoped);
    for (const model of scoped.allowed)
      if (!isPattern(model) && scoped.policy.allowsModel(model)) scope.listedModels.add(model);
    mark(
      "provider",
      key,
      resource.version,
      base.apiKey?.reveal() ?? "",
      JSON.stringify(scoped.policy.fallbacks),
    );
    const unguarded = guards.problemsOf(resource).map(({ message }) => message);
    report(
      resource,
      true,
      unguarded.length > 0
        ? "DegradedExternalAccess"
        : broken.length > 0
          ? "DegradedFallbacks"
          : "Ready",
      [...unguarded, ...broken, ...skipped].join("; "),
    );
  }

  const agentsByTokenHash = new Map<string, AgentPolicy>();
  for (const agent of resources.agents.values()) {
    if (skips(agent)) continue;
    const scope = scopeOf(scopes, agent.namespace);
    const tokenHashes = options.tokenHashesOf(agent.namespace, agent.name);
    const own = guards.ofAgent(agent);
    const policy = new CompiledAgent(agent, scope, own);
    for (const tokenHash of tokenHashes) agentsByTokenHash.set(tokenHash, policy);
    mark("agent", keyOf(agent), agent.version, own.mark, ...tokenHashes);
    reportAgent(agent, scope, own, report);
  }

  const mcpServers = compileMcpServers(resources, env);
  for (const [key, server] of mcpServers.open)
    mark("mcp", key, resources.providers.get(key)?.version ?? "", ...credentialMarks(server));

  const keysByHash = compileKeys(
    [...resources.accessKeys.values()].filter((key) => !skips(key)),
    { scopes, providers, mcpServers, guards, mark },
    options.now,
    report,
  );
  for (const binding of resources.guardBindings.values()) {
    if (skips(binding)) continue;
    const { ready, reason, message } = guards.verdictOn(binding);
    report(binding, ready, reason, message);
  }
  for (const key of resources.accessKeys.values()) mark("key", keyOf(key), key.version);

  const snapshot = {
    version: version.digest("hex").slice(0, 16),
    agentsByTokenHash,
    keysByHash,
    providers,
    mcpServers: mcpServers.open,
    closedMcpServers: mcpServers.closed,
  };
  const recheckAt = nextExpiry(resources.accessKeys.values(), options.now);
  return { snapshot, statuses: sortVerdicts(statuses), recheckAt };
}

/** Returns when the next of the keys expires. */
function nextExpiry(keys: Iterable<AccessKey>, now: number): number | undefined {
  let next: number | undefined;
  for (const { spec } of keys) {
    const expiry = spec.expiresAt === undefined ? Number.NaN : Date.parse(spec.expiresAt);
    if (expiry > now && (next === undefined || expiry < next)) next = expiry;
  }
  return next;
}

type Report = (resource: Resource, ready: boolean, reason: Reason, message: string) => void;

/** What keys may be for. */
interface KeyTargets {
  readonly scopes: Map<string, MutableScope>;
  readonly providers: ReadonlyMap<string, ModelProviderPolicy>;
  readonly mcpServers: CompiledMcpServers;
  readonly guards: PolicyGuards;
  /** Adds to the version of the policy. */
  readonly mark: (...parts: readonly string[]) => void;
}

/** Returns the secrets of a server: a changed one is another policy. */
function credentialMarks({ credential }: McpServerPolicy): readonly string[] {
  switch (credential.kind) {
    case "none":
      return [];
    case "header":
      return [credential.value.reveal()];
    case "client-credentials":
      return [credential.clientId.reveal(), credential.clientSecret.reveal()];
  }
}

/**
 * Revoked and expired keys stay known, so that they are refused with the right reason. Keys with
 * the same hash are all unusable: their order must not decide which one counts.
 */
function compileKeys(
  keys: readonly AccessKey[],
  targets: KeyTargets,
  now: number,
  report: Report,
): ReadonlyMap<string, KeyEntry> {
  const found = new Map<string, KeyEntry>();
  const holders = new Map<string, AccessKey[]>();
  for (const key of keys) {
    for (const hash of hashesOf(key)) holders.set(hash, [...(holders.get(hash) ?? []), key]);
  }
  for (const key of keys) {
    const rival = hashesOf(key)
      .flatMap((hash) => holders.get(hash) ?? [])
      .find((other) => other !== key);
    if (rival !== undefined) {
      report(key, false, "DuplicateKey", `AccessKey ${keyOf(rival)} has the same SHA-256`);
      continue;
    }
    const { spec } = key;
    const scope = scopeOf(targets.scopes, key.namespace);
    const scoped = scope.ready.get(spec.modelProvider ?? "");
    const guards = targets.guards.ofKey(
      key,
      scoped?.policy,
      (provider) => targets.providers.get(provider)?.external !== undefined,
    );
    targets.mark("guards of a key", keyOf(key), guards.mark);
    const policy = new CompiledKey(key, scoped, guards);
    found.set(spec.keySHA256, { key: policy, graceUntil: undefined });
    if (spec.previous !== undefined && spec.previous.keySHA256 !== spec.keySHA256) {
      found.set(spec.previous.keySHA256, {
        key: policy,
        graceUntil: Date.parse(spec.previous.expiresAt),
      });
    }
    reportKey(key, scope, { ...targets, guards }, now, report);
  }
  return found;
}

function hashesOf({ spec }: AccessKey): readonly string[] {
  return spec.previous === undefined || spec.previous.keySHA256 === spec.keySHA256
    ? [spec.keySHA256]
    : [spec.keySHA256, spec.previous.keySHA256];
}

function reportKey(
  key: AccessKey,
  scope: MutableScope,
  { mcpServers, guards }: { mcpServers: CompiledMcpServers; guards: CallerGuards },
  now: number,
  report: Report,
): void {
  const { spec } = key;
  const provider = spec.modelProvider ?? "";
  const scoped = scope.ready.get(provider);
  if (spec.revoked) return report(key, false, "KeyRevoked", "");
  if (spec.expiresAt !== undefined && Date.parse(spec.expiresAt) <= now)
    return report(key, false, "KeyExpired", `since ${spec.expiresAt}`);
  if (spec.provider !== undefined) return reportMcpKey(key, spec.provider, mcpServers, report);
  if (scoped === undefined) {
    const known = scope.notReady.has(provider);
    return report(
      key,
      false,
      known ? "ProviderNotReady" : "UnknownProvider",
      known ? `ModelProvider ${provider} is not ready` : `there is no ModelProvider ${provider}`,
    );
  }
  if (scoped.policy.external === undefined) {
    return report(
      key,
      false,
      "ExternalAccessDisabled",
      `ModelProvider ${provider}: spec.externalAccess.enabled is not true`,
    );
  }
  if (reportGuards(key, guards, report)) return undefined;
  const idle = idleRestrictions(spec, scoped);
  if (idle.length === 0) return report(key, true, "Ready", "");
  const message = `ModelProvider ${provider} exposes no such model: ${idle.join(", ")}`;
  const all = idle.length === spec.restrictions.allowedModels?.length;
  report(key, !all, all ? "ModelNotAllowed" : "DegradedRestrictions", message);
}

function reportMcpKey(
  key: AccessKey,
  provider: string,
  { open, closed }: CompiledMcpServers,
  report: Report,
): void {
  const id = `${key.namespace}/${provider}`;
  if (open.has(id)) return report(key, true, "Ready", "");
  switch (closed.get(id)) {
    case "disabled":
      return report(
        key,
        false,
        "ExternalAccessDisabled",
        `Provider ${provider}: spec.externalAccess.enabled is not true`,
      );
    case "not-ready":
      return report(key, false, "ProviderNotReady", `Provider ${provider} is not ready`);
    case undefined: {
      const message = `there is no Provider ${provider} of type mcp`;
      return report(key, false, "UnknownProvider", message);
    }
  }
}

interface MutableScope extends ProviderScope {
  readonly ready: Map<string, ScopedProvider>;
  readonly notReady: Set<string>;
  readonly skipped: Set<string>;
  readonly listedModels: Set<string>;
}

function scopeOf(scopes: Map<string, MutableScope>, namespace: string): MutableScope {
  let scope = scopes.get(namespace);
  if (scope === undefined) {
    scope = { ready: new Map(), notReady: new Set(), skipped: new Set(), listedModels: new Set() };
    scopes.set(namespace, scope);
  }
  return scope;
}

function splitKey(key: string): { namespace: string; name: string } {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}

function reportSecret(secret: SecretResource, env: Env, report: Report): void {
  const unset = [...secret.values].filter(([, source]) => valueOf(source, env) === undefined);
  if (unset.length === 0) {
    report(secret, true, "Ready", "");
    return;
  }
  const message = unset
    .map(
      ([key, source]) =>
        `key ${key} needs environment variable ${variableOf(source)}, which is not set`,
    )
    .join("; ");
  report(secret, false, "EnvironmentVariableNotSet", message);
}

/** Returns whether a caller was reported as not ready because of its guards. */
function reportGuards(caller: Agent | AccessKey, guards: CallerGuards, report: Report): boolean {
  const [first] = guards.problems;
  if (first === undefined) return false;
  report(caller, false, first.reason, guards.problems.map(({ message }) => message).join("; "));
  return true;
}

/**
 * Ready if any of its models can be used, if it lists none, or if all missing ones are skipped; but
 * not if it would run as root, or if its guards are not as it declares them.
 */
function reportAgent(
  agent: Agent,
  scope: MutableScope,
  guards: CallerGuards,
  report: Report,
): void {
  if (runsAsRoot(agent)) {
    const message = "spec.runAsUser must not be 0: agents never run as root";
    return report(agent, false, "RunsAsRoot", message);
  }
  if (reportGuards(agent, guards, report)) return;
  const failures: { reason: Reason; message: string }[] = [];
  let usable = 0;
  let skipped = 0;
  for (const ref of agent.spec.models) {
    const failure = judge(ref, scope);
    if (failure === "skipped") skipped += 1;
    else if (failure === undefined) usable += 1;
    else failures.push(failure);
  }
  const [first] = failures;
  const notes = skipped === 0 ? [] : [`${skipped} of its models skipped with their ModelProvider`];
  if (agent.spec.models.length === 0) notes.push("it lists no models");
  const inert = agent.spec.system !== undefined;
  if (inert) notes.push("spec.system has no effect yet, because there are no sessions");
  const message = [...failures.map((failure) => failure.message), ...notes].join("; ");
  if (first === undefined) report(agent, true, inert ? "FieldsWithoutEffect" : "Ready", message);
  else if (usable > 0) report(agent, true, "DegradedModels", message);
  else report(agent, false, first.reason, message);
}

/** Returns the reason why a reference grants nothing; undefined if it does. */
function judge(
  ref: string,
  scope: MutableScope,
): { reason: Reason; message: string } | "skipped" | undefined {
  const parts = splitModelRef(ref);
  const provider = parts?.provider ?? "";
  const model = parts?.model ?? "";
  const scoped = scope.ready.get(provider);
  if (scoped === undefined) {
    if (scope.skipped.has(provider)) return "skipped";
    if (scope.notReady.has(provider))
      return {
        reason: "ProviderNotReady",
        message: `${ref}: ModelProvider ${provider} is not ready`,
      };
    return { reason: "UnknownProvider", message: `${ref}: there is no ModelProvider ${provider}` };
  }
  const exposed = isPattern(model)
    ? scoped.allowed.some((entry) => {
        const both = intersect(model, entry);
        return both !== undefined && !scoped.denied.some((deny) => covers(deny, both));
      })
    : scoped.policy.allowsModel(model);
  return exposed
    ? undefined
    : {
        reason: "ModelNotAllowed",
        message: `${ref}: ModelProvider ${provider} exposes no such model`,
      };
}
