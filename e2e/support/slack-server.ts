/**
 * Slack's Web API as clients see it, for one app with token rotation.
 * https://docs.slack.dev/apis/web-api https://docs.slack.dev/authentication/using-token-rotation
 */
import { randomUUID } from "node:crypto";
import type http2 from "node:http2";
import type { Received } from "./services.ts";

export interface SlackApp {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Each works once. */
  readonly refreshToken: string;
}

interface Message {
  readonly type: "message";
  readonly user: string;
  readonly ts: string;
  readonly text: string;
  readonly thread_ts?: string;
  readonly blocks?: unknown;
}

export class SlackServer {
  /** Access tokens that were issued. */
  readonly issued = new Set<string>();
  /** Refresh tokens in the order in which they were issued; the last one works. */
  readonly refreshTokens: string[];
  readonly #app: SlackApp;
  readonly #messages = new Map<string, Message[]>();

  constructor(app: SlackApp) {
    this.#app = app;
    this.refreshTokens = [app.refreshToken];
  }

  serve(request: Received, response: http2.Http2ServerResponse): void {
    const method = /^\/api\/([a-zA-Z.0-9]+)$/.exec(request.url)?.[1] ?? "";
    const values = new URLSearchParams(request.body.toString("utf8"));
    const answer =
      method === "oauth.v2.access" ? this.#rotate(values) : this.#call(request, method, values);
    const body = JSON.stringify(answer);
    response.writeHead(200, {
      "content-type": "application/json; charset=utf-8",
      "content-length": String(Buffer.byteLength(body)),
    });
    response.end(body);
  }

  #rotate(values: URLSearchParams): object {
    const { clientId, clientSecret } = this.#app;
    if (values.get("client_id") !== clientId) return fault("invalid_client_id");
    if (values.get("client_secret") !== clientSecret) return fault("bad_client_secret");
    if (values.get("grant_type") !== "refresh_token") return fault("invalid_grant_type");
    if (values.get("refresh_token") !== this.refreshTokens.at(-1))
      return fault("invalid_refresh_token");
    const token = `xoxe.xoxb-1-${randomUUID()}`;
    this.issued.add(token);
    const next = `xoxe-1-${randomUUID()}`;
    this.refreshTokens.push(next);
    return {
      ok: true,
      access_token: token,
      expires_in: 43_200,
      refresh_token: next,
      token_type: "bot",
      scope: "chat:write,channels:history",
      bot_user_id: "U0BOT",
      app_id: "A0APP",
      team: { id: "T0TEAM", name: "team" },
    };
  }

  #call(request: Received, method: string, values: URLSearchParams): object {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    if (!this.issued.has(token)) return fault("invalid_auth");
    const channel = values.get("channel") ?? "";
    const messages = this.#messages.get(channel) ?? [];
    switch (method) {
      case "auth.test":
        return { ok: true, url: "https://team.slack.com/", team_id: "T0TEAM", user_id: "U0BOT" };
      case "chat.postMessage": {
        const thread = values.get("thread_ts");
        const blocks = values.get("blocks");
        const message: Message = {
          type: "message",
          user: "U0BOT",
          ts: `1700000000.${String(messages.length + 1).padStart(6, "0")}`,
          text: values.get("text") ?? "",
          ...(thread !== null && { thread_ts: thread }),
          ...(blocks !== null && { blocks: JSON.parse(blocks) as unknown }),
        };
        this.#messages.set(channel, [message, ...messages]);
        return { ok: true, channel, ts: message.ts, message };
      }
      case "conversations.history":
        return {
          ok: true,
          messages: messages.slice(0, Number(values.get("limit") ?? 100)),
          has_more: false,
        };
      case "reactions.add":
        return fault("message_not_found");
      default:
        return fault("unknown_method");
    }
  }
}

function fault(error: string): object {
  return { ok: false, error };
}
