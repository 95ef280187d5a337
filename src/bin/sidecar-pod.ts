/** A sidecar's process in a pod: see pod/sidecar-pod.ts. Its argument is the file of its options. */
import { readFileSync } from "node:fs";
import { collectOnce } from "../binding/node-flags.ts";
import { createLog } from "../platform/log.ts";
import { sidecarPodOptionsSchema } from "../pod/sidecar-options.ts";
import { startSidecarPod } from "../pod/sidecar-pod.ts";

const fail = (error: unknown): never => {
  process.stderr.write(`svc-sidecar: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
};

process.umask(0o022);
try {
  const file = process.argv[2] ?? "/etc/svc/sidecar.json";
  const options = sidecarPodOptionsSchema.parse(JSON.parse(readFileSync(file, "utf8")));
  const log = createLog({ level: options.logLevel, name: "sidecar" });
  const pod = await startSidecarPod(options, process.env, log);
  collectOnce();
  const stop = (): void => void pod.stop().then(() => process.exit(0), fail);
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
} catch (error) {
  fail(error);
}
