/** The backend for the `svc up` of this machine, over the socket in its state folder. */
import { toolsPath } from "../gateway/mcp-tools.ts";
import type { GatewayStatus } from "../gateway/status.ts";
import type { UnixResponse } from "../platform/unix-http.ts";
import { unixRequest } from "../platform/unix-http.ts";
import { statePaths } from "../host/state.ts";
import { KINDS, type ResourceKind } from "../resources/kinds.ts";
import type { ApplyResult, Backend, ObjectView, BackendTarget, ToolsView } from "./backend.ts";
import { parsedAnswer } from "./control-answer.ts";
import { CliError } from "./errors.ts";

/** A change takes effect after a few seconds at most; writing thousands of objects takes longer. */
const CHANGE_TIMEOUT_MS = 120_000;
const READ_TIMEOUT_MS = 30_000;

export function socketBackend(target: BackendTarget, env: NodeJS.ProcessEnv): Backend {
  const state = statePaths(target.stateDir, env);

  const send = async (path: string, method: string, body?: unknown): Promise<UnixResponse> => {
    const timeoutMs = method === "GET" ? READ_TIMEOUT_MS : CHANGE_TIMEOUT_MS;
    try {
      return await unixRequest(state.controlSocket, path, method, { body, timeoutMs });
    } catch (error) {
      throw unreachable(error, state.dir);
    }
  };
  const ask = async (path: string, method = "GET", body?: unknown): Promise<unknown> =>
    parsedAnswer(await send(path, method, body));

  const status = async (): Promise<GatewayStatus> => (await ask("/status")) as GatewayStatus;

  return {
    apply: async (manifests, { create = false } = {}) => {
      const answer = (await ask(`/objects${create ? "?create=true" : ""}`, "POST", {
        manifests,
      })) as { results: ApplyResult[] };
      return answer.results;
    },
    list: async (kind, namespace) => {
      assertSupported(kind);
      const query = namespace === undefined ? "" : `?namespace=${encodeURIComponent(namespace)}`;
      return ((await ask(`/objects/${kind}${query}`)) as { items: ObjectView[] }).items;
    },
    get: async (kind, namespace, name) => {
      assertSupported(kind);
      const response = await send(objectPath(kind, namespace, name), "GET");
      return response.status === 404 ? undefined : (parsedAnswer(response) as ObjectView);
    },
    patch: async (kind, namespace, name, patch) =>
      (await ask(objectPath(kind, namespace, name), "PATCH", patch)) as ApplyResult,
    delete: async (kind, namespace, name) => {
      const response = await send(objectPath(kind, namespace, name), "DELETE");
      if (response.status === 404) return false;
      parsedAnswer(response);
      return true;
    },
    tools: async (namespace, provider) => (await ask(toolsPath(namespace, provider))) as ToolsView,
    metrics: async () => {
      const response = await send("/metrics", "GET");
      return response.status === 200 ? response.body : (parsedAnswer(response) as string);
    },
    token: async (namespace, agent) => {
      const path = `/agents/${encodeURIComponent(namespace)}/${encodeURIComponent(agent)}/token`;
      return ((await ask(path)) as { token: string }).token;
    },
    status,
    proxies: async () => {
      const { envoys, ready, reason } = await status();
      return {
        gateways: envoys.map((envoy) => ({
          name: envoy.node,
          ready,
          problem: reason,
          envoys: [envoy],
        })),
        sidecars: [],
      };
    },
  };
}

/** @throws CliError for a kind that only a cluster has */
function assertSupported(kind: ResourceKind): void {
  if (!KINDS[kind].readers.includes("machine"))
    throw new CliError(
      `svc up does not support the kind ${kind} yet. For the objects of a cluster, name it with ` +
        "--context.",
    );
}

function objectPath(kind: string, namespace: string, name: string): string {
  return `/objects/${kind}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

function unreachable(error: unknown, dir: string): CliError {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case "ENOENT":
    case "ECONNREFUSED":
    case "ENOTDIR":
      return new CliError(
        `No svc up runs with the state folder ${dir}. Start one, or name its folder with ` +
          "--state-dir, or a cluster with --context.",
      );
    case "EACCES":
    case "EPERM":
      return new CliError(
        `The svc up with the state folder ${dir} belongs to another user. Run the command ` +
          "as that user, or name another folder with --state-dir.",
      );
    default:
      return new CliError(`The svc up with the state folder ${dir} did not answer: ${message}.`);
  }
}
