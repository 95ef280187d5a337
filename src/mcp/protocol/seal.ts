/**
 * Sealed session ids: what a client holds contains the server's session id, encrypted and bound to
 * whom it belongs to, so that any replica can serve it and nobody else can use it. Event ids carry
 * a tag of their session, so that a stream is resumed only in its own.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes of an event's tag: 128 bits, in base64url. */
const EVENT_TAG_BYTES = 16;
const EVENT_TAG_LENGTH = Math.ceil((EVENT_TAG_BYTES * 4) / 3);

interface SealKeys {
  readonly session: Buffer;
  readonly event: Buffer;
}

export class SessionSeal {
  readonly #keys: () => readonly Uint8Array[];
  #secrets: readonly Uint8Array[] = [];
  #derived: readonly SealKeys[] = [];

  /**
   * @param keys secrets that all replicas share, 32 bytes each: the first seals, all of them open,
   * so that a key can be rotated with an overlap
   */
  constructor(keys: () => readonly Uint8Array[]) {
    this.#keys = keys;
  }

  /**
   * @param owner whom the session belongs to: the access key and the server
   * @param session the server's session id
   */
  seal(owner: string, session: string): string {
    const { session: key } = this.#current();
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(owner));
    const text = [cipher.update(session, "utf8"), cipher.final()];
    return Buffer.concat([nonce, ...text, cipher.getAuthTag()]).toString("base64url");
  }

  /** Returns the server's session id; undefined if it was not sealed for this owner. */
  open(owner: string, sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, "base64url");
    if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString("base64url") !== sealed)
      return undefined;
    for (const { session: key } of this.#all()) {
      const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES))
        .setAAD(Buffer.from(owner))
        .setAuthTag(bytes.subarray(-TAG_BYTES));
      try {
        const text = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
        return Buffer.concat(text).toString("utf8");
      } catch {
        // Another key may open it.
      }
    }
    return undefined;
  }

  /** @param context the session of the event: its owner and the server's session id */
  wrapEvent(context: string, id: string): string {
    return `${tagOf(this.#current(), context, id)}${id}`;
  }

  /** Returns the server's event id; undefined if it is of another session. */
  unwrapEvent(context: string, wrapped: string): string | undefined {
    const tag = Buffer.from(wrapped.slice(0, EVENT_TAG_LENGTH));
    const id = wrapped.slice(EVENT_TAG_LENGTH);
    const isOurs = this.#all().some((keys) => {
      const expected = Buffer.from(tagOf(keys, context, id));
      return expected.length === tag.length && timingSafeEqual(expected, tag);
    });
    return isOurs ? id : undefined;
  }

  #current(): SealKeys {
    return this.#all()[0] as SealKeys;
  }

  #all(): readonly SealKeys[] {
    const secrets = this.#keys();
    if (secrets !== this.#secrets) {
      this.#secrets = secrets;
      this.#derived = secrets.map((secret) => ({
        session: derive(secret, "svc mcp session"),
        event: derive(secret, "svc mcp event"),
      }));
    }
    return this.#derived;
  }
}

function derive(secret: Uint8Array, use: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", use, 32));
}

function tagOf({ event }: SealKeys, context: string, id: string): string {
  const mac = createHmac("sha256", event)
    .update(JSON.stringify([context, id]))
    .digest();
  return mac.subarray(0, EVENT_TAG_BYTES).toString("base64url");
}
