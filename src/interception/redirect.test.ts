import path from "node:path";
import { describe, expect, test } from "vitest";
import { Goldens } from "../platform/testing-goldens.ts";
import { hostAliases, hostsFile } from "./hosts.ts";
import { runInit } from "./init.ts";
import { applyRedirect, type CommandResult, RedirectError } from "./redirect.ts";
import { iptablesTables, nftRuleset, type RedirectOptions } from "./ruleset.ts";

const cases: Record<string, RedirectOptions> = {
  "redirect-alone": { httpsPort: 8443, dnsPort: 8053 },
  "sidecar-uid": { httpsPort: 18443, dnsPort: 8053, sidecarUid: 1337 },
  "deny-egress": {
    httpsPort: 8443,
    dnsPort: 8053,
    sidecarUid: 1337,
    egress: {
      gateways: [
        { address: "10.0.0.1", port: 8000 },
        { address: "fd00::1", port: 8000 },
      ],
      dnsServers: ["10.96.0.10", "fd00::a"],
    },
  },
  "sidecar-only-port": {
    httpsPort: 8443,
    dnsPort: 8053,
    sidecarUid: 65_533,
    sidecarOnlyPort: 8090,
    egress: { gateways: [{ address: "10.0.0.1", port: 8000 }], dnsServers: [] },
  },
  "deny-all-egress": {
    httpsPort: 8443,
    dnsPort: 8053,
    sidecarUid: 0,
    egress: { gateways: [], dnsServers: [] },
  },
};

function allRules(options: RedirectOptions): string {
  const iptables = (["ip", "ip6"] as const).map(
    (family) =>
      `# ${family === "ip" ? "iptables" : "ip6tables"}-restore --noflush\n${iptablesTables(
        options,
        family,
      )
        .map(({ restore }) => restore)
        .join("")}`,
  );
  return [`# nft -f\n${nftRuleset(options)}`, ...iptables].join("\n");
}

describe("rules", () => {
  const goldens = new Goldens(path.join(import.meta.dirname, "testdata"));

  test.each(Object.entries(cases))("%s", (name, options) => {
    goldens.check(`${name}.rules`, allRules(options));
  });

  const egress = { gateways: [], dnsServers: [] };
  test.each<[string, RedirectOptions]>([
    ["no port", { httpsPort: 0, dnsPort: 8053 }],
    ["port of 65536", { httpsPort: 65_536, dnsPort: 8053 }],
    ["redirected to itself", { httpsPort: 443, dnsPort: 8053 }],
    ["no user", { httpsPort: 8443, dnsPort: 8053, sidecarUid: -1 }],
    ["(uid_t) -1", { httpsPort: 8443, dnsPort: 8053, sidecarUid: 4_294_967_295 }],
    ["a sidecar's port of 65536", { httpsPort: 8443, dnsPort: 8053, sidecarOnlyPort: 65_536 }],
    ["not a number", { httpsPort: 8443, dnsPort: 8053, sidecarUid: Number.NaN }],
    [
      "a name",
      { httpsPort: 8443, dnsPort: 8053, egress: { ...egress, dnsServers: ["dns.example"] } },
    ],
    [
      "a block",
      { httpsPort: 8443, dnsPort: 8053, egress: { ...egress, dnsServers: ["0.0.0.0/0"] } },
    ],
    [
      "a rule in an address",
      {
        httpsPort: 8443,
        dnsPort: 8053,
        egress: { ...egress, dnsServers: ["10.0.0.1 accept\n    accept #"] },
      },
    ],
    [
      "a zone",
      {
        httpsPort: 8443,
        dnsPort: 8053,
        egress: { ...egress, gateways: [{ address: "fe80::1%eth0 accept", port: 1 }] },
      },
    ],
    [
      "a gateway's port",
      {
        httpsPort: 8443,
        dnsPort: 8053,
        egress: { ...egress, gateways: [{ address: "10.0.0.1", port: 1.5 }] },
      },
    ],
  ])("are not made of %s", (_name, options) => {
    expect(() => nftRuleset(options)).toThrow(RangeError);
    expect(() => iptablesTables(options, "ip")).toThrow(RangeError);
  });
});

interface Call {
  readonly command: string;
  readonly args: readonly string[];
  readonly input: string;
}

/** Programs with given answers; all others are not installed. */
function programs(answers: Record<string, (call: Call) => Partial<CommandResult>>): {
  readonly calls: Call[];
  readonly run: (command: string, args: readonly string[], input: string) => CommandResult;
} {
  const calls: Call[] = [];
  return {
    calls,
    run: (command, args, input) => {
      const call = { command, args, input };
      calls.push(call);
      const answer = answers[command];
      return answer === undefined
        ? { code: undefined, stderr: "" }
        : { code: 0, stderr: "", ...answer(call) };
    },
  };
}

const iptables = (jumps: boolean): Record<string, () => Partial<CommandResult>> => ({
  iptables: () => ({ code: jumps ? 0 : 1 }),
  ip6tables: () => ({ code: jumps ? 0 : 1 }),
  "iptables-restore": () => ({}),
  "ip6tables-restore": () => ({}),
});

describe("in force", () => {
  test("by nft, in one transaction", () => {
    const { run, calls } = programs({ nft: () => ({}), ...iptables(false) });
    expect(applyRedirect({ httpsPort: 8443, dnsPort: 8053 }, run)).toBe("nft");
    expect(calls).toEqual([
      { command: "nft", args: ["-f", "-"], input: nftRuleset({ httpsPort: 8443, dnsPort: 8053 }) },
    ]);
  });

  test.each([
    ["is not installed", {}],
    [
      "is of no use to this kernel",
      {
        nft: () => ({ code: 1, stderr: "Error: Could not process rule: Operation not supported" }),
      },
    ],
  ])("by iptables in both families where nft %s, and jumped to once", (_name, nft) => {
    const first = programs({ ...nft, ...iptables(false) });
    expect(applyRedirect({ httpsPort: 8443, dnsPort: 8053 }, first.run)).toBe("iptables");
    const restored = (calls: readonly Call[]): string[] =>
      calls
        .filter(({ command }) => command.endsWith("restore"))
        .map(({ command, input }) => `${command} ${input}`);
    expect(restored(first.calls)).toHaveLength(4);
    for (const text of restored(first.calls))
      expect(text).toMatch(/-I OUTPUT 1 -j SVC_\w+\nCOMMIT\n$/);
    const again = programs({ ...nft, ...iptables(true) });
    applyRedirect({ httpsPort: 8443, dnsPort: 8053 }, again.run);
    for (const text of restored(again.calls)) expect(text).not.toContain("OUTPUT");
  });

  test("not at all, if one family stays open", () => {
    const { ip6tables, ...rest } = iptables(false);
    const { run } = programs({
      ...rest,
      "ip6tables-restore": () => ({ code: 2, stderr: "ip6tables-restore: no such table\nmore" }),
    });
    expect(ip6tables).toBeDefined();
    expect(() => applyRedirect({ httpsPort: 8443, dnsPort: 8053 }, run)).toThrow(
      "Ports 443 and 53 cannot be redirected. nft is not installed; ip6tables-restore failed: " +
        "ip6tables-restore: no such table. Install nftables or iptables",
    );
  });

  test.each([
    [
      "nft",
      programs({
        nft: () => ({
          code: 1,
          stderr: "/dev/stdin:1:1-2: Error: Could not process rule: Operation not permitted",
        }),
      }),
    ],
    [
      "iptables",
      programs({
        ...iptables(false),
        "ip6tables-restore": () => ({
          code: 4,
          stderr: "Fatal: can't open lock file: Permission denied",
        }),
      }),
    ],
  ])("not without the capability, as %s says", (_name, { run }) => {
    expect(() => applyRedirect({ httpsPort: 8443, dnsPort: 8053 }, run)).toThrow(RedirectError);
    expect(() => applyRedirect({ httpsPort: 8443, dnsPort: 8053 }, run)).toThrow(
      /did not permit.*NET_ADMIN/,
    );
  });

  test("not with neither of them", () => {
    expect(() => applyRedirect({ httpsPort: 8443, dnsPort: 8053 }, programs({}).run)).toThrow(
      /nft is not installed; ip6tables-restore is not installed/,
    );
  });
});

describe("svc-init", () => {
  function init(
    args: readonly string[],
    answers = {},
  ): { code: number; out: string; err: string; calls: Call[] } {
    const { run, calls } = programs(answers);
    let [out, err] = ["", ""];
    const code = runInit(args, {
      run,
      stdout: (text) => void (out += text),
      stderr: (text) => void (err += text),
    });
    return { code, out, err, calls };
  }

  test("puts what its flags say in force", () => {
    const flags = [
      "--sidecar-uid",
      "1337",
      "--deny-egress",
      "--gateway",
      "10.0.0.1:8000",
      "--gateway",
      "[fd00::1]:8000",
      "--dns",
      "10.96.0.10",
      "--dns",
      "fd00::a",
    ];
    const { code, out, calls } = init(flags, { nft: () => ({}) });
    expect([code, out]).toEqual([
      0,
      "svc-init: loopback port 443 leads to port 8443, and port 53 to port 8053 (nft); " +
        "egress is denied by default\n",
    ]);
    expect(calls[0]?.input).toBe(nftRuleset(cases["deny-egress"] as RedirectOptions));
  });

  test("shows the rules, and does nothing", () => {
    const { code, out, calls } = init([
      "--sidecar-uid",
      "1337",
      "--https-port",
      "18443",
      "--print",
    ]);
    expect([code, out, calls]).toEqual([
      0,
      nftRuleset(cases["sidecar-uid"] as RedirectOptions),
      [],
    ]);
  });

  test.each([
    [[], "--sidecar-uid is required"],
    [["--sidecar-uid", "root"], '--sidecar-uid "root": expected a whole number'],
    [["--sidecar-uid", "4294967295"], "is not a user id"],
    [["--sidecar-uid", "1", "--https-port", "443"], "redirected to itself"],
    [["--sidecar-uid", "1", "--gateway", "10.0.0.1:1"], "exceptions to --deny-egress"],
    [
      ["--sidecar-uid", "1", "--deny-egress", "--gateway", "gateway:1"],
      '"gateway" is not an address',
    ],
    [["--sidecar-uid", "1", "--deny-egress", "--gateway", "::1:1"], "ADDRESS:PORT"],
    [["--sidecar-uid", "1", "--deny-egress", "--dns", "all"], '"all" is not an address'],
    [["--sidecar-uid", "1", "--no-such"], "--no-such"],
    [["--sidecar-uid", "1", "more"], "more"],
  ])("refuses %j, and runs nothing", (args, message) => {
    const { code, err, calls } = init(args, { nft: () => ({}) });
    expect([code, calls]).toEqual([2, []]);
    expect(err).toContain(message);
  });

  test("ends with 1 where the rules are not in force", () => {
    expect(init(["--sidecar-uid", "1"])).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/^svc-init: Ports 443 and 53 cannot be redirected/) as string,
    });
  });
});

describe("names", () => {
  test("lead to the loopback address of both families; localhost stays what it is", () => {
    expect(hostsFile(["b.example", "A.example", "b.example", "localhost"])).toBe(
      "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.0.1 " +
        "a.example\n127.0.0.1 b.example\n::1 a.example\n::1 b.example\n",
    );
    expect(hostAliases(["b.example", "a.example"])).toEqual([
      { ip: "127.0.0.1", hostnames: ["a.example", "b.example"] },
      { ip: "::1", hostnames: ["a.example", "b.example"] },
    ]);
    expect(hostAliases([])).toEqual([]);
  });

  test.each([
    "a.example b.example",
    "a.example\n10.0.0.1 bank.example",
    "#",
    "10.0.0.1",
    "*.example.com",
    "",
  ])("%j is none", (host) => {
    expect(() => hostsFile([host])).toThrow(RangeError);
    expect(() => hostAliases([host])).toThrow(RangeError);
  });
});
