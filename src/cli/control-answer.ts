/** Answers of a gateway's control API. */
import type { ControlFailure } from "../gateway/control.ts";
import type { UnixResponse } from "../platform/unix-http.ts";
import { CliError } from "./errors.ts";

/** @returns the value of the body; @throws CliError for a refusal of the gateway */
export function parsedAnswer(response: UnixResponse): unknown {
  let body: unknown;
  try {
    body = JSON.parse(response.body);
  } catch {
    throw new CliError(
      `the gateway answered ${response.status}, and not in JSON: does it have another version?`,
    );
  }
  if (response.status === 200) return body;
  const { error = "the gateway refused", problems = [] } = body as Partial<ControlFailure>;
  throw new CliError((problems.length > 0 ? problems : [error]).join("\n"));
}
