/**
 * The gateway service's process. Started by `svc up` (and in a cluster by its container) with its
 * options as JSON.
 */
import { readFileSync } from "node:fs";
import { folderBacking } from "../gateway/backing.ts";
import { parseEnvironment } from "../gateway/environment.ts";
import { gatewayOptionsSchema } from "../gateway/options.ts";
import { startGateway } from "../gateway/service.ts";
import { createLog } from "../platform/log.ts";

const options = gatewayOptionsSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const log = createLog({ level: options.logLevel, name: "gateway" });
process.umask(0o077);

const env =
  options.environment === "stdin" ? parseEnvironment(readFileSync(0, "utf8")) : process.env;
const backing =
  options.kubernetes === undefined
    ? await folderBacking(options, log)
    : await (await import("../gateway/cluster.ts")).clusterBacking(options.kubernetes, log);
const service = await startGateway(options, env, log, backing);
const stop = (): void => {
  void service.close().then(() => process.exit(0));
};
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
