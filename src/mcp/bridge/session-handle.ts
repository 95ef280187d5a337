/** How requests reach a session with an upstream, in this process or in another one. */
import type { RoutedRequest } from "./message-router.ts";
import type { ReadSink } from "./message-sink.ts";

export type Attachment =
  | {
      readonly what: "post";
      /** None for a frame that only needs to know the endpoint. */
      readonly requests: readonly RoutedRequest[];
    }
  | { readonly what: "stream" };

export type Attached =
  /** `endpoint`: path and query to which frames are sent. */
  | { readonly kind: "attached"; readonly endpoint: string }
  /** No process holds such a session. */
  | { readonly kind: "unknown" }
  /** A stream is open already, or a request has the id of an open one. */
  | { readonly kind: "conflict" }
  /** The process that holds it cannot be reached. */
  | { readonly kind: "unavailable" };

export interface SessionHandle {
  /** Sends what belongs to the attachment to `sink`, until it is complete or detached. */
  attach(attachment: Attachment, sink: ReadSink): Promise<Attached>;
  detach(sink: ReadSink): void;
  /** Ends the session. */
  delete(): Promise<void>;
}
