/**
 * The load generator, a process of its own: takes a {@link LoadJob} as JSON, prints a {@link
 * LoadResult} as JSON.
 *
 *   node bench/load.ts '{"port":9000,"key":"sk-…","model":"gpt-4o-mini",…}'
 */
import { performance } from "node:perf_hooks";
import { isWhole, PATH, PLACEHOLDER, requestBody } from "./answers.ts";
import { type Answered, Connection } from "./connection.ts";
import { isWholeMcp, type McpAsk, mcpRequest } from "./mcp-messages.ts";
import { cpuSeconds, machineBusySeconds, percentile, type ProcessTree } from "./stats.ts";

export interface TlsRequest {
  /** The complete request, as sent. */
  readonly request: string;
  readonly serverName: string;
  /** A connection of its own for each request. */
  readonly fresh: boolean;
}

export interface LoadJob {
  readonly port: number;
  readonly key: string;
  readonly model: string;
  readonly stream: boolean;
  readonly promptBytes?: number;
  /** Whether each request has another prompt. */
  readonly unique?: boolean;
  /** Replaces the chat completion without TLS. */
  readonly tls?: TlsRequest;
  /** Replaces the chat completion. */
  readonly mcp?: { readonly path: string; readonly key: string; readonly ask: McpAsk };
  readonly connections: number;
  /** Requests per second; without it each connection sends its next request after each answer. */
  readonly rate?: number;
  readonly seconds: number;
  /** Processes whose CPU time is read at the start and at the end, while nothing is under way. */
  readonly tree?: ProcessTree;
  readonly upstream: ProcessTree;
}

export interface Spread {
  readonly p50: number;
  readonly p99: number;
}

export interface LoadResult {
  readonly count: number;
  readonly errors: Readonly<Record<string, number>>;
  readonly perSecond: number;
  readonly latencyMs: Spread;
  readonly firstByteMs: Spread;
  /** CPU seconds of the job's tree, by name. */
  readonly cpu: Readonly<Record<string, number>>;
  /**
   * Cores used by the upstream and this process: near 1 on a shared CPU means that they were the
   * limit.
   */
  readonly measuringCores: number;
  /** Cores used by other processes: noise. */
  readonly otherCores: number;
}

/** Opens the connections, and lets the code on both sides be compiled. */
const WARM_UP_SECONDS = 0.5;
/** Then work started by the warm-up may end. */
const PAUSE_MS = 150;

class Samples {
  readonly latency: number[] = [];
  readonly firstByte: number[] = [];
  readonly errors: Record<string, number> = {};

  add({ error, latencyMs, firstByteMs }: Answered): void {
    if (error === undefined) {
      this.latency.push(latencyMs);
      this.firstByte.push(firstByteMs);
    } else {
      this.errors[error] = (this.errors[error] ?? 0) + 1;
    }
  }
}

const sleep = async (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Each connection sends its next request after each answer, until the time is over; ends when all
 * are answered.
 */
async function closedLoop(
  connections: readonly Connection[],
  seconds: number,
  samples: Samples,
): Promise<void> {
  const end = performance.now() + seconds * 1000;
  const one = async (connection: Connection): Promise<void> =>
    new Promise((resolve) => {
      const next = (answered: Answered): void => {
        samples.add(answered);
        if (performance.now() >= end) resolve();
        // Backs off after errors.
        else if (answered.error !== undefined) setTimeout(() => connection.ask(next), 5);
        else connection.ask(next);
      };
      connection.ask(next);
    });
  await Promise.all(connections.map(one));
}

/**
 * Sends at a fixed rate, independent of the answers; a request without a free connection waits, and
 * its wait counts.
 */
async function fixedRate(
  connections: readonly Connection[],
  rate: number,
  seconds: number,
  samples: Samples,
): Promise<void> {
  const free = [...connections];
  const waiting: number[] = [];
  const pending = new Set<Connection>();
  const start = performance.now();
  const total = Math.round(rate * seconds);
  const ask = (connection: Connection, since?: number): void => {
    pending.add(connection);
    connection.ask((answered) => {
      samples.add(answered);
      pending.delete(connection);
      const due = waiting.shift();
      if (due === undefined) free.push(connection);
      else ask(connection, due);
    }, since);
  };
  for (let index = 0; index < total; index++) {
    const early = start + (index * 1000) / rate - performance.now();
    if (early > 0) await sleep(early);
    // First in, first out: every connection stays in use.
    const connection = free.shift();
    if (connection === undefined) waiting.push(performance.now());
    else ask(connection);
  }
  while (pending.size > 0) await sleep(5);
}

/** The complete request of a job without TLS. */
function plainRequest(job: LoadJob): string {
  const { port, mcp } = job;
  const path = mcp?.path ?? PATH;
  const body = mcp === undefined ? requestBody(job) : mcpRequest(mcp.ask);
  const accept = mcp === undefined ? "*/*" : "application/json, text/event-stream";
  return (
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\nauthorization: Bearer ` +
    `${mcp?.key ?? job.key}\r\ncontent-type: application/json\r\naccept: ${accept}\r\n` +
    `user-agent: svc-bench\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  );
}

async function run(job: LoadJob): Promise<LoadResult> {
  const { port, stream, tls, mcp } = job;
  const request = Buffer.from(tls?.request ?? plainRequest(job));
  const whole = (body: Buffer): boolean =>
    mcp === undefined ? isWhole(body, stream) : isWholeMcp(body, mcp.ask);
  const connections = Array.from(
    { length: job.connections },
    () =>
      new Connection({
        port,
        request,
        isWhole: whole,
        serverName: tls?.serverName,
        fresh: tls?.fresh,
        placeholder: job.unique === true ? PLACEHOLDER : undefined,
      }),
  );
  await closedLoop(connections, WARM_UP_SECONDS, new Samples());
  await sleep(PAUSE_MS);

  const samples = new Samples();
  const cpuOf = (): Record<string, number> => (job.tree === undefined ? {} : cpuSeconds(job.tree));
  const measuringCpu = (): number => {
    const { user, system } = process.cpuUsage();
    return (
      (user + system) / 1e6 +
      Object.values(cpuSeconds(job.upstream)).reduce((sum, seconds) => sum + seconds, 0)
    );
  };
  const before = cpuOf();
  const measuringBefore = measuringCpu();
  const busyBefore = machineBusySeconds();
  const start = performance.now();
  if (job.rate === undefined) await closedLoop(connections, job.seconds, samples);
  else await fixedRate(connections, job.rate, job.seconds, samples);
  const elapsed = (performance.now() - start) / 1000;
  const cpu = Object.fromEntries(
    Object.entries(cpuOf()).map(([name, seconds]) => [name, seconds - (before[name] ?? 0)]),
  );
  const busy = machineBusySeconds() - busyBefore;
  const measuringCores = (measuringCpu() - measuringBefore) / elapsed;
  for (const connection of connections) connection.close();

  const spread = (of: readonly number[]): Spread => ({
    p50: percentile(of, 0.5),
    p99: percentile(of, 0.99),
  });
  return {
    count: samples.latency.length,
    errors: samples.errors,
    perSecond: samples.latency.length / elapsed,
    latencyMs: spread(samples.latency),
    firstByteMs: spread(samples.firstByte),
    cpu,
    measuringCores,
    otherCores: Math.max(
      0,
      (busy - Object.values(cpu).reduce((sum, seconds) => sum + seconds, 0)) / elapsed -
        measuringCores,
    ),
  };
}

const result = await run(JSON.parse(process.argv[2] ?? "") as LoadJob);
process.stdout.write(`${JSON.stringify(result)}\n`);
