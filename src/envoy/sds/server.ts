/**
 * Certificates for Envoy, on demand: it asks for a secret named as the server name of a handshake
 * (delta SDS), and is given a certificate minted for it. A name that is not bound has none: the
 * handshake fails. Certificates are renewed before they expire, for whoever still asks.
 */
import { type GrpcStream, MESSAGE_OFFSET, type StreamListener } from "../grpc/connection.ts";
import { serveStreams, type StreamServer } from "../grpc/serve.ts";
import type { Clock } from "../../platform/clock.ts";
import { decodeSecretRequest, encodeSecretResponse, type NamedSecret } from "./wire.ts";

const INTERNAL = 13;
/** A question names secrets. */
const LARGEST_QUESTION_BYTES = 1024 * 1024;

/** A certificate with its key, PEM. Times are milliseconds since the epoch. */
export interface ServedCertificate {
  readonly certificateChainPem: string;
  readonly privateKeyPem: string;
  readonly notAfter: number;
  /** When the source gives another one. */
  readonly renewAt: number;
}

/** CertificateSource gives the certificate of a server name, or undefined where it has none. */
export interface CertificateSource {
  mint(serverName: string): ServedCertificate | undefined;
}

export interface SecretServiceOptions {
  readonly authority: CertificateSource;
  readonly clock: Clock;
  /** How often it is looked whether a certificate wants renewing. */
  readonly checkMs: number;
  /** A defect of ours: the stream ends, and Envoy asks on a new one. */
  readonly onDefect: (error: unknown) => void;
}

export class SecretService {
  readonly #options: SecretServiceOptions;
  readonly #streams = new Set<SecretStream>();
  #cancel: () => void = () => undefined;

  constructor(options: SecretServiceOptions) {
    this.#options = options;
    this.#check();
  }

  /** @param path of the Unix socket */
  serve(path: string): Promise<StreamServer> {
    const onStream = (grpc: GrpcStream): StreamListener => {
      const stream = new SecretStream(grpc, this.#options);
      this.#streams.add(stream);
      const gone = (): void => void this.#streams.delete(stream);
      const message = (bytes: Buffer): void => {
        try {
          stream.ask(bytes);
        } catch (error) {
          this.#options.onDefect(error);
          grpc.fail(INTERNAL);
        }
      };
      return { message, end: gone, reset: gone };
    };
    const { onDefect } = this.#options;
    return serveStreams({ path, maxMessageBytes: LARGEST_QUESTION_BYTES, onDefect, onStream });
  }

  /** Sends again what is due, or all: after the authority changed. */
  refresh(all: boolean): void {
    for (const stream of this.#streams) stream.refresh(all);
  }

  close(): void {
    this.#cancel();
  }

  #check(): void {
    this.#cancel = this.#options.clock.after(this.#options.checkMs, () => {
      // Armed first: an error in this check must not be the last check.
      this.#check();
      this.refresh(false);
    });
  }
}

class SecretStream {
  readonly #stream: GrpcStream;
  readonly #options: SecretServiceOptions;
  /** From when on there is another certificate, by the name that was sent one. */
  readonly #renewAt = new Map<string, number>();
  #nonce = 0;

  constructor(stream: GrpcStream, options: SecretServiceOptions) {
    this.#stream = stream;
    this.#options = options;
  }

  ask(bytes: Buffer): void {
    const { subscribe, unsubscribe } = decodeSecretRequest(bytes);
    for (const name of unsubscribe) this.#renewAt.delete(name);
    if (subscribe.length > 0) this.#send(subscribe);
  }

  refresh(all: boolean): void {
    const now = this.#options.clock.now();
    const due = [...this.#renewAt].filter(([, renewAt]) => all || renewAt <= now);
    if (due.length > 0) this.#send(due.map(([name]) => name));
  }

  #send(names: readonly string[]): void {
    const secrets: NamedSecret[] = [];
    const removed: string[] = [];
    for (const name of names) {
      const minted = this.#options.authority.mint(name);
      if (minted === undefined) {
        removed.push(name);
        continue;
      }
      this.#renewAt.set(name, minted.renewAt);
      secrets.push({
        name,
        version: String(minted.notAfter),
        certificateChainPem: minted.certificateChainPem,
        privateKeyPem: minted.privateKeyPem,
      });
    }
    const response = encodeSecretResponse({ nonce: String(++this.#nonce), secrets, removed });
    this.#stream.send(Buffer.concat([Buffer.alloc(MESSAGE_OFFSET), response]));
  }
}
