/** An installation in a cluster, and errors of its API in the command line's form. */
import { KubeClient } from "../../kubernetes/client.ts";
import { ApiError, ApiConnection } from "../../kubernetes/connection.ts";
import { CliError } from "../errors.ts";
import type { ClusterTarget } from "../target.ts";

/** Name of the command line in `metadata.managedFields`. */
export const FIELD_MANAGER = "svc";

export interface ClusterSession {
  readonly client: KubeClient;
  readonly connection: ApiConnection;
  /** Namespace of the installation. */
  readonly systemNamespace: string;
}

/** @throws CliError if the kubeconfig cannot be used */
export function openSession(target: ClusterTarget): ClusterSession {
  const { context, kubeconfig, systemNamespace } = target;
  let connection: ApiConnection;
  try {
    connection = ApiConnection.load({ context, kubeconfig });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new CliError(
      code === undefined
        ? `The kubeconfig cannot be used: ${firstLine(message)}`
        : `The kubeconfig ${kubeconfig ?? ""} cannot be read (${code}). Correct --kubeconfig.`,
    );
  }
  return { client: new KubeClient(connection, FIELD_MANAGER), connection, systemNamespace };
}

/** Runs an operation; an ApiError becomes a CliError that names the fix. */
export async function explained<Result>(
  { connection }: Pick<ClusterSession, "connection">,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof ApiError ? explanation(error, connection) : error;
  }
}

function explanation({ status, message }: ApiError, { server, context }: ApiConnection): CliError {
  switch (status) {
    case 0:
      return new CliError(
        `The cluster of the context ${context} (${server}) does not answer: ${message}. Check ` +
          "your network, or name another one with --context or --kubeconfig.",
      );
    case 401:
      return new CliError(
        `The cluster of the context ${context} refuses the credentials of the kubeconfig. Log ` +
          "in to it again.",
      );
    case 403:
      return new CliError(
        `${firstLine(message)}. Ask an administrator of the cluster for this right.`,
      );
    case 404:
      return new CliError(
        `${firstLine(message)}. If the cluster has no svc.io resources, install them: svc install.`,
      );
    default:
      return new CliError(firstLine(message));
  }
}

/** The API server's message may quote a whole object. */
const MAX_MESSAGE = 2_000;

function firstLine(text: string): string {
  return text.split("\n", 1)[0]?.slice(0, MAX_MESSAGE) ?? "";
}
