/** Sends a body of any API. */
import http from "node:http";
import { type Answer, collect } from "../client.ts";

export interface Post {
  readonly port: number;
  readonly path: string;
  readonly token: string;
  /** A text is sent as it is. */
  readonly body: object | string;
}

export async function post(options: Post): Promise<Answer> {
  return posting(options).answer;
}

/** A request under way. */
export interface Posting {
  readonly answer: Promise<Answer>;
  /** Disconnects abruptly. */
  leave(): void;
}

export function posting({ port, path, token, body }: Post): Posting {
  const payload = typeof body === "string" ? body : JSON.stringify(body);
  const request = http.request({
    host: "127.0.0.1",
    port,
    path,
    method: "POST",
    agent: false,
    headers: {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(payload),
      authorization: `Bearer ${token}`,
    },
  });
  const response = new Promise<http.IncomingMessage>((resolve, reject) => {
    request.on("response", resolve);
    request.on("error", reject);
  });
  const answer = response.then(collect);
  // A test that disconnects does not use it.
  answer.catch(() => {});
  request.end(payload);
  return { answer, leave: () => request.destroy() };
}
