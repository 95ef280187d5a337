/**
 * Runs a command in a container, over the API server's WebSocket.
 * https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodExecOptions
 */
import { Writable } from "node:stream";
import { Exec } from "@kubernetes/client-node/dist/exec.js";
import type { ApiConnection } from "./connection.ts";
import { ApiError } from "./connection.ts";

export interface ExecRequest {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly command: readonly string[];
  /** Called with each part of the standard output, in order. What it throws ends the command. */
  readonly onOutput: (part: Buffer) => void;
}

interface ExecStatus {
  readonly status?: string;
  readonly message?: string;
}

/** Maximum length of the command's error output that is kept for its error. */
const MAX_ERROR_OUTPUT = 4_096;

/**
 * Resolves when the command has ended with code 0.
 * @throws ApiError if the command cannot be run, or fails; what `onOutput` throws is passed on
 */
export async function execInPod(connection: ApiConnection, request: ExecRequest): Promise<void> {
  const { namespace, pod, container, command, onOutput } = request;
  let said = "";
  let failure: unknown;
  let end: (result: ExecStatus | undefined) => void = () => undefined;
  const ended = new Promise<ExecStatus | undefined>((resolve) => (end = resolve));
  const output = sink((part) => {
    if (failure !== undefined) return;
    try {
      onOutput(part);
    } catch (error) {
      failure = error;
      end(undefined);
    }
  });
  const errors = sink((part) => (said = (said + part.toString("utf8")).slice(0, MAX_ERROR_OUTPUT)));
  const exec = new Exec(connection.config);
  const socket = await exec
    .exec(namespace, pod, container, [...command], output, errors, null, false, end)
    .catch((error: unknown) => {
      throw refusal(error);
    });
  for (const event of ["close", "error"] as const)
    socket.addEventListener(event, () => end(undefined));
  const status = await ended;
  socket.close();
  if (failure !== undefined) throw failure;
  if (status?.status === "Success") return;
  const why = said.trim() || status?.message || "the connection ended early";
  throw new ApiError(0, "ExecFailed", `the command in container ${container} failed: ${why}`);
}

function sink(onPart: (part: Buffer) => void): Writable {
  return new Writable({
    write: (part: Buffer, _encoding, done) => {
      onPart(part);
      done();
    },
  });
}

/** The WebSocket library reports a refusal by its status alone. */
function refusal(error: unknown): ApiError {
  const { message = String(error) } = error as { readonly message?: string };
  const status = Number(/Unexpected server response: (\d{3})/.exec(message)?.[1] ?? 0);
  return status === 403
    ? new ApiError(status, "Forbidden", "you may not run commands in pods (create pods/exec)")
    : new ApiError(status, "", `the pod's command could not be started: ${message}`);
}
