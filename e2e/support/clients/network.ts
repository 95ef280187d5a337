/**
 * A network of a test's own: a namespace with only loopback, in which the ports of HTTPS and DNS
 * are free, and no rules of the machine apply. This process uses its sockets, but stays in its own
 * namespace.
 */
import { spawn, type ChildProcess } from "node:child_process";
import type dgram from "node:dgram";
import type net from "node:net";
import path from "node:path";

export interface Network {
  readonly address: string;
  /** Path of the namespace. */
  readonly netns: string;
  /** Listens on port 443. */
  readonly tls: net.Server;
  /** Is bound to port 53. */
  readonly dns: dgram.Socket;
  readonly stop: () => Promise<void>;
}

const ADDRESS = "127.0.0.1";

export async function startNetwork(): Promise<Network> {
  const child = spawn(
    "unshare",
    ["--net", process.execPath, path.join(import.meta.dirname, "network-holder.mjs"), ADDRESS],
    { stdio: ["ignore", "inherit", "inherit", "ipc"] },
  );
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const { tls, dns } = await handed(child);
  child.send("taken");
  return {
    address: ADDRESS,
    netns: `/proc/${child.pid}/ns/net`,
    tls,
    dns,
    stop: async () => {
      child.disconnect();
      await exited;
    },
  };
}

function handed(child: ChildProcess): Promise<Pick<Network, "tls" | "dns">> {
  return new Promise((resolve, reject) => {
    let [tls, dns]: [net.Server | undefined, dgram.Socket | undefined] = [undefined, undefined];
    child.on("message", (name, handle) => {
      if (name === "tls") tls = handle as net.Server;
      if (name === "dns") dns = handle as dgram.Socket;
      if (tls !== undefined && dns !== undefined) resolve({ tls, dns });
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      reject(new Error(`no namespace for the test's network (exit code ${code})`)),
    );
  });
}
