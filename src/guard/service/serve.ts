/** Runs the guard service until it is told to stop. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../../platform/log.ts";
import type { Classifier } from "./classifier.ts";
import { startGuardServer } from "./server.ts";
import {
  type ClassifierSettings,
  type ClassifierSurroundings,
  startClassifier,
} from "./settings.ts";

export interface ServeSettings {
  readonly classifier: ClassifierSettings;
  readonly host: string;
  readonly port: number;
  readonly maxConcurrent: number;
  readonly maxQueued: number;
  /** Time after a stop in which requests are still accepted, but `/healthz` is 503. */
  readonly acceptMs: number;
  /** Time that requests under way then have to finish. */
  readonly drainMs: number;
}

export interface ServeSurroundings extends Omit<ClassifierSurroundings, "report" | "onLost"> {
  readonly log: Logger;
  readonly monotonic: () => number;
  /** Resolves when the process is to stop. */
  readonly stopped: Promise<void>;
  /** Is called when the service is healthy. */
  readonly onReady: (url: string, classifier: Classifier) => void;
}

/** Resolves after a stop, and rejects if the classifier cannot start or has been lost. */
export async function serveGuard(
  settings: ServeSettings,
  surroundings: ServeSurroundings,
): Promise<void> {
  const { log, stopped } = surroundings;
  const { promise: lost, reject: lose } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  const server = await startGuardServer({
    ...settings,
    log,
    monotonic: surroundings.monotonic,
    start: (report) =>
      startClassifier(settings.classifier, {
        ...surroundings,
        report,
        onLost: (reason) => lose(new Error(`the thread of the model has ended: ${reason}`)),
      }),
  });
  try {
    const stop = stopped.then(() => "stopped" as const);
    const first = await Promise.race([server.ready, stop]);
    if (first !== "stopped") {
      const host = server.host.includes(":") ? `[${server.host}]` : server.host;
      surroundings.onReady(`http://${host}:${server.port}`, first);
      await Promise.race([stop, lost]);
      server.drain();
      await sleep(settings.acceptMs);
    }
  } finally {
    await server.close(settings.drainMs);
  }
}
