/** The `input` of a request, a flat list of items, into turns. */
import { BadRequestError } from "../dialect.ts";
import { type Fields, join } from "../fields.ts";
import { unsupported } from "../changes.ts";
import type {
  Block,
  Leftover,
  ResultContent,
  Signature,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
} from "../model.ts";
import { FOREIGN_MARK, isForeign, unwrap } from "../signature.ts";
import { argumentsObject } from "../tool-arguments.ts";
import { definedArguments, definedOutput } from "./defined-tools.ts";
import { onlyTexts, parseContent, parseOutput } from "./parse-content.ts";
import { customArguments, upstreamName } from "./tools.ts";

const ROLES = ["user", "assistant", "system", "developer"] as const;

/** Calls of tools that OpenAI runs itself, in a conversation that it began. */
const SERVER_CALLS =
  /^(web_search|file_search|image_generation|code_interpreter|tool_search)_(call|output)$/;

export function parseInput(fields: Fields, leftovers: Leftover[]): Turn[] {
  const input = fields.raw("input");
  if (typeof input === "string")
    return [{ role: "user", content: [{ kind: "text", text: input }], param: "input" }];
  if (input === undefined) fields.fail("input", "a string or a list of items");
  const conversation = new Conversation(leftovers);
  fields.each("input", (item) => conversation.add(item));
  return conversation.turns;
}

const DEFINED_CALLS = {
  shell_call: "shell",
  local_shell_call: "local_shell",
  apply_patch_call: "apply_patch",
} as const;

interface OpenTurn extends Turn {
  readonly content: Block[];
}

/**
 * Collects items. What a model answered (reasoning, messages, calls) is one turn, and so are the
 * results that follow each other: servers of chat completions want them together.
 */
class Conversation {
  readonly turns: OpenTurn[] = [];
  readonly #leftovers: Leftover[];
  /** The last turn, if it is made of results only. */
  #results: OpenTurn | undefined;
  /** Signature of the next call: see `serialise-response.ts`. */
  #callSignature: Signature | undefined;

  constructor(leftovers: Leftover[]) {
    this.#leftovers = leftovers;
  }

  add(item: Fields): void {
    const type = item.string("type") ?? "message";
    switch (type) {
      case "message":
        return this.#message(item);
      case "reasoning":
        return this.#reasoning(item);
      case "function_call":
        return this.#call(item, parseArguments(item));
      case "custom_tool_call":
        return this.#call(item, customArguments(item.string("input") ?? ""));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#addResult(item, parseOutput(item, this.#leftovers), false);
      case "shell_call":
      case "local_shell_call":
      case "apply_patch_call": {
        const name = DEFINED_CALLS[type];
        return this.#called(item, name, definedArguments(name, item));
      }
      case "shell_call_output":
      case "local_shell_call_output":
      case "apply_patch_call_output": {
        const { text, failed } = definedOutput(item);
        const content: ResultContent[] = text === "" ? [] : [{ kind: "text", text }];
        return this.#addResult(item, content, failed);
      }
      case "item_reference":
        throw unsupported(item.path, "refers to an item that only OpenAI stores: send the item");
      default:
        if (!SERVER_CALLS.test(type))
          throw unsupported(item.path, `is an item of type ${type}, which only OpenAI has`);
        this.#leftovers.push({ param: item.path, essential: false });
    }
  }

  #message(item: Fields): void {
    const role = item.oneOf("role", ROLES) ?? item.fail("role", `one of ${ROLES.join(", ")}`);
    const content = parseContent(item, this.#leftovers);
    const param = item.path;
    if (role === "assistant") return this.#answered(content, param);
    item.ignore("id", "status", "phase");
    item.rest(this.#leftovers);
    if (role === "user") this.#begin({ role, content, param });
    else this.#begin({ role: "system", content: onlyTexts(content, item), param });
  }

  #reasoning(item: Fields): void {
    const text = textsOf(item, "summary") || textsOf(item, "content");
    const value = item.string("encrypted_content");
    const add = (block: Block): void => this.#answered([block], item.path);
    if (value === undefined) {
      if (text !== "") add({ kind: "thinking", vendor: undefined, text, signature: undefined });
      return;
    }
    const { signature, binding } = unwrap(value, "openai");
    if (binding === "call") this.#callSignature = signature;
    else if (binding === "text") this.#signText(signature);
    else if (binding === "redacted" || !isForeign(value, FOREIGN_MARK))
      add({ kind: "redacted", signature });
    else
      add({
        kind: "thinking",
        vendor: signature.vendor,
        text,
        signature: signature.value === "" ? undefined : signature,
      });
  }

  #call(item: Fields, text: string): void {
    this.#called(item, upstreamName(item.requiredString("name"), item.string("namespace")), text);
  }

  #called(item: Fields, name: string, text: string): void {
    const call: ToolCallBlock = {
      kind: "tool_call",
      id: item.requiredString("call_id"),
      name,
      arguments: text,
      signature: this.#callSignature,
    };
    this.#callSignature = undefined;
    this.#answered([call], item.path);
  }

  #addResult(item: Fields, content: readonly ResultContent[], isError: boolean): void {
    const result: ToolResultBlock = {
      kind: "tool_result",
      // The result of a local shell has the call's id as its own.
      callId: item.string("call_id") ?? item.string("id") ?? item.fail("call_id", "a string"),
      content,
      isError,
      param: join(item.path, "call_id"),
    };
    if (this.#results !== undefined && this.#results === this.turns.at(-1))
      this.#results.content.push(result);
    else this.#results = this.#begin({ role: "user", content: [result], param: item.path });
  }

  #answered(content: readonly Block[], param: string): void {
    const last = this.turns.at(-1);
    if (last?.role !== "assistant")
      this.#begin({ role: "assistant", content: [...content], param });
    else for (const block of content) last.content.push(block);
  }

  #begin(turn: OpenTurn): OpenTurn {
    this.turns.push(turn);
    return turn;
  }

  #signText(signature: Signature): void {
    const content = this.turns.at(-1)?.content;
    const last = content?.at(-1);
    if (content !== undefined && last?.kind === "text")
      content[content.length - 1] = { ...last, signature };
  }
}

function textsOf(item: Fields, key: "summary" | "content"): string {
  return item.each(key, (part) => part.string("text") ?? "").join("\n\n");
}

function parseArguments(item: Fields): string {
  const text = item.string("arguments") ?? "";
  if (text.trim() === "") return "{}";
  if (argumentsObject(text) === undefined)
    throw new BadRequestError(
      `${item.at("arguments")} must be a JSON object`,
      item.at("arguments"),
    );
  return text;
}
