/** The subscription of a notification (revision 2026-07-28, `subscriptions/listen`). */
import { isObject } from "../protocol/frame.ts";
import { parseMessage, type RpcId } from "../bridge/frame.ts";

/** Key of `params._meta` with the id of the request that subscribed. */
const SUBSCRIPTION_META = "io.modelcontextprotocol/subscriptionId";

export function subscriptionOf(text: string): RpcId | undefined {
  const params = parseMessage(text)?.["params"];
  const meta = isObject(params) ? params["_meta"] : undefined;
  const id = isObject(meta) ? meta[SUBSCRIPTION_META] : undefined;
  return typeof id === "string" || typeof id === "number" ? id : undefined;
}
