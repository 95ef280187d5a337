/** Reads server-sent events from an HTTP answer. */
import type http from "node:http";
import { StringDecoder } from "node:string_decoder";
import { createParser, type EventSourceMessage } from "eventsource-parser";

export interface EventReaderOptions {
  /** Maximum length of one event. */
  readonly maxEventBytes: number;
  readonly onEvent: (event: EventSourceMessage) => void;
  /** A new value for `Last-Event-ID`, also of events without data. */
  readonly onId?: (id: string) => void;
  /** Wait in milliseconds that the server asks for. */
  readonly onRetry?: (ms: number) => void;
  /** Called with an error of one of the callbacks; the answer is then cut. */
  readonly onDefect: (error: unknown) => void;
}

/**
 * Calls `options` for each event until the answer ends.
 * @returns a promise of the end; it is fulfilled however the answer ends
 */
export function readEvents(
  answer: http.IncomingMessage,
  { maxEventBytes, onEvent, onId, onRetry, onDefect }: EventReaderOptions,
): Promise<void> {
  const decoder = new StringDecoder("utf8");
  const parser = createParser({
    // Characters, which are at most as many as bytes.
    maxBufferSize: maxEventBytes,
    onEvent,
    onId,
    onRetry,
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") answer.destroy();
    },
  });
  return new Promise((resolve) => {
    answer.on("data", (part: Buffer) => {
      if (answer.destroyed) return;
      try {
        parser.feed(decoder.write(part));
      } catch (error) {
        onDefect(error);
        answer.destroy();
      }
    });
    answer.on("error", () => undefined);
    answer.on("close", resolve);
  });
}
