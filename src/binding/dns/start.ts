/** Starts the agent's DNS server: opens its sockets, and connects it with the policy. */
import type { Registry } from "prom-client";
import type { Clock } from "../../platform/clock.ts";
import type { Logger } from "../../platform/log.ts";
import { compileDnsNames, type DnsNamesOptions } from "./names.ts";
import { DnsReport } from "./report.ts";
import { type AgentDns, serveDns } from "./server.ts";
import { type DnsListener, openDnsSockets } from "./sockets.ts";

export interface DnsOptions extends DnsNamesOptions {
  /** undefined: there is no DNS server. */
  readonly listener: DnsListener | undefined;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onDefect: (error: unknown) => void;
}

/** @throws Error if its sockets cannot be opened */
export async function startDns(options: DnsOptions): Promise<AgentDns | undefined> {
  const { listener, clock, log, registry, onDefect } = options;
  if (listener === undefined) return undefined;
  return serveDns({
    sockets: await openDnsSockets(listener),
    find: compileDnsNames(options),
    report: new DnsReport({ registry, clock, log }),
    clock,
    onDefect,
  });
}
