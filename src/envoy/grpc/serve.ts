/** Serves one streaming gRPC method on a Unix socket of its own: see {@link Connection}. */
import { chmod, rm } from "node:fs/promises";
import net from "node:net";
import { Connection, type ConnectionOptions } from "./connection.ts";

export interface StreamServerOptions extends ConnectionOptions {
  /** Path of the Unix socket, accessible only to this user; a stale one is replaced. */
  readonly path: string;
}

export interface StreamServer {
  /** Number of streams under way. */
  streamCount(): number;
  /**
   * The longest round trip of its connections, in milliseconds: see {@link Connection.roundTripMs}.
   */
  roundTripMs(): number;
  /** Streams under way end with their connections. */
  close(): Promise<void>;
}

export async function serveStreams({
  path,
  ...options
}: StreamServerOptions): Promise<StreamServer> {
  const connections = new Map<net.Socket, Connection>();
  const server = net.createServer((socket) => {
    connections.set(socket, new Connection(socket, options));
    socket.on("close", () => connections.delete(socket));
  });
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, resolve);
  });
  await chmod(path, 0o600);
  return {
    streamCount: () =>
      [...connections.values()].reduce((sum, { streamCount }) => sum + streamCount, 0),
    roundTripMs: () =>
      Math.max(0, ...[...connections.values()].map(({ roundTripMs }) => roundTripMs)),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const [socket, connection] of connections) {
        connection.goAway();
        socket.destroy();
      }
      await closed;
    },
  };
}
