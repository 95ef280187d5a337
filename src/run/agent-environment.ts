/**
 * The command's environment, which is created and not inherited: the caller's variables (keys,
 * sockets of agents) are excluded.
 */
import { trustEnvironment } from "../interception/trust-environment.ts";
import { StartError } from "../host/errors.ts";
import type { AgentUser } from "./agent-user.ts";
import { mcpEnvironment, type NamedServer } from "./mcp-environment.ts";
import { sdkEnvironment } from "./sdk-environment.ts";

export interface AgentEnvironmentOptions {
  /** The caller's environment. */
  readonly env: NodeJS.ProcessEnv;
  readonly user: AgentUser;
  /** `NAME=value`, or `NAME` for the caller's value. */
  readonly extra: readonly string[];
  /** Trust folder as the agent sees it. */
  readonly trustDir: string;
  readonly gatewayUrl: string;
  readonly token: string;
  /** Bindings of the agent, some of which are MCP servers. */
  readonly bindings?: readonly NamedServer[];
}

/** Variables for terminals, languages and programs, which reveal nothing about the caller. */
const KEPT = /^(?:PATH|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|LANG|LANGUAGE|LC_[A-Z]+|TZ)$/;
/**
 * Prefix of the variables' names until no process with privileges handles them: see
 * agent-process.ts.
 */
export const CARRIED = "SVC_AGENT_ENV_";
const DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin";

/** @throws StartError for an `extra` that is not an assignment */
export function agentEnvironment({
  env,
  user,
  extra,
  trustDir,
  gatewayUrl,
  token,
  bindings = [],
}: AgentEnvironmentOptions): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => KEPT.test(entry[0]) && entry[1] !== undefined,
  );
  const sdk = sdkEnvironment(gatewayUrl);
  return {
    PATH: DEFAULT_PATH,
    ...Object.fromEntries(kept),
    HOME: user.home,
    USER: user.name,
    LOGNAME: user.name,
    SHELL: "/bin/sh",
    ...trustEnvironment(trustDir),
    ...sdk.urls,
    ...Object.fromEntries(sdk.keys.map((name) => [name, token])),
    ...mcpEnvironment(bindings),
    ...Object.fromEntries(extra.map((text) => assignment(text, env))),
  };
}

function assignment(text: string, env: NodeJS.ProcessEnv): [string, string] {
  const [, name, value] = /^([A-Za-z_]\w*)(?:=([^]*))?$/.exec(text) ?? [];
  if (name === undefined)
    throw new StartError(
      `--env ${JSON.stringify(text.split("=")[0])}: expected NAME=value or NAME.`,
    );
  if (name.startsWith(CARRIED))
    throw new StartError(`--env ${name}: names that begin with ${CARRIED} are reserved for svc.`);
  const found = value ?? env[name];
  if (found === undefined)
    throw new StartError(`--env ${name}: it is not set here. Give it a value: --env ${name}=...`);
  return [name, found];
}
