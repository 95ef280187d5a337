/**
 * The process of a gateway's container: see pod/gateway-pod.ts. The kernel drops signals to the
 * first process of a container that has no handler for them, so there is one before anything else
 * is loaded: otherwise a pod that is deleted while it starts would stay for its whole grace period.
 * With `tools`, the process asks the one that runs: see pod/gateway-tools.ts.
 */
import path from "node:path";
import { fileURLToPath } from "node:url";

let stop = async (): Promise<void> => undefined;
const fail = (error: unknown): never => {
  process.stderr.write(`svc-gateway: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
};
for (const signal of ["SIGTERM", "SIGINT"])
  process.once(signal, () => void stop().then(() => process.exit(0), fail));

process.umask(0o077);
const runDir = process.env["SVC_RUN_DIR"] ?? "/run/svc/gateway";
const [command, ...args] = process.argv.slice(2);
try {
  if (command === "tools") {
    const { controlSocketOf } = await import("../pod/gateway-pod.ts");
    const { askForTools } = await import("../pod/gateway-tools.ts");
    const answer = await askForTools(controlSocketOf(runDir), args);
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  } else await serve();
} catch (error) {
  fail(error);
}

async function serve(): Promise<void> {
  const [{ createLog }, { readConfig }, { gatewayConfigSchema }, { startGatewayPod }] =
    await Promise.all([
      import("../platform/log.ts"),
      import("../pod/config-file.ts"),
      import("../pod/gateway-config.ts"),
      import("../pod/gateway-pod.ts"),
    ]);
  const config = readConfig(gatewayConfigSchema, process.argv.slice(2));
  const pod = await startGatewayPod(config, {
    root: path.resolve(path.dirname(fileURLToPath(import.meta.url)), ".."),
    env: process.env,
    log: createLog({ level: config.logLevel, name: "supervisor" }),
    runDir,
  });
  stop = async () => pod.stop();
}
