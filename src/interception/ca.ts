/**
 * The sidecar's certificate authority, which is created when the sidecar starts and exists only in
 * its memory. Critical name constraints in its certificate limit it to the bound names, so that
 * even a stolen key is useless for any name that the sidecar does not already serve.
 *
 * Rotation: clients read the certificates when they start, and many never again. A new authority is
 * therefore created and published at two thirds of the old one's life, but signs only when the old
 * one's end approaches: for the last third, the old authority still serves clients that started
 * before the new one was published.
 */
import type { KeyObject } from "node:crypto";
import type { Clock } from "../platform/clock.ts";
import { generateKeyPair, pem, signAuthority, signServer } from "./certificate.ts";
import { boundDomains, type BoundNames, compileBoundNames } from "./server-name.ts";

export interface CertificateAuthorityOptions {
  readonly clock: Clock;
  readonly random: (bytes: number) => Uint8Array;
  /**
   * Fixed: a changed list of bound Providers needs a new sidecar, and a changed policy changes no
   * name.
   */
  readonly names: BoundNames;
  /** Lifetimes of certificates, in milliseconds. @defaultValue {@link DEFAULT_VALIDITY} */
  readonly validity?: Validity;
}

export interface Validity {
  readonly authorityMs: number;
  readonly leafMs: number;
  /**
   * Time by which a certificate's validity begins before its creation, for clocks that are set
   * back.
   */
  readonly slackMs: number;
}

export interface MintedCertificate {
  /** The leaf certificate; clients already trust its issuer. */
  readonly certificateChainPem: string;
  readonly privateKeyPem: string;
  /** Milliseconds since the epoch. */
  readonly notAfter: number;
  /**
   * Time from which `mint` returns another certificate, so that holders of this one should ask
   * again. Milliseconds since the epoch.
   */
  readonly renewAt: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A year for the authority: clients rarely run for longer than four months without a restart. */
export const DEFAULT_VALIDITY: Validity = {
  authorityMs: 365 * DAY_MS,
  leafMs: DAY_MS,
  slackMs: DAY_MS,
};

/** Interval between checks of the clock: setTimeout supports at most 24 days. */
const CHECK_MS = HOUR_MS;
/**
 * Bound of the cache, because patterns match any number of names. The least recently used one is
 * removed.
 */
const MAX_LEAVES = 1_000;

interface Authority {
  readonly commonName: string;
  readonly keyId: Uint8Array;
  readonly privateKey: KeyObject;
  readonly certificatePem: string;
  readonly notBefore: number;
  readonly notAfter: number;
  /** Time at which the successor is created. */
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

  /** @throws RangeError for invalid names */
  constructor({ clock, random, names, validity = DEFAULT_VALIDITY }: CertificateAuthorityOptions) {
    this.#clock = clock;
    this.#random = random;
    this.#validity = validity;
    this.#boundName = compileBoundNames(names);
    const domains = boundDomains(names);
    // Without a permitted name there would be no constraint on names. This one belongs to nobody:
    // RFC 6761, section 6.4.
    this.#domains = domains.length === 0 ? ["invalid"] : domains;
    this.#authorities = [this.#createAuthority()];
    this.#check();
  }

  /**
   * Certificates that clients must trust: that of the current authority and of all others that are
   * still valid. PEM.
   */
  get certificatesPem(): string {
    return this.#authorities.map(({ certificatePem }) => certificatePem).join("");
  }

  /** Calls `callback` after {@link certificatesPem} changed. */
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

  /** Stops the rotation. */
  close(): void {
    this.#cancelCheck();
  }

  #check(): void {
    // Scheduled first, so that an error in this check does not stop further checks.
    const delay = Math.min(CHECK_MS, this.#validity.authorityMs / 10);
    this.#cancelCheck = this.#clock.after(delay, () => this.#check());
    this.#rotate(this.#clock.now());
  }

  #rotate(now: number): void {
    const newest = this.#authorities.at(-1) as Authority;
    // If the clock was set back by more than the slack, no certificate is valid yet.
    const counted = this.#authorities.filter(
      ({ notBefore, notAfter }) => notBefore <= now && now < notAfter,
    );
    const due = now >= newest.rotateAt || !counted.includes(newest);
    if (!due && counted.length === this.#authorities.length) return;
    this.#authorities = due ? [...counted, this.#createAuthority()] : counted;
    for (const listener of this.#listeners) listener();
  }

  /** Returns the oldest authority that outlives a leaf created now. */
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
    // Each authority has a unique name, because some clients look up an issuer by name only.
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

/** X.509 has no milliseconds. */
function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
