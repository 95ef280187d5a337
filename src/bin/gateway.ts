/**
 * The gateway service's process. Started by `svc up` (and in a cluster by its container) with its
 * options as JSON.
 */
import { readFileSync } from "node:fs";
import { parseEnvironment } from "../gateway/environment.ts";
import { gatewayOptionsSchema } from "../gateway/options.ts";
import { startGateway } from "../gateway/service.ts";
import { createLog } from "../platform/log.ts";
import { openFolder } from "../sources/folder/folder-source.ts";

const options = gatewayOptionsSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const log = createLog({ level: options.logLevel, name: "gateway" });
process.umask(0o077);

const env =
  options.environment === "stdin" ? parseEnvironment(readFileSync(0, "utf8")) : process.env;
const source = await openFolder({ dir: options.resources, log });
const service = await startGateway(options, env, log, source);
const stop = (): void => {
  void service.close().then(() => process.exit(0));
};
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
