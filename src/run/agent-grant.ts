/**
 * What `svc up` gives for an agent's sidecar to run: asked over its socket, which opens to its user
 * and to root alone.
 */
import { z } from "zod";
import { auditFolderSchema } from "../audit/options.ts";
import { parseServerName } from "../interception/server-name.ts";
import { Secret } from "../platform/secret.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { StartError } from "../up/errors.ts";
import type { StatePaths } from "../up/state.ts";

const grantSchema = z.object({
  /** Resolved providers; no secret is in them. */
  specs: z.unknown(),
  /** For the sidecar's environment. */
  secrets: z.record(
    z.string(),
    z.string().transform((value) => new Secret(value)),
  ),
  gateway: z.object({ address: z.string(), port: z.int().min(1).max(65_535) }),
  /** The agent's workload token: its key at the gateway. */
  token: z.string().transform((value) => new Secret(value)),
  /** Bound hosts. Patterns (`*.`) are among them, which no hosts file can hold. */
  hosts: z.array(z.string()).transform((hosts) => hosts.filter((host) => !host.startsWith("*."))),
  /** Where the gateway's own chain is; undefined for none. */
  audit: auditFolderSchema.optional(),
  /** Files and folders that hold secrets, such as the resources. */
  private: z.array(z.string()).default([]),
});

export type AgentGrant = z.infer<typeof grantSchema>;

/** As compile/bindings.ts names them: nothing that the loader or Node.js looks at. */
const SECRET_NAME = /^SVC_SECRET_[A-Z0-9_]+$/;

/** What of the specs says which variables there are. */
const namingSchema = z.object({
  bindings: z
    .array(z.object({ auth: z.object({ env: z.record(z.string(), z.string()) }) }))
    .default([]),
});

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
      `No svc up answers in the state folder ${dir} (${(error as Error).message}). Start one, or name its folder with --state-dir: as root, it is not the one of your own user.`,
    );
  }
  const body = parseJson(answer.body);
  if (answer.status !== 200)
    throw new StartError(
      told(body) ??
        `svc up gives nothing for the agent ${namespace}/${name} (status ${answer.status}): is it of another version?`,
    );
  const parsed = grantSchema.safeParse(body);
  // Not the issues' input: secrets are in it.
  if (!parsed.success)
    throw new StartError(
      `svc up's answer for the agent ${namespace}/${name} is not understood (${parsed.error.issues.map((issue) => issue.path.join(".")).join(", ")}): is it of another version?`,
    );
  const named = namesIn(parsed.data.specs);
  const odd = Object.keys(parsed.data.secrets).find(
    (variable) => !named.has(variable) || !SECRET_NAME.test(variable),
  );
  if (odd !== undefined)
    throw new StartError(
      `svc up names a secret ${JSON.stringify(odd)}, which no Provider of the agent has: is it of another version?`,
    );
  const nameless = parsed.data.hosts.find((host) => parseServerName(host) === undefined);
  if (nameless !== undefined)
    throw new StartError(`svc up names a host ${JSON.stringify(nameless)}, which is no host name.`);
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
