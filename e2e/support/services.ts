/**
 * The outside as sidecars see it: a DNS server with names, and TLS servers for them. Both listen on
 * a loopback address, on free ports or on given sockets; the DNS answer is that address.
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { writeFileSync } from "node:fs";
import type http from "node:http";
import http2 from "node:http2";
import type net from "node:net";
import packet from "dns-packet";
import tls from "node:tls";
import { CertificateAuthority } from "../../src/interception/ca.ts";
import { systemClock } from "../../src/platform/clock.ts";

export interface Received {
  readonly host: string;
  readonly method: string;
  /** As it came. */
  readonly url: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly httpVersion: string;
}

export type ServiceHandler = (
  request: Received,
  response: http2.Http2ServerResponse,
) => void | Promise<void>;

/** All services of a test, under one certificate authority. */
export class Outside {
  readonly requests: Received[] = [];
  readonly #authority: CertificateAuthority;
  readonly #names = new Map<string, string>();
  readonly #dns: dgram.Socket;
  readonly #server: http2.Http2SecureServer;
  /** Names that were queried. */
  readonly asked: string[] = [];
  handler: ServiceHandler = (_request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"ok":true}');
  };
  /** Streams of requests whose body is not collected, by path. */
  streaming:
    | ((request: http2.Http2ServerRequest, response: http2.Http2ServerResponse) => void)
    | undefined;

  private constructor(hosts: readonly string[], dns: dgram.Socket) {
    this.#authority = new CertificateAuthority({
      clock: systemClock,
      random: (bytes) => randomBytes(bytes),
      names: {
        hosts: hosts.filter((host) => !host.startsWith("*.")),
        patterns: hosts.filter((host) => host.startsWith("*.")),
      },
    });
    this.#dns = dns;
    this.#dns.on("message", (message, peer) => this.#answer(message, peer));
    this.#server = http2.createSecureServer({
      allowHTTP1: true,
      SNICallback: (name, done) => {
        const minted = this.#authority.mint(name);
        if (minted === undefined) return done(new Error(`no certificate for ${name}`));
        done(
          null,
          tls.createSecureContext({ cert: minted.certificateChainPem, key: minted.privateKeyPem }),
        );
      },
    });
    this.#server.on("request", (request, response) => {
      if (this.streaming !== undefined) return this.streaming(request, response);
      void this.#serve(request, response);
    });
    this.#server.on("sessionError", () => {});
  }

  /** @param sockets that listen already, at the address */
  static async start(
    hosts: readonly string[],
    address = "127.0.0.1",
    sockets?: { readonly dns: dgram.Socket; readonly tls: net.Server },
  ): Promise<Outside> {
    const outside = new Outside(hosts, sockets?.dns ?? dgram.createSocket("udp4"));
    if (sockets === undefined)
      await new Promise<void>((resolve) => outside.#dns.bind(0, "127.0.0.1", resolve));
    await new Promise<void>((resolve) => {
      if (sockets === undefined) outside.#server.listen(0, address, resolve);
      else outside.#server.listen(sockets.tls, resolve);
    });
    for (const host of hosts) outside.#names.set(host, address);
    return outside;
  }

  get dnsServer(): string {
    return `127.0.0.1:${this.#dns.address().port}`;
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  writeCa(file: string): void {
    writeFileSync(file, this.#authority.certificatesPem);
  }

  get server(): http2.Http2SecureServer {
    return this.#server;
  }

  async #serve(
    request: http2.Http2ServerRequest,
    response: http2.Http2ServerResponse,
  ): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part);
    const received: Received = {
      host: request.headers[":authority"] ?? request.headers["host"] ?? "",
      method: request.method,
      url: request.url,
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      body: Buffer.concat(parts),
      httpVersion: request.httpVersion,
    };
    this.requests.push(received);
    await this.handler(received, response);
  }

  #answer(message: Buffer, peer: dgram.RemoteInfo): void {
    const query = packet.decode(message);
    const question = query.questions?.[0];
    if (question === undefined) return;
    this.asked.push(question.name);
    const address = this.#addressOf(question.name.toLowerCase());
    const found = question.type === "A" && address !== undefined;
    this.#dns.send(
      packet.encode({
        type: "response",
        id: query.id ?? 0,
        flags:
          packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | (address === undefined ? 3 : 0),
        questions: query.questions ?? [],
        answers: found ? [{ type: "A", name: question.name, ttl: 60, data: address }] : [],
      }),
      peer.port,
      peer.address,
    );
  }

  #addressOf(name: string): string | undefined {
    const exact = this.#names.get(name);
    if (exact !== undefined) return exact;
    const pattern = [...this.#names.keys()].find(
      (each) => each.startsWith("*.") && name.endsWith(each.slice(1)),
    );
    return pattern === undefined ? undefined : this.#names.get(pattern);
  }

  async close(): Promise<void> {
    this.#authority.close();
    this.#dns.close();
    this.#server.close();
  }
}
