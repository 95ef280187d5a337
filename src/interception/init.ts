/** `svc-init`: its flags and its output. */
import { parseArgs } from "node:util";
import { applyRedirect, RedirectError, type RunCommand } from "./redirect.ts";
import { type RedirectEndpoint, nftRuleset, type RedirectOptions } from "./ruleset.ts";

const USAGE = `Usage: svc-init --sidecar-uid UID [--https-port 8443] [--dns-port 8053] [--sidecar-only-port PORT] [--deny-egress [--gateway ADDRESS:PORT]... [--dns ADDRESS]...] [--print]

Redirects the pod's loopback ports 443 and 53 to the sidecar, for every user but the sidecar's own.

  --sidecar-uid UID       user that the sidecar runs as, and no other container
  --https-port PORT       where the sidecar takes HTTPS (default 8443)
  --dns-port PORT         where the sidecar answers DNS, by UDP and TCP (default 8053)
  --sidecar-only-port PORT
                          port of the sidecar that only it may call within the pod (metrics)
  --deny-egress           let nothing out but what is named here, the sidecar's calls, and answers
  --gateway ADDRESS:PORT  gateway that may be called ([ADDRESS]:PORT for IPv6); may be repeated
  --dns ADDRESS           DNS server that may be asked; may be repeated
  --print                 print the rules, as nft has them, and change nothing
`;

const DEFAULT_HTTPS_PORT = 8443;
const DEFAULT_DNS_PORT = 8053;

export interface InitEnvironment {
  readonly run: RunCommand;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
}

/** @returns the exit code: 0 rules in force, 1 failure, 2 wrong usage */
export function runInit(args: readonly string[], { run, stdout, stderr }: InitEnvironment): number {
  let parsed: ReturnType<typeof parseFlags>;
  try {
    parsed = parseFlags(args);
    if (parsed === "help") {
      stdout(USAGE);
      return 0;
    }
    // Values out of range are detected before anything runs.
    const rules = nftRuleset(parsed.options);
    if (parsed.print) {
      stdout(rules);
      return 0;
    }
  } catch (error) {
    stderr(`svc-init: ${(error as Error).message}\n\n${USAGE}`);
    return 2;
  }
  try {
    const { httpsPort, dnsPort, egress } = parsed.options;
    const tool = applyRedirect(parsed.options, run);
    stdout(
      `svc-init: loopback port 443 leads to port ${httpsPort}, and port 53 to port ${dnsPort} ` +
        `(${tool})${egress === undefined ? "" : "; egress is denied by default"}\n`,
    );
    return 0;
  } catch (error) {
    if (!(error instanceof RedirectError)) throw error;
    stderr(`svc-init: ${error.message}\n`);
    return 1;
  }
}

function parseFlags(
  args: readonly string[],
): { readonly options: RedirectOptions; readonly print: boolean } | "help" {
  const { values } = parseArgs({
    args: [...args],
    strict: true,
    options: {
      "sidecar-uid": { type: "string" },
      "https-port": { type: "string" },
      "dns-port": { type: "string" },
      "sidecar-only-port": { type: "string" },
      "deny-egress": { type: "boolean" },
      gateway: { type: "string", multiple: true },
      dns: { type: "string", multiple: true },
      print: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help === true) return "help";
  const uid = values["sidecar-uid"];
  if (uid === undefined) throw new RangeError("--sidecar-uid is required");
  const { gateway = [], dns = [] } = values;
  if (values["deny-egress"] !== true && gateway.length + dns.length > 0)
    throw new RangeError("--gateway and --dns are exceptions to --deny-egress, which is missing");
  const egress = { gateways: gateway.map(parseEndpoint), dnsServers: dns };
  return {
    options: {
      sidecarUid: wholeNumber(uid, "--sidecar-uid"),
      httpsPort: wholeNumber(values["https-port"], "--https-port", DEFAULT_HTTPS_PORT),
      dnsPort: wholeNumber(values["dns-port"], "--dns-port", DEFAULT_DNS_PORT),
      ...(values["sidecar-only-port"] === undefined
        ? {}
        : { sidecarOnlyPort: wholeNumber(values["sidecar-only-port"], "--sidecar-only-port") }),
      ...(values["deny-egress"] === true ? { egress } : {}),
    },
    print: values.print === true,
  };
}

function parseEndpoint(text: string): RedirectEndpoint {
  const match = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(text);
  const address = match?.[1] ?? match?.[2];
  if (match === null || address === undefined)
    throw new RangeError(
      `--gateway ${JSON.stringify(text)}: expected ADDRESS:PORT or [ADDRESS]:PORT`,
    );
  return { address, port: Number(match[3]) };
}

function wholeNumber(text: string | undefined, flag: string, preset = Number.NaN): number {
  if (text === undefined) return preset;
  if (!/^\d{1,10}$/.test(text))
    throw new RangeError(`${flag} ${JSON.stringify(text)}: expected a whole number`);
  return Number(text);
}
