/** Converts Envoy's log lines (`level|logger|message`) to ours. */
import type { Logger } from "../platform/log.ts";

const LEVELS: Readonly<Record<string, "debug" | "info" | "warn" | "error">> = {
  trace: "debug",
  debug: "debug",
  info: "info",
  warning: "warn",
  error: "error",
  critical: "error",
};

/** Messages of every start about deliberate settings: the policy has limits, not the proxy. */
const EXPECTED = [
  "There is no configured limit to the number of allowed active downstream connections",
  "caught ENVOY_SIGTERM",
];

export function envoyLineLogger(
  log: Logger,
  onError: (line: string) => void,
): (line: string) => void {
  const envoy = log.child({ process: "envoy" });
  return (line) => {
    const [level, logger, ...rest] = line.split("|");
    const message = rest.join("|");
    if (EXPECTED.some((text) => message.startsWith(text))) return;
    const method = LEVELS[level ?? ""];
    if (method === undefined) {
      envoy.info({ line }, "output");
      return;
    }
    if (method === "error") onError(message);
    envoy[method]({ logger }, message);
  };
}
