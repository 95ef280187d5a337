/** The process of a gateway's container: see pod/gateway-pod.ts. */
import path from "node:path";
import { fileURLToPath } from "node:url";
import { createLog } from "../platform/log.ts";
import { readConfig } from "../pod/config-file.ts";
import { gatewayConfigSchema } from "../pod/gateway-config.ts";
import { startGatewayPod } from "../pod/gateway-pod.ts";

const fail = (error: unknown): never => {
  process.stderr.write(`svc-gateway: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
};

process.umask(0o077);
try {
  const config = readConfig(gatewayConfigSchema, process.argv.slice(2));
  const pod = await startGatewayPod(config, {
    root: path.resolve(path.dirname(fileURLToPath(import.meta.url)), ".."),
    env: process.env,
    log: createLog({ level: config.logLevel, name: "supervisor" }),
    runDir: process.env["SVC_RUN_DIR"] ?? "/run/svc/gateway",
  });
  const stop = (): void => void pod.stop().then(() => process.exit(0), fail);
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
} catch (error) {
  fail(error);
}
