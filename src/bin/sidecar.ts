/**
 * The sidecar service's process. Started by `svc run` (and in a pod by its container) with its
 * options as JSON.
 */
import { collectOnce } from "../binding/node-flags.ts";
import { sidecarOptionsSchema } from "../binding/options.ts";
import { startSidecar } from "../binding/service.ts";
import { createLog } from "../platform/log.ts";

const options = sidecarOptionsSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const log = createLog({ level: options.logLevel, name: "sidecar" });

const service = await startSidecar(options, process.env, log).catch((error: unknown) => {
  process.stderr.write(`svc-sidecar: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
collectOnce();
const stop = (): void => {
  void service.close().then(() => process.exit(0));
};
process.once("SIGTERM", stop);
process.once("SIGINT", stop);
