/**
 * Compiles Agents and their Providers into the configuration of each agent's sidecar: specs without
 * secrets, and the secrets as environment variables. Pure. A Provider that cannot be used is left
 * out, so that calls to it are denied.
 */
import { isIP } from "node:net";
import type { Secret } from "../platform/secret.ts";
import type { Reason, Verdict } from "../policy/status.ts";
import { type Agent, runsAsRoot } from "../resources/agent.ts";
import type { BindingSpec, BindingSpecs, BoundMcpServer } from "../resources/binding-spec.ts";
import { isServerVariable, mcpAuth, parseServerURL } from "../resources/mcp-server.ts";
import { keyOf } from "../resources/metadata.ts";
import type { Provider } from "../resources/provider.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import type { Env } from "./policy-secrets.ts";
import { isEnvSet, valueOf, variableOf } from "./policy-secrets.ts";

/** The settings that a service's plugin accepts. */
export interface ServiceSettings {
  readonly authTypes: Readonly<
    Record<
      string,
      {
        readonly required: readonly string[];
        readonly optional: readonly string[];
        /** Whether every key of the Secret is used. */
        readonly every?: boolean;
      }
    >
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
const NO_AUTH: ServiceSettings["authTypes"][string] = { required: [], optional: [] };

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
    if ((form.auth.kind === "environment") !== (spec.mcp?.transport === "stdio") && spec.auth)
      return unusable(
        "AuthTypeUnknown",
        "spec.auth.type: an MCP server of the transport stdio authenticates by environment, " +
          "others by api-key or oauth2",
      );
    if (spec.hosts !== undefined)
      return unusable("ConfigInvalid", "spec.hosts: the host of an MCP server is that of its URL");
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
  const unfit =
    auth.every === true && [...secret.values.keys()].find((key) => !isServerVariable(key));
  if (typeof unfit === "string") {
    return unusable(
      "ConfigInvalid",
      `${label}: the key ${unfit} cannot be a variable; use letters, digits and _, and neither ` +
        "PATH nor HOME",
    );
  }
  const wanted = auth.every === true ? [...secret.values.keys()] : auth.required;
  for (const key of [...wanted, ...auth.optional]) {
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
    else {
      const server = boundServer(provider);
      if (typeof server === "string") absent.push(`Provider ${name}: ${server}`);
      else bindings.push(bindingOf(provider, judgement, environment, server));
    }
  }
  return {
    config: { specs: { version: 1, workload: keyOf(agent), bindings }, environment },
    absent,
  };
}

/** Domain of the MCP servers that run in sidecars. */
const LOCAL_DOMAIN = "mcp.internal";

/**
 * Returns the MCP server of a Provider as agents call it, undefined for another service, or why
 * agents cannot call it.
 */
function boundServer({ name, spec: { mcp } }: Provider): BoundMcpServer | undefined | string {
  if (mcp === undefined) return undefined;
  const { transport, url = "", command } = mcp;
  if (transport === "stdio") {
    return { transport, host: `${name}.${LOCAL_DOMAIN}`, path: "/mcp", command };
  }
  const address = parseServerURL(url);
  if (address.kind === "error") return `spec.mcp.url ${address.message}`;
  const { host, port, tls } = address.endpoint;
  if (!tls || port !== 443 || isIP(host) !== 0)
    return "agents call MCP servers by https, at a host name and port 443";
  if (host.endsWith(`.${LOCAL_DOMAIN}`))
    return `the hosts of ${LOCAL_DOMAIN} are those of MCP servers in sidecars`;
  return { transport: transport === "sse" ? "sse" : "http", host, path: address.path };
}

function bindingOf(
  { name, spec }: Provider,
  { secrets }: Usable,
  environment: Map<string, Secret>,
  mcp: BoundMcpServer | undefined,
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
  const { type, config, policy, scope, audit } = spec;
  const hosts = mcp === undefined ? spec.hosts : [mcp.host];
  return {
    name,
    type,
    ...(hosts === undefined ? {} : { hosts }),
    auth: { type: spec.auth?.type ?? "none", env },
    config,
    policy,
    scope,
    audit,
    ...(mcp === undefined ? {} : { mcp }),
  };
}

/** Two names may have the same upper-case form: the second then gets a number. */
function freeName(name: string, taken: ReadonlyMap<string, unknown>): string {
  if (!taken.has(name)) return name;
  for (let n = 2; ; n += 1) if (!taken.has(`${name}_${n}`)) return `${name}_${n}`;
}
