/**
 * Ids of tool calls. A client replays the ids of whichever model it asked before, and some vendors
 * refuse those of others.
 */
import { createHash } from "node:crypto";

/**
 * Returns the id itself if the vendor accepts it, otherwise one derived from it: a call and its
 * result, in this request and the next ones, keep the same id. Clients always see their own ids,
 * because a request carries all of its conversation.
 *
 * @param accepted form of the ids that the vendor accepts
 */
export function acceptedId(id: string, accepted: RegExp): string {
  if (accepted.test(id)) return id;
  return `svc_${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;
}
