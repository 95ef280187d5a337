/**
 * Opens the sockets of the DNS server, in this process's network namespace or in another one. A
 * socket stays in the namespace in which it was opened, so that a short-lived process there opens
 * them and passes them on: under `svc run`, the sidecar is outside of the agent's namespace.
 */
import { type ChildProcess, spawn } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import net from "node:net";

export interface DnsListener {
  readonly address: string;
  readonly port: number;
  /** Path of the network namespace to listen in; undefined for this process's own. */
  readonly netns?: string | undefined;
}

export interface DnsSockets {
  /** Bound. */
  readonly udp: dgram.Socket;
  /** Listening. */
  readonly tcp: net.Server;
}

/** @throws Error if the sockets cannot be opened */
export function openDnsSockets(listener: DnsListener): Promise<DnsSockets> {
  return listener.netns === undefined ? openHere(listener) : openThere(listener, listener.netns);
}

async function openHere({ address, port }: DnsListener): Promise<DnsSockets> {
  const tcp = net.createServer().listen(port, address);
  const udp = dgram.createSocket(net.isIPv6(address) ? "udp6" : "udp4").bind(port, address);
  try {
    await Promise.all([once(tcp, "listening"), once(udp, "listening")]);
  } catch (error) {
    tcp.close();
    udp.close();
    throw new Error(`DNS cannot listen on ${address}, port ${port}: ${(error as Error).message}`, {
      cause: error,
    });
  }
  return { udp, tcp };
}

/**
 * Program of the process in the other namespace. It ends when both sockets have arrived, or with
 * the sidecar, because its copies would keep the port in use.
 */
const OPENER = `
const dgram = process.getBuiltinModule("node:dgram");
const { once } = process.getBuiltinModule("node:events");
const net = process.getBuiltinModule("node:net");
process.once("disconnect", () => process.exit());
process.once("message", () => process.exit());
if (!process.connected) process.exit();
const [address, port] = [process.argv[1], Number(process.argv[2])];
const tcp = net.createServer().listen(port, address);
const udp = dgram.createSocket(net.isIPv6(address) ? "udp6" : "udp4").bind(port, address);
await Promise.all([once(tcp, "listening"), once(udp, "listening")]);
process.send("tcp", tcp);
process.send("udp", udp);
`;

const OPEN_TIMEOUT_MS = 10_000;

async function openThere({ address, port }: DnsListener, netns: string): Promise<DnsSockets> {
  const node = [process.execPath, "--input-type=module", "--eval", OPENER, address, String(port)];
  const command = ["--pdeathsig", "KILL", "--", "nsenter", `--net=${netns}`, "--", ...node];
  const child = spawn("setpriv", command, {
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    // Not the sidecar's own environment, which contains the secrets.
    env: { PATH: process.env["PATH"] },
    timeout: OPEN_TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  let said = "";
  child.stderr?.on("data", (part: Buffer) => (said = `${said}${part.toString()}`.slice(0, 2_000)));
  try {
    const [sockets] = await Promise.all([received(child), once(child, "close")]);
    return sockets;
  } catch (error) {
    child.kill("SIGKILL");
    const why = said.split("\n").find((line) => /error|nsenter/i.test(line)) ?? String(error);
    throw new Error(`DNS cannot listen on ${address}, port ${port}, in ${netns}: ${why.trim()}`, {
      cause: error,
    });
  }
}

/** Receives the opener's sockets, and lets it end. */
function received(child: ChildProcess): Promise<DnsSockets> {
  return new Promise((resolve, reject) => {
    let [udp, tcp]: [dgram.Socket | undefined, net.Server | undefined] = [undefined, undefined];
    child.on("message", (name, handle) => {
      if (name === "tcp") tcp = handle as net.Server;
      if (name === "udp") udp = handle as dgram.Socket;
      if (udp === undefined || tcp === undefined) return;
      child.send("received");
      resolve({ udp, tcp });
    });
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`its opener ended with code ${code}`)));
  });
}
