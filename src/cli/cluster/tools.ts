/**
 * Tools of an MCP server in a cluster. A gateway's control API is a socket in its pod, so the
 * command line runs a program there, which needs the right to do so.
 */
import type { UnixResponse } from "../../platform/unix-http.ts";
import { ApiError } from "../../kubernetes/connection.ts";
import { execInPod } from "../../kubernetes/exec.ts";
import type { ToolsView } from "../backend.ts";
import { parsedAnswer } from "../control-answer.ts";
import { CliError } from "../errors.ts";
import { GATEWAY, gatewayPods } from "./pods.ts";
import type { ClusterSession } from "./session.ts";

/** See pod/gateway-tools.ts. */
const PROGRAM = ["/usr/local/bin/node", "/opt/svc/dist/gateway-pod.js", "tools"] as const;

/**
 * Asks a gateway that is ready.
 * @param provider name of the Provider
 * @throws ApiError, CliError
 */
export async function readTools(
  session: ClusterSession,
  { namespace, provider }: { readonly namespace: string; readonly provider: string },
  exec: typeof execInPod = execInPod,
): Promise<ToolsView> {
  const pod = (await gatewayPods(session)).find(({ ready }) => ready);
  if (pod === undefined)
    throw new CliError(
      `No pod of the gateway is ready in the namespace ${session.systemNamespace}. Look with svc ` +
        "check, or name the namespace with --system-namespace.",
    );
  const parts: Buffer[] = [];
  try {
    await exec(session.connection, {
      namespace: pod.namespace,
      pod: pod.name,
      container: GATEWAY.container,
      command: [...PROGRAM, namespace, provider],
      onOutput: (part) => parts.push(part),
    });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "ExecFailed") throw error;
    throw new CliError(`Pod ${pod.name}: ${error.message}`);
  }
  return parsedAnswer(answerOf(Buffer.concat(parts).toString("utf8"))) as ToolsView;
}

/** @throws CliError */
function answerOf(text: string): UnixResponse {
  try {
    return JSON.parse(text) as UnixResponse;
  } catch {
    throw new CliError("the gateway's pod answered in another form: does it have another version?");
  }
}
