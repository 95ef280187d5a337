/** Source of a gateway's resources, and destination of their statuses. */
import { WorkloadTokens } from "../access/workload-tokens.ts";
import type { Env } from "../compile/policy-secrets.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger } from "../platform/log.ts";
import { readPrivateFile } from "../platform/private-file.ts";
import { openFolder } from "../sources/folder/folder-source.ts";
import type { Source } from "../sources/source.ts";
import type { UsageOf } from "./objects.ts";
import type { GatewayOptions } from "./options.ts";
import type { StatusSink } from "./status-sink.ts";

export interface PublishOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns today's usage of objects. */
  readonly usage: UsageOf;
}

export interface ClosableSink extends StatusSink {
  close(): Promise<void>;
}

export interface Backing {
  readonly source: Source;
  readonly tokens: WorkloadTokens;
  /**
   * Returns the environment that resources may name: none in a cluster, where who writes resources
   * may not read the gateway's environment.
   */
  readonly env: (own: Env) => Env;
  /** Opens a sink besides the control API's; undefined for none. */
  readonly publishTo?: (options: PublishOptions) => ClosableSink;
  close(): Promise<void>;
}

/** A folder of YAML files, for one machine. */
export async function folderBacking(
  { resources, workloadKeyFile }: Pick<GatewayOptions, "resources" | "workloadKeyFile">,
  log: Logger,
): Promise<Backing> {
  if (resources === undefined || workloadKeyFile === undefined)
    throw new Error("resources and workloadKeyFile are required without kubernetes");
  const source = await openFolder({ dir: resources, log });
  return {
    source,
    tokens: new WorkloadTokens(readPrivateFile(workloadKeyFile, "The workload key")),
    env: (own) => own,
    close: async () => source.close(),
  };
}
