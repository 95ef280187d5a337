/**
 * Compiles Agents and their Providers into the configuration of each agent's sidecar: specs without
 * secrets, and the secrets as environment variables. Pure. A Provider that cannot be used is left
 * out, so that calls to it are denied.
 */
import type { Secret } from "../platform/secret.ts";
import type { Reason, Verdict } from "../policy/status.ts";
import { type Agent, runsAsRoot } from "../resources/agent.ts";
import type { BindingSpec, BindingSpecs } from "../resources/binding-spec.ts";
import { mcpAuth } from "../resources/mcp-server.ts";
import { keyOf } from "../resources/metadata.ts";
import type { Provider } from "../resources/provider.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { Env } from "./policy-secrets.ts";
import { isEnvSet, valueOf, variableOf } from "./policy-secrets.ts";

/** The settings that a service's plugin accepts. */
export interface ServiceSettings {
  readonly authTypes: Readonly<
    Record<string, { readonly required: readonly string[]; readonly optional: readonly string[] }>
  >;
  readonly configKeys: Readonly<Record<string, string>>;
  readonly scopeKeys: Readonly<Record<string, string>>;
}

export interface BindingsOptions {
  readonly env: Env;
  readonly service: (type: string) => ServiceSettings | undefined;
}

export interface SidecarConfig {
  readonly specs: BindingSpecs;
  /** Secrets by the names in the specs. */
  readonly environment: ReadonlyMap<string, Secret>;
}

export interface CompiledBindings {
  /** By `<namespace>/<name>` of the Agent; for every Agent that may run. */
  readonly sidecars: ReadonlyMap<string, SidecarConfig>;
  /** Statuses of the Providers. */
  readonly statuses: readonly Verdict[];
  /** By `<namespace>/<name>` of the Agent: descriptions of its Providers that cannot be used. */
  readonly missing: ReadonlyMap<string, readonly string[]>;
}

/** A service that needs no credential. */
const NO_AUTH = { required: [], optional: [] };

type Usable = { readonly kind: "usable"; readonly secrets: ReadonlyMap<string, Secret> };
type Unusable = { readonly kind: "unusable"; readonly reason: Reason; readonly message: string };

export function compileBindings(
  resources: ResourceSet,
  options: BindingsOptions,
): CompiledBindings {
  const statuses: Verdict[] = [];
  const judged = new Map<string, Usable | Unusable>();
  for (const [key, provider] of resources.providers) {
    const judgement = judge(provider, resources, options);
    judged.set(key, judgement);
    const { namespace, name } = provider;
    const ready = judgement.kind === "usable";
    statuses.push({
      kind: "Provider",
      namespace,
      name,
      ready,
      reason: ready ? "Ready" : judgement.reason,
      message: ready ? "" : judgement.message,
    });
  }
  const sidecars = new Map<string, SidecarConfig>();
  const missing = new Map<string, readonly string[]>();
  for (const [key, agent] of resources.agents) {
    const isSkipped = agent.whenEnv !== undefined && !isEnvSet(options.env, agent.whenEnv);
    if (isSkipped || runsAsRoot(agent)) continue;
    const { config, absent } = sidecarOf(agent, resources, judged);
    sidecars.set(key, config);
    if (absent.length > 0) missing.set(key, absent);
  }
  return { sidecars, statuses, missing };
}

function judge(
  provider: Provider,
  resources: ResourceSet,
  { env, service }: BindingsOptions,
): Usable | Unusable {
  const unusable = (reason: Reason, message: string): Unusable => ({
    kind: "unusable",
    reason,
    message,
  });
  const { spec, namespace } = provider;
  if (provider.whenEnv !== undefined && !isEnvSet(env, provider.whenEnv)) {
    return unusable("Skipped", `environment variable ${provider.whenEnv} is not set`);
  }
  const settings = service(spec.type);
  if (settings === undefined)
    return unusable("ConfigInvalid", `there is no plugin for the service ${spec.type}`);
  const auth =
    spec.auth === undefined
      ? NO_AUTH
      : Object.hasOwn(settings.authTypes, spec.auth.type)
        ? settings.authTypes[spec.auth.type]
        : undefined;
  if (auth === undefined) {
    return unusable(
      "AuthTypeUnknown",
      `spec.auth.type: ${spec.type} authenticates by ${Object.keys(settings.authTypes).join(", ")}`,
    );
  }
  const odd = Object.keys(spec.config).filter((name) => !Object.hasOwn(settings.configKeys, name));
  if (odd.length > 0) {
    const known = Object.keys(settings.configKeys);
    return unusable(
      "ConfigInvalid",
      `spec.config: unknown ${odd.join(", ")}; ${spec.type} has ` +
        (known.length === 0 ? "none" : known.join(", ")),
    );
  }
  const unheld = Object.entries(spec.scope).flatMap(([key, globs]) =>
    globs === undefined || Object.hasOwn(settings.scopeKeys, key) ? [] : [key],
  );
  if (unheld.length > 0) {
    const known = Object.keys(settings.scopeKeys);
    return unusable(
      "ConfigInvalid",
      `spec.scope: ${spec.type} does not support ${unheld.join(", ")}; it supports ` +
        (known.length === 0 ? "none" : known.join(", ")),
    );
  }
  if (spec.type === "mcp") {
    const form = mcpAuth(spec.auth?.type, spec.config);
    if (form.kind === "error") return unusable("ConfigInvalid", form.message);
  }
  if (spec.auth === undefined) return { kind: "usable", secrets: new Map() };
  const label = `Secret ${namespace}/${spec.auth.secretRef}`;
  const secret = resources.secrets.get(`${namespace}/${spec.auth.secretRef}`);
  if (secret === undefined) return unusable("SecretDoesNotExist", `${label} does not exist`);
  if (secret.whenEnv !== undefined && !isEnvSet(env, secret.whenEnv)) {
    return unusable(
      "SecretDoesNotExist",
      `${label} is skipped: environment variable ${secret.whenEnv} is not set`,
    );
  }
  const secrets = new Map<string, Secret>();
  for (const key of [...auth.required, ...auth.optional]) {
    const source = secret.values.get(key);
    if (source === undefined) {
      if (auth.optional.includes(key)) continue;
      return unusable(
        "SecretKeyDoesNotExist",
        `${label} has no key ${key}; ${spec.auth.type} needs ${auth.required.join(", ")}`,
      );
    }
    const value = valueOf(source, env);
    if (value === undefined) {
      return unusable(
        "EnvironmentVariableNotSet",
        `${label} takes key ${key} from environment variable ${variableOf(source)}, which ` +
          "is not set",
      );
    }
    secrets.set(key, value);
  }
  return { kind: "usable", secrets };
}

function sidecarOf(
  agent: Agent,
  resources: ResourceSet,
  judged: ReadonlyMap<string, Usable | Unusable>,
): { readonly config: SidecarConfig; readonly absent: readonly string[] } {
  const environment = new Map<string, Secret>();
  const bindings: BindingSpec[] = [];
  const absent: string[] = [];
  for (const name of new Set(agent.spec.providers)) {
    const key = `${agent.namespace}/${name}`;
    const provider = resources.providers.get(key);
    const judgement = judged.get(key);
    if (provider === undefined || judgement === undefined)
      absent.push(`there is no Provider ${name}`);
    else if (judgement.kind === "unusable") absent.push(`Provider ${name} is not ready`);
    else bindings.push(bindingOf(provider, judgement, environment));
  }
  return {
    config: { specs: { version: 1, workload: keyOf(agent), bindings }, environment },
    absent,
  };
}

function bindingOf(
  { name, spec }: Provider,
  { secrets }: Usable,
  environment: Map<string, Secret>,
): BindingSpec {
  const env: Record<string, string> = {};
  for (const [key, value] of secrets) {
    const variable = freeName(
      `SVC_SECRET_${name}_${key}`.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_"),
      environment,
    );
    environment.set(variable, value);
    env[key] = variable;
  }
  const { type, hosts, config, policy, scope, audit } = spec;
  return {
    name,
    type,
    ...(hosts === undefined ? {} : { hosts }),
    auth: { type: spec.auth?.type ?? "none", env },
    config,
    policy,
    scope,
    audit,
  };
}

/** Two names may have the same upper-case form: the second then gets a number. */
function freeName(name: string, taken: ReadonlyMap<string, unknown>): string {
  if (!taken.has(name)) return name;
  for (let n = 2; ; n += 1) if (!taken.has(`${name}_${n}`)) return `${name}_${n}`;
}
