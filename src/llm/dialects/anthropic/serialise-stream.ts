/** Converts model events to a messages stream: one block at a time, each opened and closed. */
import type { DialectName } from "../dialect.ts";
import type {
  ContentEvent,
  Finish,
  ModelUsage,
  ResponseIdentity,
  StreamSerialiser,
} from "../model.ts";
import { UpstreamFormatError } from "../model.ts";
import { wrap } from "../signature.ts";
import { serialiseFinish } from "./finish.ts";
import { serialiseDeltaUsage, serialiseUsage } from "./usage.ts";

type OpenBlock =
  | { readonly kind: "text"; readonly index: number }
  | { readonly kind: "thinking"; readonly index: number; readonly vendor: DialectName }
  | { readonly kind: "call"; readonly index: number; readonly call: number; hasArguments: boolean };

function frame(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

export class AnthropicStreamSerialiser implements StreamSerialiser {
  readonly #identity: ResponseIdentity;
  #started = false;
  #next = 0;
  #open: OpenBlock | undefined;

  constructor(identity: ResponseIdentity) {
    this.#identity = identity;
  }

  event(event: ContentEvent): string {
    switch (event.kind) {
      case "start":
        return this.#start();
      case "text":
      case "refusal":
        return this.#openText() + this.#delta({ type: "text_delta", text: event.text });
      case "thinking":
        return (
          this.#openThinking(event.vendor) +
          this.#delta({ type: "thinking_delta", thinking: event.text })
        );
      case "thinking_signature":
        return (
          this.#openThinking(event.signature.vendor) + this.#close(wrap(event.signature, "own"))
        );
      case "text_signature":
        return this.#whole({ type: "redacted_thinking", data: wrap(event.signature, "text") });
      case "redacted":
        return this.#whole({ type: "redacted_thinking", data: wrap(event.signature, "own") });
      case "call_start": {
        const signature =
          event.signature === undefined
            ? ""
            : this.#whole({ type: "redacted_thinking", data: wrap(event.signature, "call") });
        return signature + this.#openCall(event.call, event.id, event.name);
      }
      case "call_arguments":
        return this.#arguments(event.call, event.text);
      case "block_end":
        return this.#close();
    }
  }

  close(finish: Finish, usage: ModelUsage | undefined): string {
    const delta = frame("message_delta", {
      delta: serialiseFinish(finish),
      usage: serialiseDeltaUsage(usage),
    });
    return this.#start() + this.#close() + delta + frame("message_stop", {});
  }

  #start(): string {
    if (this.#started) return "";
    this.#started = true;
    const { id, model } = this.#identity;
    const message = {
      id: `msg_${id}`,
      type: "message",
      role: "assistant",
      model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: serialiseUsage(undefined),
    };
    return frame("message_start", { message });
  }

  #openText(): string {
    if (this.#open?.kind === "text") return "";
    const before = this.#start() + this.#close();
    const index = this.#take();
    this.#open = { kind: "text", index };
    return (
      before +
      frame("content_block_start", {
        index,
        content_block: { type: "text", text: "", citations: null },
      })
    );
  }

  #openThinking(vendor: DialectName): string {
    if (this.#open?.kind === "thinking") return "";
    const before = this.#start() + this.#close();
    const index = this.#take();
    this.#open = { kind: "thinking", index, vendor };
    return (
      before +
      frame("content_block_start", {
        index,
        content_block: { type: "thinking", thinking: "", signature: "" },
      })
    );
  }

  #openCall(call: number, id: string, name: string): string {
    const before = this.#start() + this.#close();
    const index = this.#take();
    this.#open = { kind: "call", index, call, hasArguments: false };
    return (
      before +
      frame("content_block_start", {
        index,
        content_block: { type: "tool_use", id, name, input: {} },
      })
    );
  }

  /** A separate block without deltas. */
  #whole(block: object): string {
    const before = this.#start() + this.#close();
    const index = this.#take();
    return (
      before +
      frame("content_block_start", { index, content_block: block }) +
      frame("content_block_stop", { index })
    );
  }

  #arguments(call: number, text: string): string {
    const open = this.#open;
    // Clients consider a block complete when the next begins: later arguments would be lost.
    if (open?.kind !== "call" || open.call !== call)
      throw new UpstreamFormatError("the upstream interleaved the arguments of two tool calls");
    open.hasArguments = true;
    return this.#delta({ type: "input_json_delta", partial_json: text });
  }

  #delta(delta: object): string {
    return frame("content_block_delta", { index: this.#open?.index ?? 0, delta });
  }

  #close(signature?: string): string {
    const open = this.#open;
    if (open === undefined) return "";
    let last = "";
    // Every thinking block has a signature; one without a value names the vendor of the unsigned
    // thinking.
    if (open.kind === "thinking")
      last = this.#delta({
        type: "signature_delta",
        signature: signature ?? wrap({ vendor: open.vendor, value: "" }, "own"),
      });
    else if (open.kind === "call" && !open.hasArguments)
      last = this.#delta({ type: "input_json_delta", partial_json: "{}" });
    this.#open = undefined;
    return last + frame("content_block_stop", { index: open.index });
  }

  #take(): number {
    const index = this.#next;
    this.#next += 1;
    return index;
  }
}
