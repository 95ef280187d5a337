/**
 * A mock MCP server with sessions, whose streams are silent until they are told otherwise: POST
 * `/broadcast` sends one event on each of them, and is answered with their number. Prints
 * `{"port": …}` when it listens.
 */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { UPSTREAM_KEY } from "./answers.ts";
import { MCP_PATH } from "./mcp-messages.ts";

const streams = new Set<http.ServerResponse>();
let sessions = 0;

interface Message {
  readonly id?: number;
  readonly method: string;
}

async function serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  const body = (await buffer(request)).toString();
  if (request.url === "/broadcast") {
    const event = 'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n';
    for (const stream of streams) stream.write(event);
    response.end(String(streams.size));
  } else if (
    request.url !== MCP_PATH ||
    request.headers.authorization !== `Bearer ${UPSTREAM_KEY}`
  ) {
    response.writeHead(403).end();
  } else if (request.method === "GET") {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    streams.add(response);
    response.on("close", () => streams.delete(response));
  } else if (request.method === "DELETE") {
    response.end();
  } else {
    const { id, method } = JSON.parse(body) as Message;
    if (id === undefined) {
      response.writeHead(202).end();
      return;
    }
    if (method === "initialize") {
      sessions += 1;
      response.setHeader("mcp-session-id", `session-${sessions}`);
    }
    const result = {
      protocolVersion: "2025-11-25",
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "bench", version: "1.0.0" },
    };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }
}

const server = http.createServer((request, response) => {
  serve(request, response).catch(() => response.destroy());
});
server.requestTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
