/**
 * Discord's HTTP API as clients see it, for one bot and its channels in memory.
 * https://docs.discord.com/developers/reference
 * https://docs.discord.com/developers/resources/message
 */
import type http2 from "node:http2";
import type { Received } from "./services.ts";

interface Message {
  readonly id: string;
  readonly channel_id: string;
  readonly content: string;
  readonly message_reference?: unknown;
  readonly reactions: readonly string[];
}

interface DiscordAnswer {
  readonly status: number;
  readonly body?: unknown;
}

export class DiscordServer {
  readonly #token: string;
  readonly #messages = new Map<string, Message[]>();

  constructor(token: string) {
    this.#token = token;
  }

  serve(request: Received, response: http2.Http2ServerResponse): void {
    const { status, body } = this.#answer(request);
    const text = body === undefined ? "" : JSON.stringify(body);
    response.writeHead(status, {
      "content-length": String(Buffer.byteLength(text)),
      ...(body !== undefined && { "content-type": "application/json" }),
      "x-ratelimit-limit": "5",
      "x-ratelimit-remaining": "4",
      "x-ratelimit-reset-after": "1",
    });
    response.end(text);
  }

  #answer(request: Received): DiscordAnswer {
    if (request.headers.authorization !== `Bot ${this.#token}`)
      return { status: 401, body: { message: "401: Unauthorized", code: 0 } };
    const [path = ""] = request.url.split("?");
    if (request.method === "GET" && path === "/api/v10/users/@me")
      return { status: 200, body: { id: "2", username: "the-bot", bot: true } };
    const [, channel, id, emoji] =
      /^\/api\/v10\/channels\/(\d+)\/messages(?:\/(\d+)(?:\/reactions\/([^/]+)\/@me)?)?$/.exec(
        path,
      ) ?? [];
    if (channel === undefined) return { status: 404, body: { message: "404: Not Found", code: 0 } };
    const messages = this.#messages.get(channel) ?? [];
    if (id === undefined) {
      if (request.method === "GET") return { status: 200, body: messages.toReversed() };
      const { content = "", message_reference: reference } = parse(request);
      const message: Message = {
        id: String(messages.length + 1),
        channel_id: channel,
        content,
        reactions: [],
        ...(reference !== undefined && { message_reference: reference }),
      };
      this.#messages.set(channel, [...messages, message]);
      return { status: 200, body: message };
    }
    const found = messages.find((each) => each.id === id);
    if (found === undefined)
      return { status: 404, body: { message: "Unknown Message", code: 10_008 } };
    const change = (changed: Message): void => {
      this.#messages.set(
        channel,
        messages.map((each) => (each === found ? changed : each)),
      );
    };
    if (emoji !== undefined) {
      change({ ...found, reactions: [...found.reactions, decodeURIComponent(emoji)] });
      return { status: 204 };
    }
    if (request.method !== "PATCH") return { status: 200, body: found };
    const changed = { ...found, content: parse(request).content ?? found.content };
    change(changed);
    return { status: 200, body: changed };
  }
}

function parse({ body }: Received): { content?: string; message_reference?: unknown } {
  return JSON.parse(body.toString("utf8")) as { content?: string; message_reference?: unknown };
}
