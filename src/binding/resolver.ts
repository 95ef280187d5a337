/**
 * Resolves addresses of real endpoints through DNS servers only. The hosts file of a pod maps bound
 * hosts to 127.0.0.1, so a sidecar that used it would call itself.
 */
import { Resolver } from "node:dns/promises";
import type { Clock } from "../platform/clock.ts";

export interface ResolverOptions {
  readonly clock: Clock;
  /** `address` or `address:port`; undefined for those of /etc/resolv.conf. */
  readonly servers: readonly string[] | undefined;
  readonly port: number;
}

interface Known {
  readonly addresses: readonly string[];
  readonly until: number;
}

/** Bounds for the time that an answer is cached, which is otherwise its TTL. */
const LEAST_MS = 5_000;
const MOST_MS = 300_000;
/** Time for which an expired answer is used while DNS is unavailable. */
const STALE_MS = 3_600_000;
const TIMEOUT_MS = 3_000;
const TRIES = 2;

export class EndpointResolver {
  readonly #options: ResolverOptions;
  readonly #resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  readonly #known = new Map<string, Known>();
  readonly #asking = new Map<string, Promise<Known | undefined>>();
  #turn = 0;

  constructor(options: ResolverOptions) {
    this.#options = options;
    if (options.servers !== undefined) this.#resolver.setServers([...options.servers]);
  }

  /** Returns `address:port`, in rotation if there are several; undefined if there is none. */
  async resolve(host: string): Promise<string | undefined> {
    const addresses = await this.addressesOf(host);
    const address = addresses[this.#turn++ % Math.max(1, addresses.length)];
    if (address === undefined) return undefined;
    const { port } = this.#options;
    return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  }

  /** Returns all addresses that DNS has; empty if there are none. */
  async addressesOf(host: string): Promise<readonly string[]> {
    const now = this.#options.clock.now();
    const known = this.#known.get(host);
    const fresh = known !== undefined && now < known.until ? known : await this.#ask(host);
    const usable =
      fresh ?? (known !== undefined && now < known.until + STALE_MS ? known : undefined);
    return usable?.addresses ?? [];
  }

  /** Concurrent requests for one host share one query. */
  #ask(host: string): Promise<Known | undefined> {
    const under = this.#asking.get(host);
    if (under !== undefined) return under;
    const asking = this.#look(host).finally(() => this.#asking.delete(host));
    this.#asking.set(host, asking);
    return asking;
  }

  async #look(host: string): Promise<Known | undefined> {
    const found = await this.#records(host);
    if (found === undefined) return undefined;
    const seconds = Math.min(...found.map(({ ttl }) => ttl));
    const known = {
      addresses: found.map(({ address }) => address),
      until: this.#options.clock.now() + Math.min(MOST_MS, Math.max(LEAST_MS, seconds * 1_000)),
    };
    this.#known.set(host, known);
    return known;
  }

  /** IPv4 is tried first, because more networks support it. */
  async #records(
    host: string,
  ): Promise<readonly { readonly address: string; readonly ttl: number }[] | undefined> {
    for (const ask of [
      () => this.#resolver.resolve4(host, { ttl: true }),
      () => this.#resolver.resolve6(host, { ttl: true }),
    ]) {
      const found = await ask().catch(() => []);
      if (found.length > 0) return found;
    }
    return undefined;
  }
}
