/** One log line for each settled call. */
import type { Logger } from "pino";
import { clientText, clientTexts, optionalClientText } from "../../platform/client-text.ts";
import type { Call } from "../call.ts";
import type { CallObserver, SettledCall } from "./settlement.ts";

export class CallLog implements CallObserver {
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  settled({ call, outcome, settlement }: SettledCall): void {
    const { usage } = settlement;
    this.#log.info(
      {
        call: call.request.id,
        workload: call.request.permit.caller.workload,
        operation: call.request.route.operation,
        dialect: call.request.route.dialect,
        asked: clientText(call.request.permit.grant.ref),
        model: clientText(call.modelId),
        status: outcome.status,
        end: outcome.end,
        code: optionalClientText(outcome.code),
        stream: call.request.facts.stream,
        durationMs: settlement.durationMs,
        retries: call.retries,
        usage: settlement.usageKind,
        inputTokens: usage?.inputTokens,
        outputTokens: usage?.outputTokens,
        costUsd: settlement.costUsd,
        translation: notesOf(call),
        attempts: call.retries === 0 ? undefined : attemptsOf(call),
      },
      "llm call",
    );
  }
}

/** Returns the notes of the attempt that answered, or was the last; undefined if there are none. */
function notesOf({ attempts }: Call): readonly string[] | undefined {
  const notes = attempts.at(-1)?.changes.notes ?? [];
  return notes.length === 0 ? undefined : clientTexts(notes);
}

function attemptsOf(call: Call): object[] {
  return call.attempts.map(({ target, failure }) => ({
    provider: target.provider.name,
    model: clientText(target.model),
    failure,
  }));
}
