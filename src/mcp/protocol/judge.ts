/** Judges a frame of a client: which items its messages use, and whether the policy allows them. */
import { FrameError, isObject, type CallMessage, type Frame } from "./frame.ts";
import type { ItemDenial, McpPolicy } from "./item-policy.ts";
import { RpcCode } from "./json-rpc.ts";
import {
  COMPLETE_METHOD,
  ITEM_METHODS,
  type ItemKind,
  LIST_METHODS,
  LISTEN_METHOD,
  NAME_MEMBER,
} from "./names.ts";

/** An item that a message uses. */
export interface UsedItem {
  readonly kind: ItemKind;
  /** Name of a tool or prompt, URI of a resource; as the client wrote it. */
  readonly name: string;
  readonly message: CallMessage;
}

export interface DeniedItem extends UsedItem {
  readonly denial: ItemDenial;
}

export interface JudgedFrame {
  /** Items that are used, in the order of the messages. */
  readonly used: readonly UsedItem[];
  /** The first item that may not be used: the whole frame is then refused. */
  readonly denied: DeniedItem | undefined;
  /** Kinds of the lists that the answer may hold, and that must be filtered. */
  readonly lists: readonly ItemKind[];
}

/** @throws FrameError if a message does not say which item it uses */
export function judgeFrame({ messages }: Frame, policy: McpPolicy): JudgedFrame {
  const used: UsedItem[] = [];
  const lists = new Set<ItemKind>();
  for (const message of messages) {
    if (message.kind === "answer") continue;
    used.push(...itemsOf(message));
    const list = Object.hasOwn(LIST_METHODS, message.method)
      ? LIST_METHODS[message.method]
      : undefined;
    if (list !== undefined && !policy.isOpen(list)) lists.add(list);
  }
  for (const item of used) {
    const denial = policy.deny(item.kind, item.name);
    if (denial !== undefined) return { used, denied: { ...item, denial }, lists: [...lists] };
  }
  return { used, denied: undefined, lists: [...lists] };
}

/** Methods that only begin or end notifications, and that revision 2026-07-28 has removed. */
const WATCHING = new Set(["resources/subscribe", "resources/unsubscribe"]);

function itemsOf(message: CallMessage): UsedItem[] {
  const { method, params } = message;
  const kind = Object.hasOwn(ITEM_METHODS, method) ? ITEM_METHODS[method] : undefined;
  if (kind !== undefined) {
    const member = NAME_MEMBER[kind];
    // Names nothing to watch: the server says what is wrong, as it does without a gateway.
    if (WATCHING.has(method) && params[member] === undefined) return [];
    return [{ kind, name: textOf(message, params[member], `params.${member}`), message }];
  }
  if (method === COMPLETE_METHOD) return [completed(message)];
  if (method === LISTEN_METHOD) return watched(message);
  return [];
}

/** `params.ref` of a completion: `{type: "ref/prompt", name}` or `{type: "ref/resource", uri}`. */
function completed(message: CallMessage): UsedItem {
  const { ref } = message.params;
  const { type, name, uri } = isObject(ref) ? ref : {};
  if (type === "ref/prompt") {
    return { kind: "prompts", name: textOf(message, name, "params.ref.name"), message };
  }
  if (type === "ref/resource") {
    return { kind: "resources", name: textOf(message, uri, "params.ref.uri"), message };
  }
  const text = '"params.ref.type" must be "ref/prompt" or "ref/resource".';
  throw new FrameError(RpcCode.invalidParams, text, message.id);
}

/** `params.notifications.resourceSubscriptions`: URIs of resources to watch. */
function watched(message: CallMessage): UsedItem[] {
  const { notifications } = message.params;
  const { resourceSubscriptions: uris } = isObject(notifications) ? notifications : {};
  if (uris === undefined) return [];
  const place = "params.notifications.resourceSubscriptions";
  if (!Array.isArray(uris)) {
    throw new FrameError(RpcCode.invalidParams, `"${place}" must be a list.`, message.id);
  }
  return uris.map((uri: unknown) => ({
    kind: "resources",
    name: textOf(message, uri, place),
    message,
  }));
}

function textOf({ id }: CallMessage, value: unknown, place: string): string {
  if (typeof value === "string") return value;
  throw new FrameError(RpcCode.invalidParams, `"${place}" must be a text.`, id);
}
