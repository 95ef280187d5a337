/** The controller's process. */
import http from "node:http";
import { collectDefaultMetrics, Registry } from "prom-client";
import { controllerConfigSchema } from "../controller/config.ts";
import { Controller } from "../controller/controller.ts";
import { FIELD_MANAGER } from "../controller/names.ts";
import { KubeClient } from "../kubernetes/client.ts";
import { ApiConnection } from "../kubernetes/connection.ts";
import { LeaderElection } from "../kubernetes/lease.ts";
import { systemClock } from "../platform/clock.ts";
import { createLog } from "../platform/log.ts";
import { readConfig } from "../pod/config-file.ts";

const { env } = process;

async function main(): Promise<void> {
  const config = readConfig(controllerConfigSchema, process.argv.slice(2));
  const log = createLog({ level: config.logLevel, name: "controller" });
  const connection = ApiConnection.load();
  const namespace = env["POD_NAMESPACE"] ?? connection.namespace;
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const controller = new Controller({
    config,
    connection,
    namespace,
    clock: systemClock,
    log,
    registry,
  });
  const election = new LeaderElection({
    client: new KubeClient(connection, FIELD_MANAGER),
    namespace,
    identity: env["POD_NAME"] ?? `${process.pid}`,
    ...config.leaderElection,
    clock: systemClock,
    log,
    onStarted: () => controller.lead(),
    // The process ends, because work under way must not go on beside another leader.
    onStopped: () => {
      if (!leaving) fail(new Error("the Lease was lost; the process ends, and begins anew"));
    },
  });
  let leaving = false;
  election.start();
  serve(config.http, controller, registry);
  const stop = (): void => {
    leaving = true;
    void controller
      .close()
      .then(async () => election.stop())
      .then(() => process.exit(0), fail);
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  await controller.open();
}

/** Health and metrics, which hold nothing secret. */
function serve(
  { address, port }: { readonly address: string; readonly port: number },
  controller: Controller,
  registry: Registry,
): void {
  const server = http.createServer((request, response) => {
    const answer = async (): Promise<readonly [number, string]> => {
      switch (request.url) {
        case "/livez":
          return [200, "ok\n"];
        case "/readyz":
          return controller.isReady ? [200, "ok\n"] : [503, "the copies are not complete\n"];
        case "/metrics":
          return [200, await registry.metrics()];
        default:
          return [404, "not found\n"];
      }
    };
    answer().then(
      ([code, body]) => response.writeHead(code, { "content-type": "text/plain" }).end(body),
      () => response.writeHead(500).end(),
    );
  });
  server.listen(port, address);
}

function fail(error: unknown): never {
  process.stderr.write(
    `svc-controller: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exit(1);
}

await main().catch(fail);
