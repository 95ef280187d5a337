/** Turns as Gemini's contents and parts. */
import { type ChangeLog, unsupported } from "../changes.ts";
import { mimeTypeOfPath } from "../media.ts";
import type { Block, Media, ResultContent, Signature, ToolResultBlock } from "../model.ts";
import { argumentsObject } from "../tool-arguments.ts";
import type { CallIndex, Dialogue } from "../turns.ts";
import { generationOf } from "./generation.ts";

/**
 * Gemini 3 refuses the first call of a turn without a signature. This value is documented for calls
 * of another model: https://ai.google.dev/gemini-api/docs/thought-signatures
 */
const UNSIGNED_CALL = "skip_thought_signature_validator";

export function serialiseContents(
  turns: Dialogue["turns"],
  calls: CallIndex,
  model: string,
  changes: ChangeLog,
): object[] {
  const needsSignature = generationOf(model) >= 3;
  return turns.flatMap(({ role, content }) => {
    const parts = content.flatMap((block) => serialisePart(block, calls, changes));
    const firstCall = parts.find((part) => "functionCall" in part);
    if (needsSignature && firstCall !== undefined && firstCall["thoughtSignature"] === undefined)
      firstCall["thoughtSignature"] = UNSIGNED_CALL;
    if (role === "assistant") return parts.length === 0 ? [] : [{ role: "model", parts }];
    // The turn after a call contains only the call's responses.
    const responses = parts.filter((part) => "functionResponse" in part);
    const rest = parts.filter((part) => !("functionResponse" in part));
    return [responses, rest]
      .filter((group) => group.length > 0)
      .map((group) => ({ role: "user", parts: group }));
  });
}

type Part = Record<string, unknown>;

function serialisePart(block: Block, calls: CallIndex, changes: ChangeLog): Part[] {
  switch (block.kind) {
    case "text":
      return block.text === "" && block.signature === undefined
        ? []
        : [{ text: block.text, ...signed(block.signature) }];
    case "refusal":
      return [{ text: block.text }];
    case "image":
      return [
        {
          ...mediaPart(block.media),
          ...(block.detail === undefined
            ? {}
            : { mediaResolution: { level: `MEDIA_RESOLUTION_${block.detail.toUpperCase()}` } }),
        },
      ];
    case "document":
      return [mediaPart(block.media)];
    case "audio":
      return [{ inlineData: { mimeType: block.mimeType, data: block.data } }];
    case "thinking":
    case "redacted":
      if (block.signature?.vendor !== "gemini") return dropForeign(changes);
      return [
        {
          text: block.kind === "thinking" ? block.text : "",
          thought: true,
          thoughtSignature: block.signature.value,
        },
      ];
    case "tool_call":
      return [
        {
          functionCall: {
            id: block.id,
            name: block.name,
            args: argumentsObject(block.arguments) ?? {},
          },
          ...signed(block.signature),
        },
      ];
    case "tool_result":
      return [{ functionResponse: functionResponse(block, calls.nameOf(block)) }];
  }
}

function dropForeign(changes: ChangeLog): [] {
  const note = "reasoning of another provider dropped: Gemini accepts only its own signatures";
  changes.note(note);
  return [];
}

function signed(signature: Signature | undefined): Part {
  return signature?.vendor === "gemini" ? { thoughtSignature: signature.value } : {};
}

function mediaPart(media: Media): Part {
  if (media.kind === "base64")
    return { inlineData: { mimeType: media.mimeType, data: media.data } };
  const mimeType = media.mimeType ?? mimeTypeOfPath(media.url);
  return { fileData: { fileUri: media.url, ...(mimeType === undefined ? {} : { mimeType }) } };
}

/** `output` and `error` are the keys that Gemini's `FunctionResponse.response` documents. */
function functionResponse(result: ToolResultBlock, name: string): Part {
  const text = result.content
    .flatMap((block) => (block.kind === "text" ? [block.text] : []))
    .join("\n");
  const parts = result.content
    .filter((block) => block.kind !== "text")
    .map((block) => resultPart(block, result.param));
  const response = result.isError ? { error: text } : (plainObject(text) ?? { output: text });
  return { id: result.callId, name, response, ...(parts.length === 0 ? {} : { parts }) };
}

/** A result that is a JSON object is sent as one. */
function plainObject(text: string): object | undefined {
  return text.trimStart().startsWith("{") ? argumentsObject(text) : undefined;
}

function resultPart(block: ResultContent, param: string): Part {
  if (block.kind === "text") throw unsupported(param, "is not a media part");
  return mediaPart(block.media);
}
