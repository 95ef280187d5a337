/**
 * The model into a response. Field names: `Response` of the openai SDK.
 *
 * Reasoning is a reasoning item: its text is the summary, its signature the encrypted content.
 * Where a vendor signs a call (Gemini), a reasoning item before the call has the signature; where
 * it signs a text, one after the text.
 */
import {
  type Block,
  type ChatResponse,
  type ResponseIdentity,
  UpstreamFormatError,
} from "../model.ts";
import {
  callItem,
  callPrefix,
  encrypted,
  ItemIds,
  messageItem,
  type Part,
  reasoningItem,
} from "./items.ts";
import { endOf, responseObject } from "./response-object.ts";

export function serialiseResponse(response: ChatResponse, identity: ResponseIdentity): object {
  const { finish, usage } = response;
  const hasRefusal = response.content.some(({ kind }) => kind === "refusal");
  const explained: readonly Block[] =
    finish.kind === "refusal" && !hasRefusal && finish.explanation !== undefined
      ? [{ kind: "refusal", text: finish.explanation }]
      : [];
  const end = endOf(finish, hasRefusal);
  const output = new Output(identity, end.status === "incomplete" ? "incomplete" : "completed");
  for (const block of [...response.content, ...explained]) output.add(block);
  return responseObject(identity, { ...end, output: output.end(), usage });
}

class Output {
  readonly #identity: ResponseIdentity;
  readonly #status: "completed" | "incomplete";
  readonly #ids: ItemIds;
  readonly #items: object[] = [];
  #parts: Part[] = [];

  constructor(identity: ResponseIdentity, status: "completed" | "incomplete") {
    this.#identity = identity;
    this.#status = status;
    this.#ids = new ItemIds(identity.id);
  }

  add(block: Block): void {
    switch (block.kind) {
      case "text":
      case "refusal": {
        this.#addPart(block);
        const signature = block.kind === "text" ? block.signature : undefined;
        if (signature !== undefined) this.#addReasoning("", encrypted(signature, "text"));
        return;
      }
      case "thinking": {
        const { text, vendor, signature = { vendor: vendor ?? "openai", value: "" } } = block;
        return this.#addReasoning(text, encrypted(signature, "own"));
      }
      case "redacted":
        return this.#addReasoning("", encrypted(block.signature, "redacted"));
      case "tool_call": {
        const { signature, name } = block;
        if (signature !== undefined) this.#addReasoning("", encrypted(signature, "call"));
        this.#endMessage();
        const tool = this.#identity.echo?.tools.get(name);
        const { id } = this.#ids.take(callPrefix(tool));
        const call = { callId: block.id, name, tool };
        this.#items.push(callItem(id, call, block.arguments, "completed"));
        return;
      }
      case "image":
      case "document":
      case "audio":
      case "tool_result":
        throw new UpstreamFormatError(
          `the upstream's answer has content that a response cannot hold: ${block.kind}`,
        );
    }
  }

  end(): readonly object[] {
    this.#endMessage(this.#status);
    return this.#items;
  }

  #addPart({ kind, text }: Part): void {
    const last = this.#parts.at(-1);
    if (last?.kind === kind) this.#parts.splice(-1, 1, { kind, text: last.text + text });
    else this.#parts.push({ kind, text });
  }

  #addReasoning(text: string, encryptedContent: string): void {
    this.#endMessage();
    this.#items.push(reasoningItem(this.#ids.take("rs").id, text, encryptedContent));
  }

  #endMessage(status: "completed" | "incomplete" = "completed"): void {
    if (this.#parts.length === 0) return;
    this.#items.push(messageItem(this.#ids.take("msg").id, this.#parts, status));
    this.#parts = [];
  }
}
