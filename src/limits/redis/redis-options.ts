/**
 * Connection settings of the store: `redis://` and `rediss://` URLs, and single settings that
 * override them.
 */
import { X509Certificate } from "node:crypto";
import { Secret } from "../../platform/secret.ts";

export interface RedisOptions {
  readonly host: string;
  readonly port: number;
  readonly username?: string;
  readonly password?: Secret;
  readonly database: number;
  /** If present: TLS, with the certificate verified. */
  readonly tls?: RedisTls;
}

export interface RedisTls {
  /** Trusted certificates, PEM; without it, the system's. */
  readonly ca?: string;
}

export interface RedisSettings {
  /** `redis[s]://[user][:password@]host[:port][/database]`. */
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly database?: number;
  /** PEM text. Enables TLS even if the URL is `redis://`. */
  readonly ca?: string;
}

const DEFAULT_PORT = 6379;

/**
 * @throws Error that states the problem and the expected form; it never contains the URL, which may
 * hold a password
 */
export function parseRedisSettings(settings: RedisSettings): RedisOptions {
  const { url } = settings;
  if (!URL.canParse(url)) throw wrong("is not a URL");
  const parsed = new URL(url);
  if (parsed.protocol !== "redis:" && parsed.protocol !== "rediss:")
    throw wrong(`begins with ${parsed.protocol}//`);
  if (parsed.hostname === "") throw wrong("has no host");
  if (parsed.search !== "" || parsed.hash !== "") throw wrong("has a query or a fragment");
  const username = settings.username ?? decoded(parsed.username);
  const password = settings.password ?? decoded(parsed.password);
  if (settings.ca !== undefined) checkCertificates(settings.ca);
  const tls = parsed.protocol === "rediss:" || settings.ca !== undefined;
  return {
    host: parsed.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: parsed.port === "" ? DEFAULT_PORT : Number(parsed.port),
    ...(username !== "" && { username }),
    ...(password !== "" && { password: new Secret(password) }),
    database: databaseOf(settings.database ?? parsed.pathname.replace(/^\//, "")),
    ...(tls && { tls: settings.ca === undefined ? {} : { ca: settings.ca } }),
  };
}

function checkCertificates(pem: string): void {
  try {
    void new X509Certificate(pem);
  } catch {
    throw new Error(
      "the file of CA certificates for Redis contains no certificate: give a PEM file, " +
        "which begins with -----BEGIN CERTIFICATE-----",
    );
  }
}

function databaseOf(value: number | string): number {
  const database = value === "" ? 0 : Number(value);
  if (!Number.isInteger(database) || database < 0)
    throw wrong("has a database that is not a whole number");
  return database;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw wrong("has a user or password with a % that is not an escape (%25 is a percent sign)");
  }
}

const wrong = (what: string): Error =>
  new Error(
    `the address of Redis ${what}: write redis://host:6379, or ` +
      "rediss://user:password@host:6379/0 for TLS",
  );
