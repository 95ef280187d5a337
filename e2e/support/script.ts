/** Answers of a fake upstream, independent of a vendor's shape. */
import type { Gate } from "./wait.ts";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly args: Record<string, unknown>;
}

export interface Usage {
  /** All input tokens, those read from a cache included. */
  readonly input: number;
  readonly cached?: number;
  readonly output: number;
}

export type FrameKind = "start" | "content" | "finish" | "usage" | "end";

/** One server-sent event. */
export interface Frame {
  readonly kind: FrameKind;
  readonly text: string;
}

export interface Script {
  /** One piece a stream event. */
  readonly text?: readonly string[];
  readonly toolCalls?: readonly ToolCall[];
  readonly usage?: Usage;
  /**
   * Streams pause before the first frame of this kind; if `afterContent` is set, after `n` content
   * frames.
   */
  readonly hold?: {
    readonly gate: Gate;
    readonly before: FrameKind;
    readonly afterContent?: number;
  };
  /** Streams end here: by a clean end of the body, or by a reset of the connection. */
  readonly cut?: {
    readonly how: "eof" | "reset";
    readonly before: FrameKind;
    readonly afterContent?: number;
  };
  readonly gzip?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
}

export const USAGE: Usage = { input: 11, output: 7 };

export interface ErrorScript {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A vendor's own shapes. */
export interface Shapes {
  /** Whether the request asks for a stream. */
  isStream(path: string, body: unknown): boolean;
  whole(script: Script, model: string): unknown;
  frames(script: Script, model: string, body: unknown): readonly Frame[];
  error(error: ErrorScript): unknown;
}
