/**
 * Packet rules of an agent's network namespace, as text: loopback's ports 443 and 53 are redirected
 * to the sidecar, QUIC is rejected, and optionally all other egress is rejected. Pure;
 * `redirect.ts` applies them.
 */
import net from "node:net";

export interface RedirectOptions {
  /** Port on which the sidecar accepts HTTPS. */
  readonly httpsPort: number;
  /** Port on which the sidecar answers DNS, over UDP and TCP. */
  readonly dnsPort: number;
  /**
   * User of the sidecar if it shares the namespace: its own calls are not redirected. Never the
   * agent's user.
   */
  readonly sidecarUid?: number;
  /** Port of the sidecar that no other user of the namespace may call; undefined for none. */
  readonly sidecarOnlyPort?: number;
  /** Default-deny egress with its exceptions. Undefined does not restrict egress. */
  readonly egress?: EgressOptions;
}

export interface EgressOptions {
  /** The gateway's address and port, as seen from this namespace. */
  readonly gateways: readonly RedirectEndpoint[];
  /**
   * DNS servers that the agent may query. They are a channel to anyone who controls a domain: leave
   * the list empty if hosts entries suffice.
   */
  readonly dnsServers: readonly string[];
}

export interface RedirectEndpoint {
  readonly address: string;
  readonly port: number;
}

/** Name of our table, and with iptables of our chains, which are replaced as a whole each time. */
const NAME = "svc_interception";
const IPTABLES_REDIRECT = "SVC_REDIRECT";
const IPTABLES_EGRESS = "SVC_EGRESS";
const LOOPBACK = { ip: "127.0.0.0/8", ip6: "::1" } as const;
/** (uid_t) -1 belongs to nobody. */
const MAX_UID = 4_294_967_294;

/** One transaction for `nft -f`, which removes the previous table and adds the new one. */
export function nftRuleset(options: RedirectOptions): string {
  check(options);
  const { httpsPort, dnsPort, sidecarUid, sidecarOnlyPort, egress } = options;
  const own = sidecarUid === undefined ? [] : [`    meta skuid ${sidecarUid} accept`];
  const lines = [
    `table inet ${NAME}`,
    `delete table inet ${NAME}`,
    `table inet ${NAME} {`,
    "  chain divert {",
    "    type nat hook output priority -100; policy accept;",
    ...own,
    `    ip daddr ${LOOPBACK.ip} tcp dport 443 redirect to :${httpsPort}`,
    `    ip6 daddr ${LOOPBACK.ip6} tcp dport 443 redirect to :${httpsPort}`,
    ...["udp", "tcp"].flatMap((protocol) => [
      `    ip daddr ${LOOPBACK.ip} ${protocol} dport 53 redirect to :${dnsPort}`,
      `    ip6 daddr ${LOOPBACK.ip6} ${protocol} dport 53 redirect to :${dnsPort}`,
    ]),
    "  }",
    "  chain outbound {",
    `    type filter hook output priority 0; policy ${egress === undefined ? "accept" : "drop"};`,
    ...own,
    // A QUIC client that is rejected falls back to TCP at once.
    `    ip daddr ${LOOPBACK.ip} udp dport 443 reject`,
    `    ip6 daddr ${LOOPBACK.ip6} udp dport 443 reject`,
    // By whatever of the pod's addresses: what stays in the pod goes out by lo.
    ...(sidecarOnlyPort === undefined
      ? []
      : [`    oifname "lo" tcp dport ${sidecarOnlyPort} reject with tcp reset`]),
    ...(egress === undefined ? [] : nftEgress(egress)),
    "  }",
    "}",
  ];
  return `${lines.join("\n")}\n`;
}

function nftEgress({ gateways, dnsServers }: EgressOptions): string[] {
  return [
    '    oifname "lo" accept',
    // Replies on connections that others opened to the agent.
    "    ct state established,related accept",
    ...gateways.map(
      ({ address, port }) => `    ${nftFamily(address)} daddr ${address} tcp dport ${port} accept`,
    ),
    ...dnsServers.flatMap((address) =>
      ["udp", "tcp"].map(
        (protocol) => `    ${nftFamily(address)} daddr ${address} ${protocol} dport 53 accept`,
      ),
    ),
    // Neighbor discovery is required for anything to be sent over IPv6 (RFC 4890, section 4.4).
    "    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept",
    "    reject with icmpx type admin-prohibited",
  ];
}

/** Output of `iptables-save` that shows that the jump already exists. */
export interface IptablesTable {
  readonly table: "nat" | "filter";
  readonly chain: string;
  /** Input for `iptables-restore --noflush`: empties and fills the chain. */
  readonly restore: string;
}

/** The same rules for one address family, for systems without nftables. */
export function iptablesTables(
  options: RedirectOptions,
  family: "ip" | "ip6",
): readonly IptablesTable[] {
  check(options);
  const { httpsPort, dnsPort, sidecarUid, sidecarOnlyPort, egress } = options;
  const loopback = LOOPBACK[family];
  const own = (chain: string, target: string): string[] =>
    sidecarUid === undefined ? [] : [`-A ${chain} -m owner --uid-owner ${sidecarUid} -j ${target}`];
  const ofFamily = (address: string): boolean => nftFamily(address) === family;
  const port = family === "ip" ? "icmp-port-unreachable" : "icmp6-port-unreachable";
  const prohibited = family === "ip" ? "icmp-admin-prohibited" : "icmp6-adm-prohibited";
  const redirect = [
    ...own(IPTABLES_REDIRECT, "RETURN"),
    `-A ${IPTABLES_REDIRECT} -d ${loopback} -p tcp --dport 443 -j REDIRECT --to-ports ${httpsPort}`,
    ...["udp", "tcp"].map(
      (protocol) =>
        `-A ${IPTABLES_REDIRECT} -d ${loopback} -p ${protocol} --dport 53 -j REDIRECT ` +
        `--to-ports ${dnsPort}`,
    ),
  ];
  const filter = [
    ...own(IPTABLES_EGRESS, "ACCEPT"),
    `-A ${IPTABLES_EGRESS} -d ${loopback} -p udp --dport 443 -j REJECT --reject-with ${port}`,
  ];
  if (sidecarOnlyPort !== undefined)
    filter.push(
      `-A ${IPTABLES_EGRESS} -o lo -p tcp --dport ${sidecarOnlyPort} -j REJECT ` +
        "--reject-with tcp-reset",
    );
  if (egress !== undefined) {
    filter.push(
      `-A ${IPTABLES_EGRESS} -o lo -j ACCEPT`,
      `-A ${IPTABLES_EGRESS} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT`,
      ...egress.gateways
        .filter(({ address }) => ofFamily(address))
        .map(
          ({ address, port }) =>
            `-A ${IPTABLES_EGRESS} -d ${address} -p tcp --dport ${port} -j ACCEPT`,
        ),
      ...egress.dnsServers
        .filter(ofFamily)
        .flatMap((address) =>
          ["udp", "tcp"].map(
            (protocol) => `-A ${IPTABLES_EGRESS} -d ${address} -p ${protocol} --dport 53 -j ACCEPT`,
          ),
        ),
      ...(family === "ip6"
        ? [135, 136, 133].map(
            (type) => `-A ${IPTABLES_EGRESS} -p ipv6-icmp --icmpv6-type ${type} -j ACCEPT`,
          )
        : []),
      `-A ${IPTABLES_EGRESS} -j REJECT --reject-with ${prohibited}`,
    );
  }
  const text = (table: string, chain: string, rules: readonly string[]): string =>
    `*${table}\n:${chain} - [0:0]\n${rules.join("\n")}\nCOMMIT\n`;
  return [
    // Egress first: traffic that is not redirected yet is rejected rather than forwarded.
    { table: "filter", chain: IPTABLES_EGRESS, restore: text("filter", IPTABLES_EGRESS, filter) },
    { table: "nat", chain: IPTABLES_REDIRECT, restore: text("nat", IPTABLES_REDIRECT, redirect) },
  ];
}

function nftFamily(address: string): "ip" | "ip6" {
  return net.isIPv6(address) ? "ip6" : "ip";
}

/** Checks every value of the text: only numbers and addresses. @throws RangeError */
function check(options: RedirectOptions): void {
  const { httpsPort, dnsPort, sidecarUid, sidecarOnlyPort, egress } = options;
  checkPort(httpsPort);
  checkPort(dnsPort);
  if (sidecarOnlyPort !== undefined) checkPort(sidecarOnlyPort);
  if (httpsPort === 443) throw new RangeError("port 443 cannot be redirected to itself");
  if (dnsPort === 53) throw new RangeError("port 53 cannot be redirected to itself");
  if (
    sidecarUid !== undefined &&
    !(Number.isInteger(sidecarUid) && sidecarUid >= 0 && sidecarUid <= MAX_UID)
  )
    throw new RangeError(`${sidecarUid} is not a user id`);
  for (const { address, port } of egress?.gateways ?? []) {
    checkAddress(address);
    checkPort(port);
  }
  for (const address of egress?.dnsServers ?? []) checkAddress(address);
}

function checkPort(port: number): void {
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new RangeError(`${port} is not a port: expected a number from 1 to 65535`);
}

/** Zones (`fe80::1%eth0`) are not allowed: rules do not support them. */
function checkAddress(address: string): void {
  if (net.isIP(address) === 0 || address.includes("%"))
    throw new RangeError(
      `${JSON.stringify(address)} is not an address: rules need addresses, not names`,
    );
}
