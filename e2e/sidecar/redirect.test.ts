/**
 * The redirect by the kernel itself, in a network namespace that simulates a pod: see
 * e2e/support/redirect-probe.ts.
 */
import { execFileSync, spawnSync } from "node:child_process";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "../support/build.ts";

interface Probed {
  /** The tool that held the rules, each of the two times. */
  readonly used: readonly string[];
  readonly agent: Readonly<Record<string, string>>;
  readonly sidecar: Readonly<Record<string, string>>;
}

function probe(tool: string, egress: "deny" | "open"): Probed {
  const args = [
    "--net",
    process.execPath,
    path.join(ROOT, "e2e/support/redirect-probe.ts"),
    tool,
    egress,
  ];
  return JSON.parse(execFileSync("unshare", args, { encoding: "utf8" })) as Probed;
}

/** The answering port shows the destination of a connection. */
const loopback = {
  "tcp 127.0.0.1 443": "8443",
  "tcp 127.9.9.9 443": "8443",
  "tcp ::1 443": "8443",
  "tcp 127.0.0.1 53": "8053",
  "udp 127.0.0.1 53": "8053",
  "udp ::1 53": "8053",
  "tcp 127.0.0.1 9000": "9000",
};
const everything = {
  "tcp 10.9.0.2 443": "443",
  "tcp 10.9.0.2 8000": "8000",
  "tcp 10.9.0.2 9000": "9000",
  "tcp fd09::2 8000": "8000",
  "tcp fd09::2 9000": "9000",
  "udp 10.9.0.2 53": "53",
  "udp 10.9.0.2 9000": "9000",
  "udp fd09::2 53": "53",
};
/** Immediately, without a timeout: no "silence". */
const refused = expect.stringMatching(/^(?:EPERM|EACCES|EHOSTUNREACH|ECONNREFUSED)$/) as string;
const noQuic = { "udp 127.0.0.1 443": refused, "udp ::1 443": refused };

describe.each(["nft", "iptables"])("%s", (tool) => {
  test("leads loopback's ports 443 and 53 to the sidecar, for all but itself, and lets out what is named alone", () => {
    const { used, agent, sidecar } = probe(tool, "deny");
    expect(used).toEqual([tool, tool]);
    expect(agent).toEqual({
      ...loopback,
      ...noQuic,
      "tcp 10.9.0.2 443": refused,
      "tcp 10.9.0.2 8000": "8000",
      "tcp 10.9.0.2 9000": refused,
      "tcp fd09::2 8000": "8000",
      "tcp fd09::2 9000": refused,
      "udp 10.9.0.2 53": "53",
      "udp 10.9.0.2 9000": refused,
      "udp fd09::2 53": refused,
    });
    const itself = Object.fromEntries(
      [...Object.keys(loopback), ...Object.keys(noQuic)].map((place) => [
        place,
        place.split(" ").at(-1),
      ]),
    );
    expect(sidecar).toEqual({ ...everything, ...itself });
  }, 300_000);

  test("leaves egress as it is where that is not asked for", () => {
    expect(probe(tool, "open").agent).toEqual({ ...loopback, ...noQuic, ...everything });
  }, 300_000);
});

describe("svc-init", () => {
  const init = (
    before: readonly string[],
    args: readonly string[],
  ): { status: number | null; stdout: string; stderr: string } => {
    const [command = "", ...rest] = [
      ...before,
      process.execPath,
      path.join(ROOT, "dist/svc-init.js"),
      ...args,
    ];
    return spawnSync(command, rest, { encoding: "utf8" });
  };

  test("has done its work when it ends", () => {
    expect(init(["unshare", "--net"], ["--sidecar-uid", "1337"])).toMatchObject({
      status: 0,
      stderr: "",
      stdout: "svc-init: loopback port 443 leads to port 8443, and port 53 to port 8053 (nft)\n",
    });
  });

  test.each([
    [
      "without the capability",
      ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "--"],
    ],
    ["as another user", ["setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", "--"]],
  ])("says what it needs, %s", (_name, before) => {
    const { status, stdout, stderr } = init(
      ["unshare", "--net", ...before],
      ["--sidecar-uid", "1337"],
    );
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^svc-init: The kernel did not permit packet rules: .*NET_ADMIN/);
  });
});
