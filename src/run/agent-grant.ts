/**
 * The data for an agent's sidecar, requested from `svc up` over its socket, which only its user and
 * root can open.
 */
import * as z from "zod";
import { auditFolderSchema } from "../audit/options.ts";
import { parseServerName } from "../interception/server-name.ts";
import { Secret } from "../platform/secret.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { StartError } from "../host/errors.ts";
import type { StatePaths } from "../host/state.ts";
import type { NamedServer } from "./mcp-environment.ts";

const grantSchema = z.object({
  /** Resolved providers, without secrets. */
  specs: z.unknown(),
  /** Variables for the sidecar's environment. */
  secrets: z.record(
    z.string(),
    z.string().transform((value) => new Secret(value)),
  ),
  gateway: z.object({ address: z.string(), port: z.int().min(1).max(65_535) }),
  /** The agent's workload token for the gateway. */
  token: z.string().transform((value) => new Secret(value)),
  /** Bound hosts. They include patterns (`*.`), which a hosts file cannot contain. */
  hosts: z.array(z.string()).transform((hosts) => hosts.filter((host) => !host.startsWith("*."))),
  /** Location of the gateway's own chain; undefined for none. */
  audit: auditFolderSchema.optional(),
  /** Files and folders that contain secrets, such as the resources. */
  private: z.array(z.string()).default([]),
});

export type AgentGrant = z.infer<typeof grantSchema>;

/** Names as in compile/bindings.ts: none that the loader or Node.js reads. */
const SECRET_NAME = /^SVC_SECRET_[A-Z0-9_]+$/;

/** The parts of the specs that name variables. */
const namingSchema = z.object({
  bindings: z
    .array(z.object({ auth: z.object({ env: z.record(z.string(), z.string()) }) }))
    .default([]),
});

const serversSchema = z.object({
  bindings: z.array(
    z.object({
      name: z.string(),
      mcp: z.object({ host: z.string(), path: z.string() }).optional(),
    }),
  ),
});

/** Returns the MCP servers of the specs. */
export function mcpServersOf(specs: unknown): readonly NamedServer[] {
  return serversSchema.safeParse(specs).data?.bindings ?? [];
}

/** @throws StartError */
export async function askGrant(
  { controlSocket, dir }: StatePaths,
  namespace: string,
  name: string,
): Promise<AgentGrant> {
  const path = `/agents/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/sidecar`;
  let answer: Awaited<ReturnType<typeof unixRequest>>;
  try {
    answer = await unixRequest(controlSocket, path);
  } catch (error) {
    throw new StartError(
      `No svc up answers in the state folder ${dir} (${(error as Error).message}). Start ` +
        "one, or name its folder with --state-dir: as root, it is not the one of your own " +
        "user.",
    );
  }
  const body = parseJson(answer.body);
  if (answer.status !== 200)
    throw new StartError(
      told(body) ??
        `svc up refused the data for the agent ${namespace}/${name} (status ` +
          `${answer.status}): does it have another version?`,
    );
  const parsed = grantSchema.safeParse(body);
  // Without the issues' input, which contains secrets.
  if (!parsed.success)
    throw new StartError(
      `svc up's answer for the agent ${namespace}/${name} is not valid ` +
        `(${parsed.error.issues.map((issue) => issue.path.join(".")).join(", ")}): does it ` +
        "have another version?",
    );
  const named = namesIn(parsed.data.specs);
  const odd = Object.keys(parsed.data.secrets).find(
    (variable) => !named.has(variable) || !SECRET_NAME.test(variable),
  );
  if (odd !== undefined)
    throw new StartError(
      `svc up names a secret ${JSON.stringify(odd)}, which no Provider of the agent has: ` +
        "does it have another version?",
    );
  const nameless = parsed.data.hosts.find((host) => parseServerName(host) === undefined);
  if (nameless !== undefined)
    throw new StartError(
      `svc up names a host ${JSON.stringify(nameless)}, which is not a host name.`,
    );
  return parsed.data;
}

/** Variables that the Providers' specs name. */
function namesIn(specs: unknown): ReadonlySet<string> {
  const { data } = namingSchema.safeParse(specs);
  return new Set(data?.bindings.flatMap(({ auth }) => Object.values(auth.env)));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function told(body: unknown): string | undefined {
  const error =
    typeof body === "object" && body !== null && "error" in body ? body.error : undefined;
  return typeof error === "string" ? error : undefined;
}
