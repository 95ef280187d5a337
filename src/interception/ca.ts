/**
 * The sidecar's certificate authority: made when the sidecar starts, kept in its memory alone. It
 * can sign for nothing but the bound names, which the certificate itself says (critical name
 * constraints), so that even a stolen key is of no use against anything that the sidecar does not
 * answer for anyway.
 *
 * Rotation: clients read the certificates when they start, and many never again. A new authority is
 * therefore made and published at two thirds of the old one's life, but signs only from when the
 * old one's end comes near: a client that started before the new one was published is served, by
 * the old one, for the last third.
 */
import type { KeyObject } from "node:crypto";
import type { Clock } from "../platform/clock.ts";
import { generateKeyPair, pem, signAuthority, signServer } from "./certificate.ts";
import { boundDomains, type BoundNames, compileBoundNames } from "./server-name.ts";

export interface CertificateAuthorityOptions {
  readonly clock: Clock;
  readonly random: (bytes: number) => Uint8Array;
  /**
   * For good: a changed list of bound Providers is a new sidecar, and a changed policy changes no
   * name.
   */
  readonly names: BoundNames;
  /** Lives of certificates, in milliseconds. @defaultValue {@link DEFAULT_VALIDITY} */
  readonly validity?: Validity;
}

export interface Validity {
  readonly authorityMs: number;
  readonly leafMs: number;
  /** How far before its making a certificate is valid already, for a clock that is set back. */
  readonly slackMs: number;
}

export interface MintedCertificate {
  /** The leaf; its issuer is in the trust that clients have. */
  readonly certificateChainPem: string;
  readonly privateKeyPem: string;
  /** Milliseconds since the epoch. */
  readonly notAfter: number;
  /**
   * From when on `mint` gives another one: who holds this one asks again then. Milliseconds since
   * the epoch.
   */
  readonly renewAt: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/**
 * A year for the authority: a client that runs for longer than four months without a restart is
 * rare.
 */
export const DEFAULT_VALIDITY: Validity = {
  authorityMs: 365 * DAY_MS,
  leafMs: DAY_MS,
  slackMs: DAY_MS,
};

/** How often the clock is looked at: setTimeout knows no more than 24 days. */
const CHECK_MS = HOUR_MS;
/** Patterns have names without end. The least recently asked for goes first. */
const MAX_LEAVES = 1_000;

interface Authority {
  readonly commonName: string;
  readonly keyId: Uint8Array;
  readonly privateKey: KeyObject;
  readonly certificatePem: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** When its successor is made. */
  readonly rotateAt: number;
}

interface Leaf extends MintedCertificate {
  readonly issuer: Authority;
  readonly notBefore: number;
}

export class CertificateAuthority {
  readonly #clock: Clock;
  readonly #random: (bytes: number) => Uint8Array;
  readonly #validity: Validity;
  readonly #boundName: (serverName: string) => string | undefined;
  readonly #domains: readonly string[];
  readonly #leaves = new Map<string, Leaf>();
  readonly #listeners: (() => void)[] = [];
  /** Oldest first; never empty. */
  #authorities: readonly Authority[];
  #cancelCheck: () => void = () => undefined;

  /** @throws RangeError for names that are none */
  constructor({ clock, random, names, validity = DEFAULT_VALIDITY }: CertificateAuthorityOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#validity = validity;
    this.#boundName = compileBoundNames(names);
    const domains = boundDomains(names);
    // Without a permitted name there would be no constraint on names. This one is nobody's: RFC
    // 6761, section 6.4.
    this.#domains = domains.length === 0 ? ["invalid"] : domains;
    this.#authorities = [this.#createAuthority()];
    this.#check();
  }

  /**
   * What clients must trust: the current authority's certificate and all others that still count.
   * PEM.
   */
  get certificatesPem(): string {
    return this.#authorities.map(({ certificatePem }) => certificatePem).join("");
  }

  /** Calls back after {@link certificatesPem} changed. */
  onChange(callback: () => void): void {
    this.#listeners.push(callback);
  }

  /** @param serverName as the client sent it @returns undefined for a name that is not bound */
  mint(serverName: string): MintedCertificate | undefined {
    const name = this.#boundName(serverName);
    if (name === undefined) return undefined;
    const now = this.#clock.now();
    this.#rotate(now);
    const issuer = this.#issuerAt(now);
    const known = this.#leaves.get(name);
    this.#leaves.delete(name);
    const good =
      known !== undefined &&
      known.issuer === issuer &&
      known.notBefore <= now &&
      now < known.renewAt;
    const leaf = good ? known : this.#createLeaf(name, issuer, now);
    this.#leaves.set(name, leaf);
    if (this.#leaves.size > MAX_LEAVES)
      this.#leaves.delete(this.#leaves.keys().next().value as string);
    const { certificateChainPem, privateKeyPem, notAfter, renewAt } = leaf;
    return { certificateChainPem, privateKeyPem, notAfter, renewAt };
  }

  /** No more rotation on time. */
  close(): void {
    this.#cancelCheck();
  }

  #check(): void {
    // Armed first: an error in this check must not be the last check.
    const delay = Math.min(CHECK_MS, this.#validity.authorityMs / 10);
    this.#cancelCheck = this.#clock.after(delay, () => this.#check());
    this.#rotate(this.#clock.now());
  }

  #rotate(now: number): void {
    const newest = this.#authorities.at(-1) as Authority;
    // A clock that was set back by more than the slack has made all certificates ones of the
    // future.
    const counted = this.#authorities.filter(
      ({ notBefore, notAfter }) => notBefore <= now && now < notAfter,
    );
    const due = now >= newest.rotateAt || !counted.includes(newest);
    if (!due && counted.length === this.#authorities.length) return;
    this.#authorities = due ? [...counted, this.#createAuthority()] : counted;
    for (const listener of this.#listeners) listener();
  }

  /** The oldest that outlives a leaf made now. */
  #issuerAt(now: number): Authority {
    return (
      this.#authorities.find(({ notAfter }) => notAfter >= now + this.#validity.leafMs) ??
      (this.#authorities.at(-1) as Authority)
    );
  }

  #createAuthority(): Authority {
    const { authorityMs, slackMs } = this.#validity;
    const now = wholeSeconds(this.#clock.now());
    const { publicKey, privateKey } = generateKeyPair();
    const keyId = this.#random(20);
    // Its own name for each: two authorities of one name would be one to those who look an issuer
    // up by name.
    const commonName = `Svc sidecar CA ${Buffer.from(keyId).toString("hex").slice(0, 16)}`;
    const [notBefore, notAfter] = [now - slackMs, now + authorityMs];
    const der = signAuthority({
      publicKey,
      privateKey,
      keyId,
      commonName,
      domains: this.#domains,
      notBefore,
      notAfter,
      random: this.#random,
    });
    return {
      commonName,
      keyId,
      privateKey,
      certificatePem: pem(der),
      notBefore,
      notAfter,
      rotateAt: now + (authorityMs * 2) / 3,
    };
  }

  #createLeaf(name: string, issuer: Authority, now: number): Leaf {
    const { leafMs, slackMs } = this.#validity;
    const start = wholeSeconds(now);
    const { publicKey, privateKey } = generateKeyPair();
    const notBefore = Math.max(start - slackMs, issuer.notBefore);
    const notAfter = Math.min(start + leafMs, issuer.notAfter);
    const der = signServer({ publicKey, name, issuer, notBefore, notAfter, random: this.#random });
    return {
      issuer,
      notBefore,
      certificateChainPem: pem(der),
      privateKeyPem: privateKey.export({ type: "pkcs8", format: "pem" }) as string,
      notAfter,
      renewAt: start + ((notAfter - start) * 2) / 3,
    };
  }
}

/** X.509 knows no milliseconds. */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
