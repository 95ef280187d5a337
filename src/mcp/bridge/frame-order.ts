/**
 * The order in which the frames of a client are sent to the gateway. The old transport has one
 * stream of frames; Streamable HTTP has requests of their own, which may overtake each other.
 *
 * - All frames wait until an `initialize` before them is answered.
 * - Frames without requests (notifications, answers to the server) are sent one after another, each
 *   when the one before is answered. So they never overtake each other, and
 *   `notifications/cancelled` never overtakes its request: it waits until the requests before it
 *   have been handed over, but not for their answers.
 * - Requests wait for the frames without requests before them, not for each other. So a request
 *   after `notifications/initialized` never overtakes it.
 */
export interface OrderedFrame {
  readonly kind: "initialize" | "request" | "one-way";
  /**
   * Sends the frame. It never rejects.
   * @param sent to be called once when it has been handed over
   * @returns a promise that is fulfilled when the frame is answered
   */
  send(sent: () => void): Promise<void>;
}

export class FrameOrder {
  #initialized: Promise<unknown> = Promise.resolve();
  #oneWay: Promise<unknown> = Promise.resolve();
  #sent: Promise<unknown> = Promise.resolve();

  /** @returns a promise that is fulfilled when the frame is answered */
  add(frame: OrderedFrame): Promise<void> {
    const before = [this.#initialized, this.#oneWay];
    if (frame.kind === "one-way") before.push(this.#sent);
    const sent = Promise.withResolvers<void>();
    const answered = Promise.all(before).then(() => frame.send(sent.resolve));
    void answered.then(sent.resolve);
    if (frame.kind === "initialize") this.#initialized = answered;
    if (frame.kind === "one-way") this.#oneWay = answered;
    else this.#sent = Promise.all([this.#sent, sent.promise]);
    return answered;
  }
}
