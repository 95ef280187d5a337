/** The DNS sockets of another network namespace; what enters it is replaced here. */
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openDnsSockets } from "./sockets.ts";

const HOST = "127.0.0.1";
const NETNS = "/proc/1234/ns/net";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "svc-dns-"));
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  vi.stubEnv("SVC_TEST_SECRET", "secret");
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

/** Puts a program in the place of `nsenter`. */
async function nsenter(script: string): Promise<void> {
  const file = path.join(folder, "nsenter");
  await writeFile(file, `#!/bin/sh\n${script}\n`);
  await chmod(file, 0o755);
}

/** Enters no namespace, and writes down what was asked. */
const ENTERS = `printf '%s\\n' "$1" "$2" > "$(dirname "$0")/asked"
env > "$(dirname "$0")/environment"
shift 2
exec "$@"`;

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, HOST);
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

test("come from a process in it that sees no secret and ends", async () => {
  await nsenter(ENTERS);
  const port = await freePort();
  const { udp, tcp } = await openDnsSockets({ address: HOST, port, netns: NETNS });
  try {
    expect([udp.address(), tcp.address()]).toEqual([
      { address: HOST, family: "IPv4", port },
      { address: HOST, family: "IPv4", port },
    ]);
    const client = net.connect(port, HOST);
    const [accepted] = (await once(tcp, "connection")) as [net.Socket];
    accepted.destroy();
    client.destroy();
    expect(await readFile(path.join(folder, "asked"), "utf8")).toBe(`--net=${NETNS}\n--\n`);
    expect(await readFile(path.join(folder, "environment"), "utf8")).not.toContain("secret");
  } finally {
    udp.close();
    tcp.close();
  }
  await once(tcp, "close");
  // The opener's copies would keep the port in use.
  const again = net.createServer().listen(port, HOST);
  await once(again, "listening");
  again.close();
});

test.each([
  [
    "its opener says why",
    "echo warning >&2; echo 'nsenter: no such file ' >&2; exit 1",
    "nsenter: no such file",
  ],
  ["its opener says nothing", "exit 3", "Error: its opener ended with code 3"],
])("are an error with the reason: %s", async (_name, script, reason) => {
  await nsenter(script);
  await expect(openDnsSockets({ address: HOST, port: 53, netns: NETNS })).rejects.toThrow(
    new Error(`DNS cannot listen on 127.0.0.1, port 53, in ${NETNS}: ${reason}`),
  );
});

test("are an error if the port is in use there", async () => {
  await nsenter(ENTERS);
  const server = net.createServer().listen(0, HOST);
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  await expect(openDnsSockets({ address: HOST, port, netns: NETNS })).rejects.toThrow("EADDRINUSE");
  server.close();
});

test("are an error if nothing can be started", async () => {
  vi.stubEnv("PATH", folder);
  await expect(openDnsSockets({ address: HOST, port: 53, netns: NETNS })).rejects.toThrow(
    "spawn setpriv ENOENT",
  );
});
