/**
 * The agent's DNS server: the same answers over UDP and TCP (RFC 7766), at a bounded rate, so that
 * a flood of queries does not keep the sidecar from deciding about requests.
 */
import type { RemoteInfo } from "node:dgram";
import type net from "node:net";
import { Budget, type Rate } from "../../audit/refusals/refusal-budgets.ts";
import type { TimeSource } from "../../platform/clock.ts";
import { answerDns } from "./answer.ts";
import type { FindName } from "./names.ts";
import type { DnsReport } from "./report.ts";
import type { DnsSockets } from "./sockets.ts";

/** Rate of the answered queries; others are dropped unread, and clients ask again. */
export const QUERY_RATE: Rate = { perSecond: 2_000, burst: 4_000 };

const MAX_CONNECTIONS = 64;
/** A TCP connection without a query for so long is closed (RFC 7766, section 6.2.3). */
const IDLE_MS = 10_000;
/** Maximum size of a query over TCP; usual ones are below 512 bytes. */
const MAX_QUERY_BYTES = 4_096;
const LENGTH_BYTES = 2;

export interface DnsServerOptions {
  readonly sockets: DnsSockets;
  readonly find: FindName;
  readonly report: DnsReport;
  readonly clock: TimeSource;
  readonly onDefect: (error: unknown) => void;
}

export interface AgentDns {
  close(): void;
}

export function serveDns(options: DnsServerOptions): AgentDns {
  const { sockets, find, report, clock, onDefect } = options;
  const { udp, tcp } = sockets;
  const budget = new Budget(QUERY_RATE);
  const connections = new Set<net.Socket>();
  let closed = false;
  /** Returns the reply; undefined for a message that gets none. Never rejects. */
  const replyTo = async (message: Buffer): Promise<Buffer | undefined> => {
    const now = clock.monotonic();
    if (!budget.has(now)) {
      report.dropped();
      return undefined;
    }
    budget.take();
    try {
      const answer = await answerDns(message, find);
      report.answered(answer);
      return answer.reply;
    } catch (error) {
      onDefect(error);
      return undefined;
    }
  };

  const answerPeer = async (message: Buffer, peer: RemoteInfo): Promise<void> => {
    const reply = await replyTo(message);
    // An error means that the peer is gone.
    if (reply !== undefined && !closed) udp.send(reply, peer.port, peer.address, () => undefined);
  };

  udp.on("message", (message, peer) => void answerPeer(message, peer));
  udp.on("error", onDefect);

  tcp.maxConnections = MAX_CONNECTIONS;
  tcp.on("connection", (socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy());
    // Rejects if the client breaks the connection.
    serveConnection(socket, replyTo).catch(() => socket.destroy());
  });
  tcp.on("error", onDefect);

  return {
    close: () => {
      closed = true;
      udp.close();
      tcp.close();
      for (const socket of connections) socket.destroy();
    },
  };
}

/**
 * Answers the queries of a connection one after the other: nothing is read while an answer is not
 * taken. A connection is closed after a message that gets no reply, or is too long.
 */
async function serveConnection(
  socket: net.Socket,
  replyTo: (message: Buffer) => Promise<Buffer | undefined>,
): Promise<void> {
  let unread = Buffer.alloc(0);
  for await (const part of socket as AsyncIterable<Buffer>) {
    unread = Buffer.concat([unread, part]);
    while (unread.length >= LENGTH_BYTES) {
      const length = unread.readUInt16BE(0);
      if (length > MAX_QUERY_BYTES) return void socket.destroy();
      if (unread.length < LENGTH_BYTES + length) break;
      const reply = await replyTo(unread.subarray(LENGTH_BYTES, LENGTH_BYTES + length));
      unread = unread.subarray(LENGTH_BYTES + length);
      if (reply === undefined) return void socket.destroy();
      await written(socket, reply);
    }
  }
  socket.end();
}

function written(socket: net.Socket, reply: Buffer): Promise<void> {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(reply.length);
  return new Promise((resolve, reject) => {
    socket.write(Buffer.concat([length, reply]), (error) => (error ? reject(error) : resolve()));
  });
}
