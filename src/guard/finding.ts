/** GuardFinding is what a guard found in a call. */
import { clientText, optionalClientText } from "../platform/client-text.ts";
import type { GuardPolicy } from "../policy/snapshot.ts";
import type { FlagLabel } from "./check.ts";
import type { Piece, SourcedText } from "./pieces.ts";

/** Kinds of texts: `scan.prompts`, `scan.toolResults` and `scan.responses` of a guard. */
export type ScannedKind = "prompt" | "tool_result" | "response";

/** A text of a call. */
export interface ScannedText extends SourcedText {
  readonly kind: ScannedKind;
  /** Tool whose result it is; undefined for other kinds, or if it cannot be told. */
  readonly tool: string | undefined;
  /** Place in the body, e.g. `messages[2].content[0]`. */
  readonly param: string;
  /** Whether a tool's result is part of the prompt too, which `scan.prompts` then includes. */
  readonly isPrompt?: boolean;
}

export interface GuardFinding {
  readonly guard: GuardPolicy;
  readonly label: FlagLabel;
  readonly score: number;
  readonly where: ScannedKind;
  readonly tool: string | undefined;
  readonly param: string;
  readonly piece: Piece;
  /** Number of flagged pieces of the call. */
  readonly count: number;
}

/** The member `detail` of the answer to a blocked call. */
export interface ViolationDetail {
  readonly code: "guard_violation";
  readonly binding: string;
  readonly where: ScannedKind;
  /** Empty unless a tool's result was flagged. */
  readonly tool: string;
  readonly label: FlagLabel;
  readonly score: number;
  readonly message: string;
}

export function detailOf(finding: GuardFinding): ViolationDetail {
  const { guard, where, tool, label, score } = finding;
  return {
    code: "guard_violation",
    binding: guard.binding,
    where,
    tool: optionalClientText(tool) ?? "",
    label,
    score,
    message: messageOf(finding),
  };
}

function messageOf({ guard, label, score, where, tool, param }: GuardFinding): string {
  const what = label === "injection" ? "a prompt injection" : "a jailbreak";
  const place = {
    prompt: `in ${clientText(param)} of the request`,
    tool_result: `in the result of ${nameOf(tool)} (${clientText(param)})`,
    response: "in the model's answer",
  }[where];
  return (
    `The guard ${guard.binding} found ${what} ${place}, with a score of ${score.toFixed(2)}. ` +
    (where === "response"
      ? "The answer is withheld."
      : "Nothing was sent to the model. Remove that text from the conversation, and try again.")
  );
}

function nameOf(tool: string | undefined): string {
  return tool === undefined ? "a tool" : `the tool ${clientText(tool)}`;
}
