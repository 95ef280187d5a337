/**
 * Protection against DNS rebinding: a web page that reaches the gateway through its visitor's
 * browser says where it comes from (`Origin`), or names a host that is not ours.
 * https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#security-warning
 */
import { isIP } from "node:net";
import { refuse, type Refusal } from "../../access/refusal.ts";

export interface OriginRules {
  /** Origins of web pages that may call, such as `https://inspector.example.com`. */
  readonly allowedOrigins: ReadonlySet<string>;
  /** Hosts under which the gateway is published, without ports; undefined for any. */
  readonly allowedHosts: ReadonlySet<string> | undefined;
}

/** Names of this machine, which no page elsewhere can have as its own. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;

/**
 * @param origin header `Origin`; undefined for clients that are not browsers
 * @param authority header `Host`, or `:authority`
 */
export function checkOrigin(
  origin: string | undefined,
  authority: string,
  { allowedOrigins, allowedHosts }: OriginRules,
): Refusal | undefined {
  const host = hostOf(authority);
  const isOwn = origin !== undefined && isOwnPage(origin, authority, host, allowedHosts);
  if (origin !== undefined && !isOwn && !allowedOrigins.has(origin)) {
    return refuse(
      "origin_not_allowed",
      "Requests of web pages are allowed from the origins of --mcp-allowed-origin only.",
    );
  }
  const isKnown = allowedHosts === undefined || allowedHosts.has(host) || LOOPBACK.test(host);
  return isKnown
    ? undefined
    : refuse("host_not_allowed", "The Host header names none of the hosts of --mcp-allowed-host.");
}

/**
 * Returns whether a page comes from the gateway's own address: of a name that nobody else can have
 * resolved, because it is this machine's or is configured.
 */
function isOwnPage(
  origin: string,
  authority: string,
  host: string,
  allowedHosts: ReadonlySet<string> | undefined,
): boolean {
  const isSame = origin === `http://${authority}` || origin === `https://${authority}`;
  return isSame && (LOOPBACK.test(host) || (allowedHosts?.has(host) ?? false));
}

/** `[::1]:8080` -> `::1`, `Example.com.:80` -> `example.com`. */
function hostOf(authority: string): string {
  const [, bracketed, plain] =
    /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+))(?::\d{1,5})?$/.exec(authority) ?? [];
  if (bracketed !== undefined) return isIP(bracketed) === 6 ? bracketed.toLowerCase() : "";
  return (plain ?? "").toLowerCase().replace(/\.$/, "");
}
