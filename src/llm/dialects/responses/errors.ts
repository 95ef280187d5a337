/** Error events of the Responses API; its error bodies are those of chat completions. */
import type { PublicError } from "../../../access/errors.ts";
import { renderError } from "../openai/errors.ts";

/**
 * Returns the data of an `error` event. The SDK's `ResponseErrorEvent` has the members at the top;
 * the SDK itself throws for a member `error`, which OpenAI's servers send too.
 */
export function errorEvent(error: PublicError, sequenceNumber: number): object {
  const { code, message, param } = error;
  return {
    type: "error",
    code,
    message,
    param: param ?? null,
    sequence_number: sequenceNumber,
    ...(JSON.parse(renderError(error)) as object),
  };
}

/** Writes an error event into a stream that passes, whose sequence is not counted. */
export function renderStreamError(error: PublicError): string {
  return `event: error\ndata: ${JSON.stringify(errorEvent(error, 0))}\n\n`;
}
