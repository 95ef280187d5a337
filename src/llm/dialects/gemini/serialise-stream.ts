/**
 * Converts model events to a streamGenerateContent stream. A call is one part: it is sent when its
 * arguments are complete.
 */
import { UpstreamFormatError } from "../model.ts";
import type {
  ContentEvent,
  Finish,
  ModelUsage,
  ResponseIdentity,
  StreamSerialiser,
} from "../model.ts";
import { wrapBase64 } from "../signature.ts";
import { argumentsObject } from "../tool-arguments.ts";
import { serialiseFinish } from "./finish.ts";
import { serialiseUsage } from "./usage.ts";

interface PendingCall {
  readonly id: string;
  readonly name: string;
  arguments: string;
}

export class GeminiStreamSerialiser implements StreamSerialiser {
  readonly #identity: ResponseIdentity;
  /** Number of the call -> its state, in the order in which the calls began. */
  readonly #calls = new Map<number, PendingCall>();

  constructor(identity: ResponseIdentity) {
    this.#identity = identity;
  }

  event(event: ContentEvent): string {
    switch (event.kind) {
      case "start":
      case "text_signature":
      case "block_end":
        return "";
      case "text":
      case "refusal":
        return this.#parts([{ text: event.text }]);
      case "thinking":
        return this.#parts([{ text: event.text, thought: true }]);
      case "thinking_signature":
      case "redacted":
        return this.#parts([
          { text: "", thought: true, thoughtSignature: wrapBase64(event.signature, "own") },
        ]);
      case "call_start":
        this.#calls.set(event.call, { id: event.id, name: event.name, arguments: "" });
        return "";
      case "call_arguments": {
        const call = this.#calls.get(event.call);
        if (call !== undefined) call.arguments += event.text;
        return "";
      }
    }
  }

  close(finish: Finish, usage: ModelUsage | undefined): string {
    const calls = [...this.#calls.values()].flatMap((call) => {
      const args = argumentsObject(call.arguments);
      if (args !== undefined) return [{ functionCall: { id: call.id, name: call.name, args } }];
      if (finish.kind === "length") return [];
      throw new UpstreamFormatError(
        `the arguments of the call to ${call.name} are not a JSON object`,
      );
    });
    const before = calls.length === 0 ? "" : this.#parts(calls);
    return (
      before +
      this.#chunk({ content: { role: "model", parts: [] }, ...serialiseFinish(finish) }, usage)
    );
  }

  #parts(parts: readonly object[]): string {
    return this.#chunk({ content: { role: "model", parts } }, undefined);
  }

  #chunk(candidate: object, usage: ModelUsage | undefined): string {
    const { id, model } = this.#identity;
    const chunk = {
      candidates: [{ ...candidate, index: 0 }],
      ...(usage === undefined ? {} : { usageMetadata: serialiseUsage(usage) }),
      modelVersion: model,
      responseId: id,
    };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }
}
