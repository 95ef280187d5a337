/**
 * Runs in a network namespace of its own: simulates a pod (a sidecar's port, a neighbour behind a
 * wire), applies the rules with the named tool, twice, and prints what each user can reach.
 */
import { spawn, spawnSync } from "node:child_process";
import { applyRedirect } from "../../src/interception/redirect.ts";
import { runCommand } from "../../src/interception/run-command.ts";
import type { RedirectOptions } from "../../src/interception/ruleset.ts";

const SIDECAR_UID = 1337;
const AGENT_UID = 65_532;
const [, , tool = "nft", deny = "deny"] = process.argv;

function must(command: string, ...args: string[]): void {
  const { code, stderr } = runCommand(command, args, "");
  if (code !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
}

/** Answers with its port on TCP, and echoes UDP. */
const SERVER = `
const net = require("node:net"), dgram = require("node:dgram");
let open = process.argv.length - 1;
const up = () => --open === 0 && console.log("up");
for (const port of process.argv.slice(1).map(Number)) {
  net.createServer((socket) => { socket.on("error", () => {}); socket.end(String(port)); }).listen(port, "::", () => {
    const udp = dgram.createSocket("udp6").on("message", (data, from) => udp.send(String(port), from.port, from.address));
    udp.bind(port, up);
  });
}`;

const servers: ReturnType<typeof spawn>[] = [];
async function serve(ports: readonly number[], inside?: number): Promise<number> {
  const node = [process.execPath, "-e", SERVER, ...ports.map(String)];
  const [command = "", ...args] =
    inside === undefined
      ? node
      : ["unshare", "--net", "sh", "-c", 'echo here; read line; exec "$@"', "sh", ...node];
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  servers.push(child);
  const said = (): Promise<unknown> => new Promise((resolve) => child.stdout.once("data", resolve));
  if (inside !== undefined) {
    await said();
    must(
      "ip",
      "link",
      "add",
      "eth0",
      "type",
      "veth",
      "peer",
      "name",
      "eth0",
      "netns",
      String(child.pid),
    );
    for (const [where, last] of [
      [[], 1],
      [["nsenter", `--net=/proc/${child.pid}/ns/net`], 2],
    ] as const) {
      for (const words of [
        `addr add 10.9.0.${last}/24 dev eth0`,
        `addr add fd09::${last}/64 dev eth0 nodad`,
        "link set eth0 up",
        "link set lo up",
      ]) {
        const [first = "", ...rest] = [...where, "ip", ...words.split(" ")];
        must(first, ...rest);
      }
    }
    child.stdin.write("\n");
  }
  await said();
  return child.pid ?? 0;
}

/** Runs as a user: prints the answer there, or the reason why there is none. */
const CLIENT = `
const net = require("node:net"), dgram = require("node:dgram");
const [kind, address, port] = process.argv.slice(1);
const end = (text) => { console.log(text); process.exit(); };
setTimeout(end, 3000, "silence");
if (kind === "tcp") net.connect(Number(port), address).on("data", (data) => end(String(data))).on("error", (error) => end(error.code));
else {
  const socket = dgram.createSocket(address.includes(":") ? "udp6" : "udp4");
  socket.on("error", (error) => end(error.code)).on("message", (data) => end(String(data)));
  socket.connect(Number(port), address, () => socket.send("x", (error) => error && end(error.code)));
}`;

function probe(uid: number, kind: "tcp" | "udp", address: string, port: number): string {
  return spawnSync(process.execPath, ["-e", CLIENT, kind, address, String(port)], {
    uid,
    gid: uid,
    encoding: "utf8",
  }).stdout.trim();
}

must("ip", "link", "set", "lo", "up");
// Also on 443 and 53: connections there are rejected by the rules, not for lack of a listener.
await serve([443, 53, 8443, 8053, 9000]);
await serve([443, 8000, 9000, 53], 1);
const options: RedirectOptions = {
  httpsPort: 8443,
  dnsPort: 8053,
  sidecarUid: SIDECAR_UID,
  ...(deny === "deny"
    ? {
        egress: {
          gateways: [
            { address: "10.9.0.2", port: 8000 },
            { address: "fd09::2", port: 8000 },
          ],
          dnsServers: ["10.9.0.2"],
        },
      }
    : {}),
};
const used = [1, 2].map(() =>
  applyRedirect(options, (command, args, input) =>
    command === "nft" && tool !== "nft"
      ? { code: undefined, stderr: "" }
      : runCommand(command, args, input),
  ),
);

const places: [kind: "tcp" | "udp", address: string, port: number][] = [
  ["tcp", "127.0.0.1", 443],
  ["tcp", "127.9.9.9", 443],
  ["tcp", "::1", 443],
  ["tcp", "127.0.0.1", 53],
  ["udp", "127.0.0.1", 53],
  ["udp", "::1", 53],
  ["tcp", "127.0.0.1", 9000],
  ["udp", "127.0.0.1", 443],
  ["udp", "::1", 443],
  ["tcp", "10.9.0.2", 443],
  ["tcp", "10.9.0.2", 8000],
  ["tcp", "10.9.0.2", 9000],
  ["tcp", "fd09::2", 8000],
  ["tcp", "fd09::2", 9000],
  ["udp", "10.9.0.2", 53],
  ["udp", "10.9.0.2", 9000],
  ["udp", "fd09::2", 53],
];
const seenBy = (uid: number): Record<string, string> =>
  Object.fromEntries(
    places.map(([kind, address, port]) => [
      `${kind} ${address} ${port}`,
      probe(uid, kind, address, port),
    ]),
  );
process.stdout.write(
  JSON.stringify({ used, agent: seenBy(AGENT_UID), sidecar: seenBy(SIDECAR_UID) }),
);
for (const server of servers) server.kill("SIGKILL");
process.exit();
