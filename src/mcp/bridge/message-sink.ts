/** Where the messages of a server of the old transport go. */
import type { Readable } from "node:stream";
import type { RpcId } from "./frame.ts";

export interface SinkMessage {
  readonly text: string;
  /** Request that it answers. */
  readonly answers?: RpcId;
  /** It is an error. */
  readonly failed?: boolean;
}

/** MessageSink is the answer to one HTTP request of the client, here or in another process. */
export interface MessageSink {
  deliver(message: SinkMessage): void;
  /** Pauses a source of messages while too many of them wait here. */
  holdBack(source: Readable): void;
  /** Nothing more will come. @param problem what its open requests are answered with */
  end(problem: string): void;
  /** Whether there still is somebody who receives. */
  isAlive(): Promise<boolean>;
}

/** A sink of this process, which can tell when it has been read. */
export interface ReadSink extends MessageSink {
  /** Resolves when what was delivered has been read, or never will be. */
  unblocked(): Promise<void>;
}
