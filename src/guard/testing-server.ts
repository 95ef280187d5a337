/** Test helper: a real classifier over HTTP or TLS whose answers a test decides. */
import { randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import { text } from "node:stream/consumers";
import { generateKeyPair, pem, signAuthority, signServer } from "../interception/certificate.ts";
import { answerOf, type Scores } from "./protocol.ts";

export interface ClassifierRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** Number of its connection, from 1. */
  readonly connection: number;
}

export type ClassifierReply = (
  request: ClassifierRequest,
  response: http.ServerResponse,
) => void | Promise<void>;

export function scoresReply(
  scores: Scores,
  headers: http.OutgoingHttpHeaders = {},
): ClassifierReply {
  return bodyReply(JSON.stringify(answerOf(scores)), { headers });
}

export function bodyReply(
  body: string | Buffer,
  {
    status = 200,
    headers = {},
  }: { readonly status?: number; readonly headers?: http.OutgoingHttpHeaders } = {},
): ClassifierReply {
  return (_, response) => void response.writeHead(status, headers).end(body);
}

export class TestClassifier {
  readonly requests: ClassifierRequest[] = [];
  readonly sockets: Socket[] = [];
  reply: ClassifierReply = scoresReply({ benign: 1, injection: 0, jailbreak: 0 });
  /** Certificates that its clients must trust, PEM; undefined without TLS. */
  readonly authorityPem: string | undefined;
  readonly #server: Server;

  private constructor(server: http.Server, authorityPem: string | undefined) {
    this.#server = server;
    this.authorityPem = authorityPem;
    server.on(authorityPem === undefined ? "connection" : "secureConnection", (socket: Socket) => {
      this.sockets.push(socket);
    });
    server.on("request", (request: http.IncomingMessage, response: http.ServerResponse) => {
      void text(request).then((body) => {
        const { method = "", url = "", headers } = request;
        const connection = this.sockets.indexOf(request.socket) + 1;
        const call = { method, url, headers, body, connection };
        this.requests.push(call);
        return this.reply(call, response);
      });
    });
  }

  static async start(): Promise<TestClassifier> {
    return listening(new TestClassifier(http.createServer(), undefined));
  }

  /** @param name that its certificate is for */
  static async startSecure(name = "localhost"): Promise<TestClassifier> {
    const [authority, leaf] = [generateKeyPair(), generateKeyPair()];
    const issuer = {
      commonName: "Classifier of tests",
      keyId: randomBytes(20),
      privateKey: authority.privateKey,
    };
    const now = Math.floor(Date.now() / 1_000) * 1_000;
    const terms = {
      notBefore: now - 3_600_000,
      notAfter: now + 3_600_000,
      random: (bytes: number) => randomBytes(bytes),
    };
    const authorityPem = pem(
      signAuthority({ ...terms, ...issuer, publicKey: authority.publicKey, domains: [name] }),
    );
    const cert = pem(signServer({ ...terms, name, issuer, publicKey: leaf.publicKey }));
    const key = leaf.privateKey.export({ type: "pkcs8", format: "pem" });
    return listening(new TestClassifier(https.createServer({ key, cert }), authorityPem));
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return this.authorityPem === undefined
      ? `http://127.0.0.1:${this.port}/classify`
      : `https://localhost:${this.port}/classify`;
  }

  /** Connections that are open. */
  get open(): number {
    return this.sockets.filter((socket) => !socket.destroyed).length;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.listen(0, "localhost", resolve);
    });
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

async function listening(classifier: TestClassifier): Promise<TestClassifier> {
  await classifier.listen();
  return classifier;
}

/** Waits until a condition holds; the test's time limits it. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise(setImmediate);
}
