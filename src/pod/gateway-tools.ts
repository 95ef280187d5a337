/**
 * `gateway-pod.js tools NAMESPACE PROVIDER`: asks the gateway that runs in this container for the
 * tools of an MCP server. `svc get tools` runs it in a pod, because the control API is a socket
 * that only the pod's own user can open.
 */
import { toolsPath } from "../gateway/mcp-tools.ts";
import { type UnixResponse, unixRequest } from "../platform/unix-http.ts";

/** The gateway itself waits 20 s for an MCP server. */
const TIMEOUT_MS = 30_000;

/** @returns the answer of the control API; @throws Error if the gateway does not answer */
export async function askForTools(
  controlSocket: string,
  args: readonly string[],
): Promise<UnixResponse> {
  const [namespace, provider, ...more] = args;
  if (namespace === undefined || provider === undefined || more.length > 0)
    throw new Error("name a namespace and a Provider: gateway-pod.js tools NAMESPACE PROVIDER");
  try {
    const path = toolsPath(namespace, provider);
    return await unixRequest(controlSocket, path, "GET", { timeoutMs: TIMEOUT_MS });
  } catch (error) {
    throw new Error(`the gateway service does not answer: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
