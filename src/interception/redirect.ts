/** Applies the rules: with nft, or with iptables if there is no nft. */
import { iptablesTables, nftRuleset, type RedirectOptions } from "./ruleset.ts";

export interface CommandResult {
  /** undefined if there is no such program. */
  readonly code: number | undefined;
  readonly stderr: string;
}

/** Runs a program to its end, with `input` as its standard input. */
export type RunCommand = (command: string, args: readonly string[], input: string) => CommandResult;

export type RedirectTool = "nft" | "iptables";

/** Reason why the rules are not in force, with the fix. */
export class RedirectError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "RedirectError";
  }
}

/**
 * Replaces the previous rules, if any. With nft this is one transaction; with iptables one for each
 * table and family.
 * @returns the tool that holds the rules
 * @throws RedirectError
 */
export function applyRedirect(options: RedirectOptions, run: RunCommand): RedirectTool {
  const nft = run("nft", ["-f", "-"], nftRuleset(options));
  if (nft.code === 0) return "nft";
  if (nft.code !== undefined && forbidden(nft.stderr)) throw notPermitted(nft.stderr);
  const iptables = applyIptables(options, run);
  if (iptables === undefined) return "iptables";
  const first =
    nft.code === undefined ? "nft is not installed" : `nft failed: ${oneLine(nft.stderr)}`;
  if (forbidden(iptables)) throw notPermitted(iptables);
  throw new RedirectError(
    `Ports 443 and 53 cannot be redirected. ${first}; ${iptables}. Install nftables or iptables, ` +
      "and make sure that the kernel supports one of them.",
  );
}

/** @returns the failure, or undefined */
function applyIptables(options: RedirectOptions, run: RunCommand): string | undefined {
  for (const family of ["ip6", "ip"] as const) {
    const [command, restore] =
      family === "ip" ? ["iptables", "iptables-restore"] : ["ip6tables", "ip6tables-restore"];
    for (const { table, chain, restore: text } of iptablesTables(options, family)) {
      const jumps =
        run(command, ["-w", "5", "-t", table, "-C", "OUTPUT", "-j", chain], "").code === 0;
      // Inserted before all other rules, in the same transaction as the chain that it jumps to.
      const whole = jumps ? text : text.replace(/COMMIT\n$/, `-I OUTPUT 1 -j ${chain}\nCOMMIT\n`);
      const { code, stderr } = run(restore, ["-w", "5", "--noflush"], whole);
      if (code === undefined) return `${restore} is not installed`;
      if (code !== 0) return `${restore} failed: ${oneLine(stderr)}`;
    }
  }
  return undefined;
}

function forbidden(stderr: string): boolean {
  return /operation not permitted|permission denied|you must be root/i.test(stderr);
}

function notPermitted(stderr: string): RedirectError {
  return new RedirectError(
    `The kernel did not permit packet rules: ${oneLine(stderr)}. The capability NET_ADMIN ` +
      "and user 0 are required: securityContext: {runAsUser: 0, runAsNonRoot: false, " +
      "capabilities: {add: [NET_ADMIN]}} for this init container only.",
  );
}

function oneLine(text: string): string {
  return text.trim().split("\n")[0]?.slice(0, 300) ?? "";
}
