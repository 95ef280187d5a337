/**
 * Memory of silent MCP streams, and whether one of them is dropped: `node bench/mcp-streams.ts`,
 * after `make build`. Opens `--streams` sessions with one stream each by Streamable HTTP, then as
 * many by the old transport, waits, and sends an event on each. Prints a Markdown table.
 *
 *   --streams N   streams of each transport (default 500)
 *   --minutes N   time for which they are silent, by the machine's clock (default 31)
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { preloadGateway } from "../e2e/support/preload.ts";
import { startGateway } from "./gateway.ts";
import { accessKey, mcpResources } from "./mcp-resources.ts";
import { StreamClient } from "./mcp-streams-client.ts";
import { Processes, until } from "./processes.ts";

const ROOT = path.resolve(import.meta.dirname, "..");
const NAME = "streams";
/** An owner may have 64 sessions of the old transport. */
const STREAMS_PER_KEY = 50;
const AT_ONCE = 4;
/** Few at a time: memory that the warm-up frees would hide what the streams need. */
const WARM_UP = { rounds: 5, streams: 20 };
/** Time until memory has settled. */
const SETTLE_MS = 3_000;

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "500" },
    minutes: { type: "string", default: "31" },
  },
});
const count = Number(values.streams);
const minutes = Number(values.minutes);

const sleep = async (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

function progress(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** MiB by process. */
type Memory = Readonly<Record<string, number>>;

/** PSS in MiB, from proc_pid_smaps(5). */
function pssOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss: +(\d+) kB/m.exec(text)?.[1] ?? Number.NaN) / 1024;
}

/** Column of the memory that Node's objects and buffers use, after a collection. */
const HEAP = "Node: heap and buffers";

/** What Node's objects and buffers use in MiB, from the gateway's metrics. */
async function heapOf(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const bytes = ["nodejs_heap_size_used_bytes", "nodejs_external_memory_bytes"].map((name) =>
    Number(new RegExp(`^${name} (\\d+)`, "m").exec(text)?.[1] ?? Number.NaN),
  );
  return bytes.reduce((sum, value) => sum + value, 0) / 1_048_576;
}

async function startProgram(processes: Processes, file: string): Promise<number> {
  const child = processes.start({
    place: "measuring",
    command: process.execPath,
    args: [path.join(import.meta.dirname, file)],
  });
  let printed = "";
  child.stdout?.on("data", (part: Buffer) => (printed += part.toString()));
  const { port } = await until(
    async () => (printed === "" ? undefined : (JSON.parse(printed) as { port: number })),
    child,
    file,
  );
  return port;
}

async function openMany(
  amount: number,
  open: (number: number) => Promise<StreamClient>,
): Promise<StreamClient[]> {
  const clients: StreamClient[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < amount) clients.push(await open(next++));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return clients;
}

/** @throws Error as soon as a stream has ended */
async function silence(clients: readonly StreamClient[], ms: number): Promise<void> {
  const start = performance.now();
  for (let passed = 0; passed < ms; passed = performance.now() - start) {
    await sleep(Math.min(1_000, ms - passed));
    const dropped = clients.filter((client) => client.dropped).length;
    if (dropped > 0) {
      const seconds = Math.round((performance.now() - start) / 1_000);
      throw new Error(`${dropped} streams have ended after ${seconds} s of silence`);
    }
  }
}

async function measure(processes: Processes, dir: string): Promise<string> {
  const upstreamPort = await startProgram(processes, "upstream.ts");
  const serverPort = await startProgram(processes, "mcp-streams-upstream.ts");
  const { port, tree } = await startGateway({
    root: ROOT,
    upstreamPort,
    dir,
    processes,
    env: {
      ...process.env,
      ...preloadGateway("../../bench/mcp-streams-preload.mjs"),
    },
    more: mcpResources({
      port: serverPort,
      name: NAME,
      keys: Math.ceil(count / STREAMS_PER_KEY),
    }),
  });
  const options = (number: number) => ({
    port,
    path: `/ext/mcp/${NAME}`,
    key: accessKey(NAME, Math.floor(number / STREAMS_PER_KEY)),
  });
  const http = async (number: number): Promise<StreamClient> => StreamClient.open(options(number));
  const old = async (number: number): Promise<StreamClient> =>
    StreamClient.openOld(options(number));
  const parts = tree?.named ?? [];
  const memory = async (): Promise<Memory> => {
    const service = parts.find(({ name }) => name === "Node");
    for (let collections = 0; collections < 3; collections++) {
      if (service !== undefined) process.kill(service.pid, "SIGUSR2");
      await sleep(SETTLE_MS / 3);
    }
    const heap = await heapOf(port);
    return {
      ...Object.fromEntries(parts.map(({ name, pid }) => [name, pssOf(pid)])),
      [HEAP]: heap,
    };
  };
  const closeAll = async (clients: readonly StreamClient[]): Promise<void> => {
    for (const client of clients) client.close();
    await sleep(SETTLE_MS / 3);
  };

  for (let left = WARM_UP.rounds; left > 0; left--)
    for (const open of [http, old]) await closeAll(await openMany(WARM_UP.streams, open));
  const before = await memory();
  const first = await openMany(count, http);
  const withHttp = await memory();
  progress(`${count} streams of Streamable HTTP are open.`);
  const second = await openMany(count, old);
  const withOld = await memory();
  progress(`${count} streams of the old transport are open; now silence.`);
  await silence([...first, ...second], minutes * 60_000);
  const afterSilence = await memory();
  const told = await (
    await fetch(`http://127.0.0.1:${serverPort}/broadcast`, { method: "POST" })
  ).text();
  await sleep(SETTLE_MS);
  const alive = (clients: readonly StreamClient[]): number =>
    clients.filter((client) => !client.dropped && client.has("notifications/message")).length;
  const survivors =
    `${alive(first)} of ${first.length} streams of Streamable HTTP and ${alive(second)} of ` +
    `${second.length} of the old transport received an event`;
  progress(survivors);
  await closeAll([...first, ...second]);
  const closed = await memory().catch((error: unknown) => {
    progress(`A process of the gateway has ended: ${String(error)}`);
    return {};
  });

  const columns = [...parts.map(({ name }) => name), HEAP];
  const row = (label: string, of: Memory, since?: Memory): string => {
    const cells = columns.map((name) => {
      const kib = (((of[name] ?? 0) - (since?.[name] ?? 0)) * 1024) / count;
      return since === undefined ? (of[name] ?? Number.NaN).toFixed(1) : kib.toFixed(1);
    });
    return `| ${label} | ${cells.join(" | ")} |`;
  };
  return [
    `| | ${columns.join(" | ")} |`,
    `| --- |${columns.map(() => " ---: |").join("")}`,
    row("before, MiB", before),
    row(`with ${count} streams of Streamable HTTP, MiB`, withHttp),
    row(`with ${count} more of the old transport, MiB`, withOld),
    row(`after ${minutes} minutes of silence, MiB`, afterSilence),
    row("after all were closed, MiB", closed),
    row("for each stream of Streamable HTTP, KiB", withHttp, before),
    row("for each stream of the old transport, KiB", withOld, withHttp),
    "",
    `The server had ${told} open streams. After ${minutes} minutes of silence, ${survivors}.`,
    "",
  ].join("\n");
}

const processes = new Processes();
const dir = mkdtempSync(path.join(os.tmpdir(), "svc-bench-"));
try {
  process.stdout.write(await measure(processes, dir));
} catch (error) {
  process.exitCode = 1;
  const log = readFileSync(path.join(dir, "gateway/gateway.log"), "utf8");
  progress(`${String(error)}\nThe end of the gateway's log:\n${log.slice(-8_000)}`);
} finally {
  await processes.stop();
  rmSync(dir, { recursive: true, force: true });
}
