/** Which requests of a frame are answered. */
import { idKey, type RpcId, type RpcMessage } from "./frame.ts";

export class FrameAnswer {
  readonly #open: Map<string, RpcId>;
  readonly #settled = Promise.withResolvers<void>();

  constructor(requests: readonly RpcId[]) {
    this.#open = new Map(requests.map((id) => [idKey(id), id]));
  }

  /** Fulfilled when every request is answered, or {@link settle} was called. */
  get settled(): Promise<void> {
    return this.#settled.promise;
  }

  /** Requests without an answer. */
  get open(): readonly RpcId[] {
    return [...this.#open.values()];
  }

  has(id: RpcId): boolean {
    return this.#open.has(idKey(id));
  }

  /** Notes a message that is for the client. */
  note(message: RpcMessage): void {
    if (message.kind === "response" && message.id !== undefined) this.settleOne(message.id);
  }

  /** A request is answered. */
  settleOne(id: RpcId): void {
    if (this.#open.delete(idKey(id)) && this.#open.size === 0) this.#settled.resolve();
  }

  /** Nothing more will come. @returns the requests without an answer */
  settle(): readonly RpcId[] {
    const open = this.open;
    this.#open.clear();
    this.#settled.resolve();
    return open;
  }
}
