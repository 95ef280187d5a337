/**
 * Denials that git shows: it prints an answer's text after `remote:` when it is plain, and else the
 * status alone.
 */
import type { Denial, ServiceRequest, WordedDenial } from "../contract.ts";

const GIT_PATH = /\/(?:info\/refs|git-upload-pack|git-receive-pack)$/;

export function wordDenial(
  { path }: ServiceRequest,
  { message }: Denial,
): WordedDenial | undefined {
  if (!GIT_PATH.test(path)) return undefined;
  // A terminal is at the other end.
  return {
    headers: [["content-type", "text/plain; charset=utf-8"]],
    body: `svc: ${message.replaceAll(/\p{Cc}/gu, " ")}\n`,
  };
}
