/**
 * Compiles the Providers of type `mcp` that access keys may use. Pure. A Provider that cannot be
 * used is left out; its status says why (see `compile/bindings.ts`).
 */
import { Secret } from "../platform/secret.ts";
import type { ItemLists, McpCredential, McpLists, McpServerPolicy } from "../policy/snapshot.ts";
import type { AccessKeySpec } from "../resources/access-key.ts";
import { mcpAuth, type McpPolicySpec, parseServerURL } from "../resources/mcp-server.ts";
import { keyOf } from "../resources/metadata.ts";
import type { Provider } from "../resources/provider.ts";
import type { ResourceSet } from "../resources/resource-set.ts";
import { type Env, isEnvSet, resolveSecret } from "./policy-secrets.ts";

export interface CompiledMcpServers {
  readonly open: ReadonlyMap<string, McpServerPolicy>;
  /** Providers of type `mcp` that access keys cannot use. */
  readonly closed: ReadonlyMap<string, "disabled" | "not-ready">;
}

export function compileMcpServers(resources: ResourceSet, env: Env): CompiledMcpServers {
  const open = new Map<string, McpServerPolicy>();
  const closed = new Map<string, "disabled" | "not-ready">();
  for (const [key, provider] of resources.providers) {
    if (provider.spec.type !== "mcp") continue;
    if (provider.spec.externalAccess?.enabled !== true) closed.set(key, "disabled");
    else {
      const server = serverOf(provider, resources, env);
      if (server === undefined) closed.set(key, "not-ready");
      else open.set(key, server);
    }
  }
  return { open, closed };
}

function serverOf(
  provider: Provider,
  resources: ResourceSet,
  env: Env,
): McpServerPolicy | undefined {
  const { namespace, name, spec, whenEnv } = provider;
  if (whenEnv !== undefined && !isEnvSet(env, whenEnv)) return undefined;
  const { transport, url } = spec.mcp ?? {};
  if (transport === undefined || transport === "stdio" || url === undefined) return undefined;
  const address = parseServerURL(url);
  const credential = credentialOf(provider, resources, env);
  if (address.kind === "error" || credential === undefined) return undefined;
  const { tls, host, port } = address.endpoint;
  return {
    key: keyOf(provider),
    namespace,
    name,
    transport: transport === "sse" ? "sse" : "http",
    endpoint: { tls, host, port },
    path: address.path,
    credential,
    lists: listsOfPolicy(spec.policy.mcp),
    auditOnly: spec.audit.enforcement === "audit",
    recordsArguments: spec.audit.toolArguments ?? false,
    maxRequestsPerDay: spec.externalAccess?.maxRequestsPerDay,
  };
}

/** Returns undefined if the credential is not available. */
function credentialOf(
  { namespace, spec }: Provider,
  resources: ResourceSet,
  env: Env,
): McpCredential | undefined {
  const { auth, config } = spec;
  const parsed = mcpAuth(auth?.type, config);
  if (parsed.kind === "error") return undefined;
  const secret = (key: string): Secret | undefined => {
    const found = resolveSecret(resources, env, namespace, { name: auth?.secretRef ?? "", key });
    return found.kind === "ok" ? found.secret : undefined;
  };
  switch (parsed.auth.kind) {
    case "none":
    case "environment":
      return { kind: "none" };
    case "header": {
      const token = secret("token");
      if (token === undefined) return undefined;
      const value = new Secret(`${parsed.auth.prefix}${token.reveal()}`);
      return { kind: "header", name: parsed.auth.header, value };
    }
    case "client-credentials": {
      const clientId = secret("clientId");
      const clientSecret = secret("clientSecret");
      if (clientId === undefined || clientSecret === undefined) return undefined;
      const { tokenUrl, parameters } = parsed.auth;
      return { kind: "client-credentials", tokenUrl, clientId, clientSecret, parameters };
    }
  }
}

/** Returns the lists of `spec.policy.mcp`. */
export function listsOfPolicy(policy: McpPolicySpec = {}): McpLists {
  const { deniedTools = [], deniedPrompts = [], deniedResources = [] } = policy;
  return {
    tools: { allowed: policy.allowedTools, denied: deniedTools },
    prompts: { allowed: policy.allowedPrompts, denied: deniedPrompts },
    resources: { allowed: policy.allowedResources, denied: deniedResources },
  };
}

const OPEN: ItemLists = { allowed: undefined, denied: [] };

/** Returns the lists of an access key, which has some for tools only. */
export function listsOfKey({ restrictions }: AccessKeySpec): McpLists {
  const { allowedMcpTools, deniedMcpTools = [] } = restrictions;
  return {
    tools: { allowed: allowedMcpTools, denied: deniedMcpTools },
    prompts: OPEN,
    resources: OPEN,
  };
}
