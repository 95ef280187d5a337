/**
 * A pod's hosts file maps bound hosts to 127.0.0.1, also for the sidecar. In a mount namespace with
 * such a file, the system's resolver returns the agent's answer, and the sidecar's own resolver
 * that of the DNS server.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { ROOT } from "../support/build.ts";
import { Outside } from "../support/services.ts";

const PROGRAM = `
import { lookup } from "node:dns/promises";
import { EndpointResolver } from "${ROOT}/src/binding/resolver.ts";
import { systemClock } from "${ROOT}/src/platform/clock.ts";
const resolver = new EndpointResolver({ clock: systemClock, servers: [process.argv[1]], port: 443 });
const system = (await lookup("api.github.com")).address;
console.log(JSON.stringify({ system, ours: await resolver.resolve("api.github.com"), unknown: (await resolver.resolve("nowhere.github.com")) ?? null }));
`;

test("a poisoned hosts file leads the sidecar nowhere", async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), "svc-hosts-"));
  const outside = await Outside.start(["api.github.com"], "127.0.0.53");
  try {
    writeFileSync(
      path.join(dir, "hosts"),
      "127.0.0.1 localhost api.github.com nowhere.github.com\n",
    );
    const script =
      `mount --bind ${dir}/hosts /etc/hosts && exec "${process.execPath}" ` +
      `--input-type=module --eval "$0" -- "$1"`;
    const { stdout } = await promisify(execFile)("unshare", [
      "--mount",
      "sh",
      "-c",
      script,
      PROGRAM,
      outside.dnsServer,
    ]);
    expect(JSON.parse(stdout)).toEqual({
      system: "127.0.0.1",
      ours: "127.0.0.53:443",
      unknown: null,
    });
    // A cached answer is not requested again.
    expect(outside.asked.filter((name) => name === "api.github.com")).toHaveLength(1);
  } finally {
    await outside.close();
    rmSync(dir, { recursive: true });
  }
});
