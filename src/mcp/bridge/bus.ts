/**
 * SessionBus connects the processes of the gateway: a session lives in the process that holds its
 * stream, and a load balancer may send its next request to another one.
 *
 * Messages to one name arrive in the order in which they were sent, if the sender waits for the
 * answer of each.
 */

/** @returns the answer to the sender */
export type BusHandler = (message: string) => string | Promise<string>;

export interface BusSubscription {
  close(): void;
}

export interface SessionBus {
  /**
   * Receives the messages to a name. One process at a time holds a name; names are unguessable.
   * While the bus is out of service the promise is fulfilled too, and messages arrive later.
   */
  open(name: string, handler: BusHandler): Promise<BusSubscription>;
  /**
   * @returns the answer of the process that holds the name; undefined if none does
   * @throws BusUnavailable if that cannot be known, or no answer came in time
   */
  send(name: string, message: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/** The bus is out of service, or the other process does not answer. */
export class BusUnavailable extends Error {
  constructor(reason: string) {
    super(`the bus of MCP sessions is unavailable: ${reason}`);
    this.name = "BusUnavailable";
  }
}

/** MemoryBus connects what shares it: the parts of one process, and the "processes" of a test. */
export class MemoryBus implements SessionBus {
  readonly #handlers = new Map<string, BusHandler>();

  open(name: string, handler: BusHandler): Promise<BusSubscription> {
    this.#handlers.set(name, handler);
    return Promise.resolve({
      close: () => {
        if (this.#handlers.get(name) === handler) this.#handlers.delete(name);
      },
    });
  }

  async send(name: string, message: string): Promise<string | undefined> {
    return this.#handlers.get(name)?.(message);
  }

  close(): Promise<void> {
    this.#handlers.clear();
    return Promise.resolve();
  }
}
