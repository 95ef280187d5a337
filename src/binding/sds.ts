/**
 * Certificates for Envoy, on demand: it asks for a secret named as the server name of a handshake (delta SDS), and is
 * given a certificate minted for it. A name that is not bound has none: the handshake fails. Certificates are renewed
 * before they expire, for whoever still asks.
 */
import type * as grpc from "@grpc/grpc-js";
import type { CertificateAuthority } from "../interception/ca.ts";
import type { Clock } from "../platform/clock.ts";
import { bytesMethod } from "../xds/bytes-service.ts";
import { decodeSecretRequest, encodeSecretResponse, type NamedSecret } from "./sds-wire.ts";

type DeltaCall = grpc.ServerDuplexStream<Buffer, Buffer>;

export interface SecretServiceOptions {
  readonly authority: CertificateAuthority;
  readonly clock: Clock;
  /** How often it is looked whether a certificate wants renewing. */
  readonly checkMs: number;
}

export class SecretService {
  readonly #options: SecretServiceOptions;
  readonly #streams = new Set<SecretStream>();
  #cancel: () => void = () => undefined;

  constructor(options: SecretServiceOptions) {
    this.#options = options;
    this.#check();
  }

  register(server: grpc.Server): void {
    server.addService(
      { DeltaSecrets: bytesMethod("/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets", true) },
      {
        DeltaSecrets: (call: DeltaCall) => {
          const stream = new SecretStream(call, this.#options);
          this.#streams.add(stream);
          const gone = (): void => void this.#streams.delete(stream);
          call.on("cancelled", gone);
          call.on("error", gone);
          call.on("end", () => {
            gone();
            call.end();
          });
        },
      },
    );
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
      this.refresh(false);
      this.#check();
    });
  }
}

class SecretStream {
  readonly #call: DeltaCall;
  readonly #options: SecretServiceOptions;
  /** From when on there is another certificate, by the name that was sent one. */
  readonly #renewAt = new Map<string, number>();
  #nonce = 0;

  constructor(call: DeltaCall, options: SecretServiceOptions) {
    this.#call = call;
    this.#options = options;
    call.on("data", (bytes: Buffer) => {
      const { subscribe, unsubscribe } = decodeSecretRequest(bytes);
      for (const name of unsubscribe) this.#renewAt.delete(name);
      if (subscribe.length > 0) this.#send(subscribe);
    });
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
      secrets.push({ name, version: String(minted.notAfter), certificateChainPem: minted.certificateChainPem, privateKeyPem: minted.privateKeyPem });
    }
    this.#call.write(encodeSecretResponse({ nonce: String(++this.#nonce), secrets, removed }));
  }
}
