/**
 * Model events into the stream of a response: its items are opened, filled and closed, and each
 * event has the next sequence number. Field names: `ResponseStreamEvent` of the openai SDK.
 */
import type { PublicError } from "../../../access/errors.ts";
import type { DialectName } from "../dialect.ts";
import type {
  ContentEvent,
  Finish,
  ModelUsage,
  ResponseIdentity,
  Signature,
  StreamSerialiser,
} from "../model.ts";
import type { SignatureBinding } from "../signature.ts";
import { errorEvent } from "./errors.ts";
import {
  type CalledTool,
  callItem,
  callPrefix,
  encrypted,
  ItemIds,
  type ItemStatus,
  messageItem,
  type Part,
  partOf,
  reasoningItem,
} from "./items.ts";
import { endOf, responseObject, type ResponseState } from "./response-object.ts";
import { argumentsObject } from "../tool-arguments.ts";
import { customInput } from "./tools.ts";

interface Place {
  readonly id: string;
  /** Index in the output. */
  readonly index: number;
}

interface OpenMessage extends Place {
  /** Parts that are closed. */
  readonly parts: Part[];
  part: Part | undefined;
}

interface OpenReasoning extends Place {
  readonly vendor: DialectName;
  text: string;
}

interface OpenCall extends Place {
  readonly called: CalledTool;
  text: string;
}

/** Parallel calls may be interleaved: all that follow each other are open. */
type Open =
  | { readonly kind: "message"; readonly item: OpenMessage }
  | { readonly kind: "reasoning"; readonly item: OpenReasoning }
  | { readonly kind: "calls"; readonly items: Map<number, OpenCall> };

export class ResponsesStreamSerialiser implements StreamSerialiser {
  readonly #identity: ResponseIdentity;
  readonly #ids: ItemIds;
  /** The closed items, by their index. */
  readonly #output: object[] = [];
  #sequence = 0;
  #started = false;
  #hasRefusal = false;
  #open: Open | undefined;

  constructor(identity: ResponseIdentity) {
    this.#identity = identity;
    this.#ids = new ItemIds(identity.id);
  }

  event(event: ContentEvent): string {
    const start = this.#start();
    switch (event.kind) {
      case "start":
        return start;
      case "text":
      case "refusal":
        return start + this.#text(event);
      case "thinking":
        return start + this.#thinking(event.vendor, event.text);
      case "thinking_signature":
        return start + this.#signThinking(event.signature);
      case "redacted":
        return start + this.#whole(event.signature, "redacted");
      case "text_signature":
        return start + this.#whole(event.signature, "text");
      case "call_start": {
        const { signature, call, id, name } = event;
        const signed = signature === undefined ? "" : this.#whole(signature, "call");
        return start + signed + this.#openCall(call, id, name);
      }
      case "call_arguments":
        return start + this.#arguments(event.call, event.text);
      case "block_end":
        return start + (this.#open?.kind === "reasoning" ? this.#close() : "");
    }
  }

  close(finish: Finish, usage: ModelUsage | undefined): string {
    const start = this.#start();
    const explanation =
      finish.kind === "refusal" && !this.#hasRefusal ? finish.explanation : undefined;
    const end = endOf(finish, this.#hasRefusal);
    const explained =
      explanation === undefined ? "" : this.#text({ kind: "refusal", text: explanation });
    const last = this.#close(end.status === "incomplete" ? "incomplete" : "completed");
    return (
      start + explained + last + this.#responseEvent(`response.${end.status}`, { ...end, usage })
    );
  }

  /** OpenAI's servers send both events: the SDKs throw for the first, Codex reads the second. */
  fail(error: PublicError): string {
    const code = error.status === 429 ? "rate_limit_exceeded" : error.code;
    const start = this.#start();
    const event = errorEvent({ ...error, code }, this.#sequence);
    this.#sequence += 1;
    return (
      start +
      `event: error\ndata: ${JSON.stringify(event)}\n\n` +
      this.#responseEvent("response.failed", {
        status: "failed",
        error: { code, message: error.message },
      })
    );
  }

  #start(): string {
    if (this.#started) return "";
    this.#started = true;
    const state = { status: "in_progress" } as const;
    return (
      this.#responseEvent("response.created", state) +
      this.#responseEvent("response.in_progress", state)
    );
  }

  #text(part: Part): string {
    const { kind, text } = part;
    if (kind === "refusal") this.#hasRefusal = true;
    const before = this.#openPart(kind);
    const item = this.#openMessage;
    if (item?.part === undefined) return before;
    item.part = { kind, text: item.part.text + text };
    return before + this.#partEvent(`${partEvents(kind)}.delta`, item, { delta: text });
  }

  get #openMessage(): OpenMessage | undefined {
    return this.#open?.kind === "message" ? this.#open.item : undefined;
  }

  #openPart(kind: Part["kind"]): string {
    let before = "";
    if (this.#open?.kind !== "message") {
      before += this.#close();
      const item: OpenMessage = { ...this.#ids.take("msg"), parts: [], part: undefined };
      this.#open = { kind: "message", item };
      before += this.#itemEvent("added", item, messageItem(item.id, [], "in_progress"));
    }
    const item = this.#open.item;
    if (item.part?.kind === kind) return before;
    before += this.#closePart(item);
    const part: Part = { kind, text: "" };
    item.part = part;
    return before + this.#contentPart("added", item, part);
  }

  #closePart(item: OpenMessage): string {
    const { part } = item;
    if (part === undefined) return "";
    const done = part.kind === "refusal" ? { refusal: part.text } : { text: part.text };
    const text =
      this.#partEvent(`${partEvents(part.kind)}.done`, item, done) +
      this.#contentPart("done", item, part);
    item.parts.push(part);
    item.part = undefined;
    return text;
  }

  #contentPart(what: "added" | "done", item: OpenMessage, part: Part): string {
    return this.#frame(`response.content_part.${what}`, {
      item_id: item.id,
      output_index: item.index,
      content_index: item.parts.length,
      part: partOf(part),
    });
  }

  #partEvent(type: string, item: OpenMessage, fields: object): string {
    return this.#frame(type, {
      item_id: item.id,
      output_index: item.index,
      content_index: item.parts.length,
      ...fields,
      ...(item.part?.kind === "text" ? { logprobs: [] } : {}),
    });
  }

  #thinking(vendor: DialectName, text: string): string {
    const before = this.#openReasoning(vendor);
    const item = this.#open?.kind === "reasoning" ? this.#open.item : undefined;
    if (item === undefined || text === "") return before;
    const part =
      item.text === ""
        ? this.#summaryEvent("part.added", item, { part: { type: "summary_text", text: "" } })
        : "";
    item.text += text;
    return before + part + this.#summaryEvent("text.delta", item, { delta: text });
  }

  #signThinking(signature: Signature): string {
    const before = this.#openReasoning(signature.vendor);
    return before + this.#close("completed", encrypted(signature, "own"));
  }

  #openReasoning(vendor: DialectName): string {
    if (this.#open?.kind === "reasoning") return "";
    const before = this.#close();
    const item: OpenReasoning = { ...this.#ids.take("rs"), vendor, text: "" };
    this.#open = { kind: "reasoning", item };
    return before + this.#itemEvent("added", item, reasoningItem(item.id, "", undefined));
  }

  /** A reasoning item that has only a signature. */
  #whole(signature: Signature, binding: SignatureBinding): string {
    const before = this.#close() + this.#openReasoning(signature.vendor);
    return before + this.#close("completed", encrypted(signature, binding));
  }

  #summaryEvent(what: string, item: OpenReasoning, fields: object): string {
    return this.#frame(`response.reasoning_summary_${what}`, {
      item_id: item.id,
      output_index: item.index,
      summary_index: 0,
      ...fields,
    });
  }

  #openCall(call: number, callId: string, name: string): string {
    const before = this.#open?.kind === "calls" ? "" : this.#close();
    if (this.#open?.kind !== "calls") this.#open = { kind: "calls", items: new Map() };
    const tool = this.#identity.echo?.tools.get(name);
    const called = { callId, name, tool };
    const place = this.#ids.take(callPrefix(tool));
    const item: OpenCall = { ...place, called, text: "" };
    this.#open.items.set(call, item);
    return before + this.#itemEvent("added", item, callItem(item.id, called, "", "in_progress"));
  }

  #arguments(call: number, text: string): string {
    const item = this.#open?.kind === "calls" ? this.#open.items.get(call) : undefined;
    if (item === undefined || text === "") return "";
    item.text += text;
    // The input of other tools is inside of the arguments: it is sent when they end.
    return isPlain(item)
      ? this.#callEvent("function_call_arguments.delta", item, { delta: text })
      : "";
  }

  /** A call that the output limit truncated is left open, and is not in the output. */
  #closeCall(item: OpenCall, status: ItemStatus): string {
    if (status === "incomplete" && argumentsObject(item.text) === undefined) return "";
    const empty = item.text.trim() === "";
    if (empty) item.text = "{}";
    const { called, text } = item;
    let last = "";
    if (isPlain(item)) {
      const name = called.tool?.name ?? called.name;
      if (empty) last += this.#callEvent("function_call_arguments.delta", item, { delta: text });
      last += this.#callEvent("function_call_arguments.done", item, { name, arguments: text });
    } else if (called.tool?.kind === "custom") {
      const input = customInput(text);
      last += this.#callEvent("custom_tool_call_input.delta", item, { delta: input });
      last += this.#callEvent("custom_tool_call_input.done", item, { input });
    }
    return last + this.#done(item, callItem(item.id, called, text, "completed"));
  }

  #callEvent(what: string, item: OpenCall, fields: object): string {
    return this.#frame(`response.${what}`, {
      item_id: item.id,
      output_index: item.index,
      ...fields,
    });
  }

  /** Closes the open item. @param encryptedContent of reasoning; by default, without a signature */
  #close(status: "completed" | "incomplete" = "completed", encryptedContent?: string): string {
    const open = this.#open;
    this.#open = undefined;
    switch (open?.kind) {
      case undefined:
        return "";
      case "message": {
        const { item } = open;
        const last = this.#closePart(item);
        return last + this.#done(item, messageItem(item.id, item.parts, status));
      }
      case "reasoning":
        return this.#closeReasoning(open.item, encryptedContent);
      case "calls":
        return [...open.items.values()].map((item) => this.#closeCall(item, status)).join("");
    }
  }

  #closeReasoning(item: OpenReasoning, encryptedContent: string | undefined): string {
    const { id, text, vendor } = item;
    const summary =
      text === ""
        ? ""
        : this.#summaryEvent("text.done", item, { text }) +
          this.#summaryEvent("part.done", item, { part: { type: "summary_text", text } });
    const value = encryptedContent ?? encrypted({ vendor, value: "" }, "own");
    return summary + this.#done(item, reasoningItem(id, text, value));
  }

  #done(place: Place, item: object): string {
    this.#output[place.index] = item;
    return this.#itemEvent("done", place, item);
  }

  #itemEvent(what: "added" | "done", { index }: Place, item: object): string {
    return this.#frame(`response.output_item.${what}`, { output_index: index, item });
  }

  #responseEvent(type: string, state: Omit<ResponseState, "output">): string {
    // An item that was never closed leaves its place empty.
    const output = this.#output.filter((item) => item !== undefined);
    return this.#frame(type, { response: responseObject(this.#identity, { ...state, output }) });
  }

  #frame(type: string, fields: object): string {
    const data = { type, sequence_number: this.#sequence, ...fields };
    this.#sequence += 1;
    return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
  }
}

/** Returns whether a call shows its arguments as they are. */
function isPlain({ called: { tool } }: OpenCall): boolean {
  return tool === undefined || tool.kind === "function";
}

function partEvents(kind: Part["kind"]): string {
  return kind === "refusal" ? "response.refusal" : "response.output_text";
}
