/** Test helper: a real token server over TLS, with a certificate authority of its own. */
import { randomBytes } from "node:crypto";
import type http from "node:http";
import https from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { generateKeyPair, pem, signAuthority, signServer } from "../interception/certificate.ts";

export interface TokenServerCall {
  readonly method: string;
  /** Path and query. */
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly form: URLSearchParams;
}

export type TokenServerReply = (
  call: TokenServerCall,
  response: http.ServerResponse,
) => void | Promise<void>;

/** Answers with a token. */
export function tokenReply(token: string, more: Readonly<Record<string, unknown>> = {}) {
  return (_call: TokenServerCall, response: http.ServerResponse): void => {
    const body = { access_token: token, token_type: "Bearer", expires_in: 3600, ...more };
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
}

export class TestTokenServer {
  readonly calls: TokenServerCall[] = [];
  /** Certificates that its clients must trust, PEM. */
  readonly authorityPem: string;
  reply: TokenServerReply = tokenReply("t1");
  readonly #server: https.Server;

  private constructor(server: https.Server, authorityPem: string) {
    this.#server = server;
    this.authorityPem = authorityPem;
    server.on("request", (request: http.IncomingMessage, response) => {
      void text(request).then((body) => {
        const { method = "", url = "", headers } = request;
        const call = { method, url, headers, form: new URLSearchParams(body) };
        this.calls.push(call);
        return this.reply(call, response);
      });
    });
  }

  /** @param name that its certificate is for */
  static async start(name = "localhost"): Promise<TestTokenServer> {
    const [authority, leaf] = [generateKeyPair(), generateKeyPair()];
    const issuer = {
      commonName: "Token server of tests",
      keyId: randomBytes(20),
      privateKey: authority.privateKey,
    };
    const terms = {
      notBefore: Math.floor(Date.now() / 1_000) * 1_000 - 3_600_000,
      notAfter: Math.floor(Date.now() / 1_000) * 1_000 + 3_600_000,
      random: (bytes: number) => randomBytes(bytes),
    };
    const authorityPem = pem(
      signAuthority({ ...terms, ...issuer, publicKey: authority.publicKey, domains: [name] }),
    );
    const cert = pem(signServer({ ...terms, name, issuer, publicKey: leaf.publicKey }));
    const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" });
    const server = https.createServer({ cert, key });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new TestTokenServer(server, authorityPem);
  }

  get url(): string {
    return `https://localhost:${(this.#server.address() as AddressInfo).port}/token`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
