/**
 * Denials that git shows: it prints the text of a plain response after `remote:`, and otherwise
 * only the status.
 */
import type { Denial, ServiceRequest, WordedDenial } from "../contract.ts";

const GIT_PATH = /\/(?:info\/refs|git-upload-pack|git-receive-pack)$/;

export function wordDenial(
  { path }: ServiceRequest,
  { message }: Denial,
): WordedDenial | undefined {
  if (!GIT_PATH.test(path)) return undefined;
  // The text is shown on a terminal.
  return {
    headers: [["content-type", "text/plain; charset=utf-8"]],
    body: `svc: ${message.replaceAll(/\p{Cc}/gu, " ")}\n`,
  };
}
