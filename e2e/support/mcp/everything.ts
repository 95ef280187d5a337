/** The official example server `server-everything`, as a process of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { ROOT } from "../build.ts";
import { freePort } from "../stack.ts";
import { until } from "../wait.ts";

/** Its program; the argument is the transport. */
export const EVERYTHING = path.join(
  ROOT,
  "node_modules/@modelcontextprotocol/server-everything/dist/index.js",
);

export interface EverythingServer {
  readonly port: number;
  /** URL of its endpoint. */
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** @param port of an earlier one; a free one by default */
export async function startEverything(
  transport: "streamableHttp" | "sse",
  port?: number,
): Promise<EverythingServer> {
  const own = port ?? (await freePort());
  const child: ChildProcess = spawn(process.execPath, [EVERYTHING, transport], {
    env: { ...process.env, PORT: String(own) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const ended = new Promise<void>((resolve) => child.on("exit", () => resolve()));
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (part: Buffer) => (output += part.toString()));
  const where = transport === "sse" ? "/sse" : "/mcp";
  const url = `http://127.0.0.1:${own}${where}`;
  await until(
    async () => {
      const answer = await fetch(`http://127.0.0.1:${own}/none`).catch(() => undefined);
      return answer !== undefined;
    },
    { what: "server-everything to listen" },
  ).catch((error: unknown) => {
    child.kill("SIGKILL");
    throw new Error(`server-everything did not start:\n${output}`, { cause: error });
  });
  return {
    port: own,
    url,
    stop: async () => {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
