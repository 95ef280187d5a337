/**
 * Keeps the file of resolved providers equal to the state of `svc up`, so that an edit of a policy
 * takes effect without a restart.
 */
import { renameSync, writeFileSync } from "node:fs";
import type { Logger } from "../platform/log.ts";
import type { AgentGrant } from "./agent-grant.ts";

export interface SpecFileOptions {
  readonly file: string;
  readonly first: AgentGrant;
  readonly ask: () => Promise<AgentGrant>;
  readonly pollMs: number;
  readonly log: Logger;
}

export function keepSpecFile({ file, first, ask, pollMs, log }: SpecFileOptions): {
  close(): void;
} {
  let written = "";
  let warned = false;
  const started = needsRestart(first);
  const write = ({ specs }: AgentGrant): void => {
    const text = `${JSON.stringify(specs)}\n`;
    if (text === written) return;
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
    written = text;
  };
  write(first);
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  const next = (): void => {
    timer = setTimeout(() => void look(), pollMs);
  };
  const look = async (): Promise<void> => {
    try {
      const grant = await ask();
      if (closed) return;
      if (needsRestart(grant) === started) {
        write(grant);
        warned = false;
      } else if (!warned) {
        warned = true;
        log.warn(
          "the agent's list of Providers, or a Secret of theirs, has changed: start svc " +
            "run again to use it",
        );
      }
    } catch {
      // There is no svc up at the moment, or it no longer has the agent: the known state stays in
      // force.
    }
    if (!closed) next();
  };
  next();
  return {
    close: () => {
      closed = true;
      clearTimeout(timer);
    },
  };
}

/** The parts that a sidecar reads only at its start. */
function needsRestart({ hosts, secrets }: AgentGrant): string {
  const values = Object.entries(secrets).map(([name, secret]) => [name, secret.reveal()]);
  return JSON.stringify([hosts, values]);
}
