/**
 * Addresses of real endpoints, from DNS servers alone. The hosts file of a pod says that bound
 * hosts are 127.0.0.1: who asked it would call itself for ever.
 */
import { Resolver } from "node:dns/promises";
import type { Clock } from "../platform/clock.ts";

export interface ResolverOptions {
  readonly clock: Clock;
  /** `address` or `address:port`; undefined: those of /etc/resolv.conf. */
  readonly servers: readonly string[] | undefined;
  readonly port: number;
}

interface Known {
  readonly addresses: readonly string[];
  readonly until: number;
}

/** An answer is kept as long as it says, but no shorter and no longer than this. */
const LEAST_MS = 5_000;
const MOST_MS = 300_000;
/** An old answer is better than none while DNS is away. */
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

  /** `address:port`, the next one of several; undefined where there is none. */
  async resolve(host: string): Promise<string | undefined> {
    const addresses = await this.addressesOf(host);
    const address = addresses[this.#turn++ % Math.max(1, addresses.length)];
    if (address === undefined) return undefined;
    const { port } = this.#options;
    return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  }

  /** All that DNS says; empty for none. */
  async addressesOf(host: string): Promise<readonly string[]> {
    const now = this.#options.clock.now();
    const known = this.#known.get(host);
    const fresh = known !== undefined && now < known.until ? known : await this.#ask(host);
    const usable =
      fresh ?? (known !== undefined && now < known.until + STALE_MS ? known : undefined);
    return usable?.addresses ?? [];
  }

  /** Those who ask for one host at once share one question. */
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

  /** IPv4 first: more networks have it. */
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
