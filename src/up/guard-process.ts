/** The guard service beside the gateway: a process that classifies texts (`svc guard`). */
import path from "node:path";
import { StartError } from "../host/errors.ts";
import type { Logger } from "../platform/log.ts";
import { SupervisedProcess } from "../platform/supervised-process.ts";
import type { ClassifierType } from "../policy/snapshot.ts";
import { freeLoopbackPort } from "./ports.ts";

export interface GuardOptions {
  readonly type: ClassifierType;
  /** Folder of the model (promptGuard), or its name at the upstream; undefined for none. */
  readonly model: string | undefined;
  /** URL of the classifier that the service asks (llamaGuard, custom); undefined for none. */
  readonly upstream: string | undefined;
}

export interface GuardProcess {
  readonly process: SupervisedProcess;
  /** Base URL of the service. */
  readonly endpoint: string;
}

/** @throws StartError if an option is missing, or has no effect */
export function assertGuardOptions({ type, model, upstream }: GuardOptions): void {
  const isRemote = type === "llamaGuard" || type === "custom";
  if (isRemote && upstream === undefined)
    throw new StartError(
      `--guard ${type} asks another service. Name its address: --guard-upstream URL.`,
    );
  if (!isRemote && upstream !== undefined)
    throw new StartError(`--guard-upstream has no effect with --guard ${type}. Remove it.`);
  if (type === "promptGuard" && model === undefined)
    throw new StartError(
      "--guard promptGuard needs a model. Name the folder that contains it: --guard-model DIR.",
    );
  if (type === "llamaGuard" && model === undefined)
    throw new StartError(
      "--guard llamaGuard needs the name of the model at its upstream: --guard-model NAME.",
    );
  if (type === "stub" && model !== undefined)
    throw new StartError("--guard-model has no effect with --guard stub. Remove it.");
}

/**
 * Chooses a free port; the process is not started yet.
 *
 * @param environment.root the package's root
 * @param environment.env variables of the caller; the service gets its own ones alone
 */
export async function guardProcess(
  { type, model, upstream }: GuardOptions,
  environment: {
    readonly root: string;
    readonly env: NodeJS.ProcessEnv;
    readonly log: Logger;
  },
): Promise<GuardProcess> {
  const { root, env, log } = environment;
  const listen = `127.0.0.1:${await freeLoopbackPort()}`;
  return {
    endpoint: `http://${listen}`,
    process: new SupervisedProcess({
      name: "guard",
      command: process.execPath,
      args: [
        "--enable-source-maps",
        path.join(root, "dist/svc.js"),
        "guard",
        "--type",
        type,
        "--listen",
        listen,
        "--log-level",
        log.level,
        ...(model === undefined
          ? []
          : ["--model", type === "promptGuard" ? path.resolve(model) : model]),
        ...(upstream === undefined ? [] : ["--endpoint", upstream]),
      ],
      // As for the gateway: no variable for Node.js or the loader, and no secret of others.
      env: Object.fromEntries(
        Object.entries(env).filter(([name]) => /^SVC_(?:GUARD|CLASSIFIER)_/.test(name)),
      ),
      log,
      // Its log lines are JSON as all others'; the rest is for people at a terminal.
      onLine: (line) => {
        if (line.startsWith("{")) process.stderr.write(`${line}\n`);
        else log.info({ process: "guard", line }, "output");
      },
    }),
  };
}
