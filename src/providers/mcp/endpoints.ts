/**
 * Paths to which messages of the older transport are sent: each stream of a server names one in its
 * first event, and messages may be sent there while the stream is open.
 * https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse
 */

/** Maximum number of open streams of a binding whose paths are known. */
const MAX_ENDPOINTS = 1_000;
const MAX_LENGTH = 8_192;

export class MessageEndpoints {
  readonly #origin: string;
  readonly #open = new Map<string, number>();

  /** @param host of the server */
  constructor(host: string) {
    this.#origin = `https://${host}`;
  }

  /**
   * Allows the path of an `endpoint` event, if it is of the same origin.
   * @returns a function that ends that
   */
  open(data: string): () => void {
    const url = data.length > MAX_LENGTH ? null : URL.parse(data, this.#origin);
    const isNew = url !== null && !this.#open.has(url.pathname + url.search);
    if (url === null || url.origin !== this.#origin || url.hash !== "") return () => undefined;
    if (isNew && this.#open.size >= MAX_ENDPOINTS) return () => undefined;
    const target = `${url.pathname}${url.search}`;
    this.#open.set(target, (this.#open.get(target) ?? 0) + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      const left = (this.#open.get(target) ?? 1) - 1;
      if (left === 0) this.#open.delete(target);
      else this.#open.set(target, left);
    };
  }

  /** @param target path with its query, as on the wire */
  has(target: string): boolean {
    return this.#open.has(target);
  }
}
