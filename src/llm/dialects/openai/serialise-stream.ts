/**
 * Model events into a chat completions stream. Field names: `ChatCompletionChunk` of the openai
 * SDK.
 */
import type {
  ContentEvent,
  Finish,
  ModelUsage,
  ResponseIdentity,
  Signature,
  StreamSerialiser,
} from "../model.ts";
import { serialiseFinish } from "./finish.ts";
import { TEXT_SIGNATURE_ID, encryptedDetail, textDetail } from "./reasoning-details.ts";
import type { ReasoningDetail } from "./reasoning-details.ts";
import { serialiseUsage } from "./usage.ts";

export class OpenaiStreamSerialiser implements StreamSerialiser {
  readonly #head: {
    readonly id: string;
    readonly object: string;
    readonly created: number;
    readonly model: string;
  };
  readonly #wantsUsage: boolean;
  #started = false;
  /**
   * Text of the current unsigned thinking block: its detail repeats it together with the signature.
   */
  #thinking = "";
  /**
   * Sent whole at the end: clients that merge deltas by assignment would keep only the last of
   * several.
   */
  readonly #details: ReasoningDetail[] = [];
  #refused = false;
  /**
   * The last opened call, and whether it has arguments: a call without any would be read as invalid
   * JSON.
   */
  #call: { readonly number: number; hasArguments: boolean } | undefined;

  constructor({ id, model, now }: ResponseIdentity, wantsUsage: boolean) {
    this.#head = {
      id: `chatcmpl-${id}`,
      object: "chat.completion.chunk",
      created: Math.floor(now / 1000),
      model,
    };
    this.#wantsUsage = wantsUsage;
  }

  event(event: ContentEvent): string {
    switch (event.kind) {
      case "start":
        return this.#start();
      case "text":
        return this.#delta({ content: event.text });
      case "refusal":
        this.#refused = true;
        return this.#delta({ refusal: event.text });
      case "thinking":
        this.#thinking += event.text;
        return this.#delta({ reasoning_content: event.text });
      case "thinking_signature": {
        this.#details.push(textDetail(this.#thinking, event.signature, this.#details.length));
        this.#thinking = "";
        return "";
      }
      case "redacted":
        this.#keep(event.signature, undefined);
        return "";
      case "text_signature":
        this.#keep(event.signature, TEXT_SIGNATURE_ID);
        return "";
      case "call_start": {
        const before = this.#endCall();
        if (event.signature !== undefined) this.#keep(event.signature, event.id);
        this.#call = { number: event.call, hasArguments: false };
        const call = {
          index: event.call,
          id: event.id,
          type: "function",
          function: { name: event.name, arguments: "" },
        };
        return before + this.#delta({ tool_calls: [call] });
      }
      case "call_arguments":
        if (this.#call?.number === event.call) this.#call.hasArguments = true;
        return this.#arguments(event.call, event.text);
      case "block_end":
        this.#thinking = "";
        return this.#endCall();
    }
  }

  close(finish: Finish, usage: ModelUsage | undefined): string {
    const before =
      this.#start() +
      this.#endCall() +
      (this.#details.length === 0 ? "" : this.#delta({ reasoning_details: this.#details }));
    const explanation =
      finish.kind === "refusal" && !this.#refused ? finish.explanation : undefined;
    const refusal = explanation === undefined ? "" : this.#delta({ refusal: explanation });
    const last = this.#chunk({
      choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: serialiseFinish(finish) }],
    });
    const report =
      this.#wantsUsage && usage !== undefined
        ? this.#chunk({ choices: [], usage: serialiseUsage(usage) })
        : "";
    return `${before}${refusal}${last}${report}data: [DONE]\n\n`;
  }

  #start(): string {
    if (this.#started) return "";
    this.#started = true;
    return this.#chunk({
      choices: [
        {
          index: 0,
          delta: { role: "assistant", content: "" },
          logprobs: null,
          finish_reason: null,
        },
      ],
    });
  }

  #endCall(): string {
    const call = this.#call;
    this.#call = undefined;
    return call === undefined || call.hasArguments ? "" : this.#arguments(call.number, "{}");
  }

  #arguments(index: number, text: string): string {
    return this.#delta({ tool_calls: [{ index, function: { arguments: text } }] });
  }

  #keep(signature: Signature, callId: string | undefined): void {
    this.#details.push(encryptedDetail(signature, callId, this.#details.length));
  }

  #delta(delta: object): string {
    return (
      this.#start() +
      this.#chunk({ choices: [{ index: 0, delta, logprobs: null, finish_reason: null }] })
    );
  }

  #chunk(fields: object): string {
    return `data: ${JSON.stringify({ ...this.#head, ...fields })}\n\n`;
  }
}
