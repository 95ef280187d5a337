/**
 * The mock provider, a process of its own: OpenAI's shape, precomputed answers, and at `/mcp` a
 * mock MCP server. Prints `{"port": …}` when it listens.
 *
 *   node bench/upstream.ts [--delay MS] [--first MS] [--every MS] [--port N]
 */
import net, { type AddressInfo } from "node:net";
import { parseArgs } from "node:util";
import { ANTHROPIC_BODY, JSON_BODY, SSE_PARTS, UPSTREAM_KEY } from "./answers.ts";
import { MessageReader } from "./http1.ts";
import { askOf, MCP_ANSWERS, MCP_PATH } from "./mcp-messages.ts";

const { values } = parseArgs({
  options: {
    /** Before a whole answer, milliseconds. */
    delay: { type: "string", default: "0" },
    /** Before the first event of a stream, milliseconds. */
    first: { type: "string", default: "20" },
    /** Between events of a stream, milliseconds. */
    every: { type: "string", default: "5" },
    port: { type: "string", default: "0" },
  },
});
const delayMs = Number(values.delay);
const firstMs = Number(values.first);
const everyMs = Number(values.every);

const WHOLE = answer("200 OK", JSON_BODY);
const REFUSED = answer(
  "401 Unauthorized",
  JSON.stringify({
    error: { message: "wrong key", type: "invalid_request_error", code: "invalid_api_key" },
  }),
);
const STREAM_HEAD =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-request-id: " +
  "req_bench\r\ntransfer-encoding: chunked\r\n\r\n";
const STREAM_PARTS = SSE_PARTS.map((part, index) => {
  const chunk = `${part.length.toString(16)}\r\n${part}\r\n`;
  return Buffer.from(index < SSE_PARTS.length - 1 ? chunk : `${chunk}0\r\n\r\n`);
});
const AUTHORIZATION = `authorization: bearer ${UPSTREAM_KEY}`;
/** Anthropic's clients send the key in this header. */
const API_KEY = `x-api-key: ${UPSTREAM_KEY}`;
const MESSAGE = answer("200 OK", ANTHROPIC_BODY);
const MCP = {
  call: answer("200 OK", MCP_ANSWERS.call),
  "call as event": answer("200 OK", MCP_ANSWERS["call as event"], "text/event-stream"),
  list: answer("200 OK", MCP_ANSWERS.list),
};

const BEGINNING_BYTES = 65_536;

function answer(status: string, body: string, type = "application/json"): Buffer {
  const head =
    `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\nx-request-id: ` +
    `req_bench\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return Buffer.from(head + body);
}

function stream(socket: net.Socket): void {
  let next = 0;
  const send = (): void => {
    if (socket.destroyed) return clearInterval(timer);
    // As with vendors, headers are sent with the first event.
    if (next === 0) socket.write(STREAM_HEAD);
    socket.write(STREAM_PARTS[next++] ?? "");
    if (next === STREAM_PARTS.length) clearInterval(timer);
    else if (next === 1) timer = setInterval(send, everyMs);
  };
  let timer = setTimeout(send, firstMs);
}

const server = net.createServer({ noDelay: true }, (socket) => {
  let authorized = false;
  let isMcp = false;
  let whole = WHOLE;
  /** Its beginning, which shows whether it requests a stream: other requests wait for this one. */
  let body: Buffer[] = [];
  let held = 0;
  const reader = new MessageReader({
    head(head) {
      isMcp = head.startsWith(`POST ${MCP_PATH} `);
      const lower = head.toLowerCase();
      const anthropic = lower.includes(API_KEY);
      authorized = anthropic || lower.includes(AUTHORIZATION);
      whole = anthropic ? MESSAGE : WHOLE;
    },
    body(part) {
      if (held < BEGINNING_BYTES) body.push(part);
      held += part.length;
    },
    end() {
      const beginning = Buffer.concat(body);
      const streamed = beginning.includes('"stream":true');
      body = [];
      held = 0;
      if (!authorized) socket.write(REFUSED);
      else if (isMcp) socket.write(MCP[askOf(beginning)]);
      else if (streamed) stream(socket);
      else if (delayMs === 0) socket.write(whole);
      else setTimeout(() => socket.write(whole), delayMs);
    },
  });
  socket.on("data", (data: Buffer) => reader.push(data));
  // A proxy that disconnects is ignored.
  socket.on("error", () => socket.destroy());
});

server.listen(Number(values.port), "127.0.0.1", () => {
  process.stdout.write(`${JSON.stringify({ port: (server.address() as AddressInfo).port })}\n`);
});
