/**
 * Serves certificates to Envoy on demand: Envoy requests a secret named like the server name of a
 * handshake (delta SDS), and receives a certificate minted for it. A name that is not bound has no
 * certificate, and its handshake fails. Certificates are renewed before they expire, as long as
 * Envoy subscribes to them.
 */
import { type GrpcStream, MESSAGE_OFFSET, type StreamListener } from "../grpc/connection.ts";
import { serveStreams, type StreamServer } from "../grpc/serve.ts";
import type { Clock } from "../../platform/clock.ts";
import { decodeSecretRequest, encodeSecretResponse, type NamedSecret } from "./wire.ts";

const INTERNAL = 13;
/** Maximum size of a request, which contains only names of secrets. */
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
  /** Interval between certificate renewal checks. */
  readonly checkMs: number;
  /** Receives a defect of ours: the stream ends, and Envoy opens a new one. */
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

  /** Resends certificates that are due, or all of them after the authority changed. */
  refresh(all: boolean): void {
    for (const stream of this.#streams) stream.refresh(all);
  }

  close(): void {
    this.#cancel();
  }

  #check(): void {
    this.#cancel = this.#options.clock.after(this.#options.checkMs, () => {
      // Scheduled first, so that an error in this check does not stop further checks.
      this.#check();
      this.refresh(false);
    });
  }
}

class SecretStream {
  readonly #stream: GrpcStream;
  readonly #options: SecretServiceOptions;
  /** Renewal time of the certificate last sent for each name. */
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
