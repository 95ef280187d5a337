/** Gemini's generateContent; field names checked against the official SDK's types. */
import {
  type Candidate,
  FinishReason,
  type GenerateContentResponseUsageMetadata,
  type Part,
} from "@google/genai";
import type { ErrorScript, Frame, FrameKind, Script, Shapes } from "../script.ts";
import { USAGE } from "../script.ts";

interface WireResponse {
  readonly candidates: readonly Candidate[];
  readonly usageMetadata?: GenerateContentResponseUsageMetadata;
  readonly modelVersion: string;
  readonly responseId: string;
}

function usageOf({ usage = USAGE }: Script): GenerateContentResponseUsageMetadata {
  return {
    promptTokenCount: usage.input,
    candidatesTokenCount: usage.output,
    totalTokenCount: usage.input + usage.output,
    ...(usage.cached === undefined ? {} : { cachedContentTokenCount: usage.cached }),
  };
}

function calls(script: Script): Part[] {
  return (script.toolCalls ?? []).map(({ id, name, args }) => ({
    functionCall: { id, name, args },
  }));
}

function answer(
  parts: Part[],
  model: string,
  more: { finish?: FinishReason; usage?: GenerateContentResponseUsageMetadata },
): WireResponse {
  return {
    candidates: [
      {
        content: { role: "model", parts },
        index: 0,
        ...(more.finish === undefined ? {} : { finishReason: more.finish }),
      },
    ],
    ...(more.usage === undefined ? {} : { usageMetadata: more.usage }),
    modelVersion: model,
    responseId: "resp-fake",
  };
}

function whole(script: Script, model: string): WireResponse {
  const text = script.text === undefined ? [] : [{ text: script.text.join("") }];
  return answer([...text, ...calls(script)], model, {
    finish: FinishReason.STOP,
    usage: usageOf(script),
  });
}

function frames(script: Script, model: string): Frame[] {
  const out: Frame[] = [];
  const send = (kind: FrameKind, chunk: WireResponse): void => {
    out.push({ kind, text: `data: ${JSON.stringify(chunk)}\r\n\r\n` });
  };
  for (const text of script.text ?? []) send("content", answer([{ text }], model, {}));
  for (const part of calls(script)) send("content", answer([part], model, {}));
  // Finish and usage are one event; there is no other sign of the end.
  send(
    "usage",
    answer([{ text: "" }], model, { finish: FinishReason.STOP, usage: usageOf(script) }),
  );
  return out;
}

/** https://cloud.google.com/apis/design/errors#handling_errors */
const NAMES: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
};

function error({ status, message }: ErrorScript): unknown {
  return { error: { code: status, message, status: NAMES[status] ?? "INTERNAL" } };
}

export const geminiShapes: Shapes = {
  isStream: (path) => path.includes(":streamGenerateContent"),
  whole,
  frames,
  error,
};
