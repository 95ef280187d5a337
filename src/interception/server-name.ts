/**
 * Determines the server names that the sidecar serves. A name comes from the agent's ClientHello:
 * it must be a host_name as defined by RFC 6066 (section 3), an ASCII host name without a trailing
 * dot, or it is not served.
 */

/** Bound names. */
export interface BoundNames {
  /** Exact host names. */
  readonly hosts: readonly string[];
  /** Each is `*.` and a domain, and matches any number of labels before it, at least one. */
  readonly patterns: readonly string[];
}

const MAX_NAME = 253;
/** RFC 1123, section 2.1. No underscore: DNS names may contain one, but host names may not. */
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/**
 * @returns the name in lower case, or undefined for text that is not a host name: an address, a
 * wildcard, a trailing dot, ...
 */
export function parseServerName(text: string): string | undefined {
  if (text.length === 0 || text.length > MAX_NAME) return undefined;
  // Only ASCII letters are folded: the Kelvin sign is not a k.
  const name = text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
  const labels = name.split(".");
  if (!labels.every((label) => LABEL.test(label))) return undefined;
  // An IPv4 address ends in a number in each of its spellings, and no top-level domain does.
  return /^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) as string) ? undefined : name;
}

/**
 * @returns a function from a client's text to the bound name in lower case, or undefined for every
 * other text
 * @throws RangeError for an invalid host or pattern
 */
export function compileBoundNames({
  hosts,
  patterns,
}: BoundNames): (serverName: string) => string | undefined {
  const exact = new Set(hosts.map(parseHost));
  const domains = new Set(patterns.map(patternDomain));
  return (serverName) => {
    const name = parseServerName(serverName);
    if (name === undefined) return undefined;
    if (exact.has(name)) return name;
    for (let dot = name.indexOf("."); dot >= 0; dot = name.indexOf(".", dot + 1)) {
      if (domains.has(name.slice(dot + 1))) return name;
    }
    return undefined;
  };
}

/**
 * Returns the smallest set of domains that contains every bound name, which a certificate authority
 * for them may sign.
 */
export function boundDomains({ hosts, patterns }: BoundNames): string[] {
  const all = new Set([...hosts.map(parseHost), ...patterns.map(patternDomain)]);
  const under = (name: string): boolean =>
    name.split(".").some((_, index, labels) => index > 0 && all.has(labels.slice(index).join(".")));
  return [...all].filter((name) => !under(name)).sort();
}

function parseHost(host: string): string {
  const name = parseServerName(host);
  if (name === undefined) {
    throw new RangeError(
      `${JSON.stringify(host)} is not a host name: write it in ASCII (xn--...), without ` +
        "port and trailing dot; addresses have no certificates",
    );
  }
  return name;
}

function patternDomain(pattern: string): string {
  const domain = pattern.startsWith("*.") ? parseServerName(pattern.slice(2)) : undefined;
  if (domain === undefined || !domain.includes(".")) {
    throw new RangeError(
      `${JSON.stringify(pattern)} is not a host pattern: write *. and a domain of two ` +
        "labels or more, such as *.example.com",
    );
  }
  return domain;
}
