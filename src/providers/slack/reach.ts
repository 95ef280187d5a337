/**
 * The reach of each method on a conversation. Every method of `IN_CHANNEL` has a line here with the
 * arguments that name nothing besides that conversation and the messages, members and settings in
 * it, as https://docs.slack.dev/reference/methods describes them. An unlisted argument (`file`,
 * `file_ids`, `unfurl_id`, `entity_id`, ..., or one that Slack adds later) is assumed to name
 * another resource, and the request is out of every scope.
 *
 * The text of a message is also checked, because Slack expands a link to a message with the message
 * itself.
 */
import type { ServiceResource } from "../contract.ts";
import { jsonMembers, type StrictJson, parseStrictJson } from "../strict-json.ts";
import { channelResource } from "./channel.ts";

const PAGE = "cursor limit";
const RECIPIENT = "recipient_team_id recipient_user_id";
const SENDER = "as_user icon_emoji icon_url username";
const MESSAGE = `text blocks attachments markdown_text metadata mrkdwn parse link_names ${SENDER}`;
const POSTED = `${MESSAGE} thread_ts reply_broadcast unfurl_links unfurl_media`;
const STREAMED = "markdown_text chunks";

/** Arguments besides `channel` and `channel_id`, by method. */
export const ARGUMENTS: Readonly<Record<string, string>> = {
  "assistant.threads.setStatus": "thread_ts status loading_messages icon_emoji icon_url username",
  "assistant.threads.setSuggestedPrompts": "thread_ts title prompts",
  "assistant.threads.setTitle": "thread_ts title",
  "bookmarks.add": "title type link emoji",
  "bookmarks.edit": "bookmark_id title link emoji",
  "bookmarks.list": "",
  "bookmarks.remove": "bookmark_id",
  "chat.appendStream": `ts ${STREAMED}`,
  "chat.delete": "ts as_user",
  "chat.deleteScheduledMessage": "scheduled_message_id as_user",
  "chat.getPermalink": "message_ts",
  "chat.meMessage": "text",
  "chat.postEphemeral": `user thread_ts ${MESSAGE}`,
  "chat.postMessage": POSTED,
  "chat.scheduleMessage": `post_at ${POSTED}`,
  "chat.startStream": `thread_ts ${RECIPIENT} task_display_mode ${STREAMED} ${SENDER}`,
  "chat.stopStream": `ts blocks metadata ${STREAMED}`,
  "chat.unfurl":
    "ts unfurls user_auth_message user_auth_required user_auth_url user_auth_blocks metadata",
  "chat.update": `ts reply_broadcast ${MESSAGE}`,
  "conversations.archive": "",
  "conversations.close": "",
  "conversations.history": `include_all_metadata inclusive latest oldest ${PAGE}`,
  "conversations.info": "include_locale include_num_members",
  "conversations.invite": "users force",
  "conversations.join": "",
  "conversations.kick": "user",
  "conversations.leave": "",
  "conversations.mark": "ts",
  "conversations.members": PAGE,
  "conversations.rename": "name",
  "conversations.replies": `ts include_all_metadata inclusive latest oldest ${PAGE}`,
  "conversations.setPurpose": "purpose",
  "conversations.setTopic": "topic",
  "conversations.unarchive": "",
  "pins.add": "timestamp",
  "pins.list": "",
  "pins.remove": "timestamp",
  "reactions.add": "name timestamp",
  "reactions.get": "timestamp full",
  "reactions.remove": "name timestamp",
};

const CHANNEL_ARGUMENTS = ["channel", "channel_id"];
const KNOWN: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries(ARGUMENTS).map(([method, names]) => [
    method,
    new Set([...CHANNEL_ARGUMENTS, ...names.split(" ").filter(Boolean)]),
  ]),
);

/** Arguments that are JSON; in a form, and often in a JSON body, they are sent as text. */
const STRUCTURED: ReadonlySet<string> = new Set(
  "attachments blocks chunks metadata prompts unfurls user_auth_blocks".split(" "),
);
/** Members by which a block or an attachment shows a file, a call or a canvas. */
const EMBEDDED = /^(?:slack_file|file|file_ids?|files|external_id|call_id|canvas_id|list_id)$/;

/** Returns the conversations that the arguments name, and all other resources in them. */
export function resourcesOf(
  method: string,
  values: ReadonlyMap<string, StrictJson>,
): readonly ServiceResource[] {
  const known = KNOWN.get(method);
  const odd = [...values.keys()].find((name) => known?.has(name) !== true);
  if (odd !== undefined)
    return [unscopable("An argument may name something besides the conversation")];
  const channels = CHANNEL_ARGUMENTS.flatMap((name) => {
    const value = values.get(name);
    return value === undefined ? [] : [channelResource(value)];
  });
  if (channels.length === 0) return [unscopable("The arguments name no conversation")];
  return [...channels, ...shownResources(values)];
}

/** Returns the targets of links in texts, and the objects in blocks. */
function shownResources(values: ReadonlyMap<string, StrictJson>): readonly ServiceResource[] {
  const conversations = new Set<string>();
  for (const [name, value] of values) {
    const document = documentOf(name, value);
    if (document === undefined) return [unscopable(`\`${name}\` is not JSON`)];
    for (const { key, value: inner } of jsonMembers(document)) {
      if (EMBEDDED.test(key)) return [unscopable("A block shows a file, a call or a canvas")];
      // The key is checked as well: `unfurls` is keyed by addresses.
      for (const text of typeof inner === "string" ? [key, inner] : [key])
        if (!collectLinks(text, conversations))
          return [unscopable("The text links to an unknown object in Slack")];
    }
    if (conversations.size > MAX_LINKED)
      return [unscopable("The message links to too many conversations")];
  }
  return [...conversations].map(channelResource);
}

/** Returns undefined for text that should be JSON but is not. */
function documentOf(name: string, value: StrictJson): StrictJson | undefined {
  if (!STRUCTURED.has(name) || typeof value !== "string" || value === "") return value;
  const parsed = parseStrictJson(Buffer.from(value));
  return parsed.kind === "parsed" ? parsed.value : undefined;
}

const MAX_LINKED = 50;
const SLACK_HOST = /slack(?:-[a-z]{1,10})?\.(?:com|net)/gi;
const MESSAGE_LINK =
  /^(?:[a-z0-9-]+\.)+slack(?:-gov)?\.com\/archives\/([A-Z0-9]{2,40})(?:\/p[0-9]{1,32})?(?:[?#].*)?$/i;
const CONVERSATION_PARAMETER = /[?&#;](?:cid|channel)=([A-Za-z0-9]*)/g;

/**
 * Adds the conversations that a text links to; returns false if it links to something else in
 * Slack. Slack interprets addresses like browsers, so lookalikes of its letters and dots, and
 * invisible characters, are normalized.
 */
function collectLinks(text: string, conversations: Set<string>): boolean {
  if (!/\S\.|[^\0-\x7f]/.test(text)) return true;
  const plain = text
    .normalize("NFKC")
    .replace(/[\u3002\uff61]/g, ".")
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "");
  for (const token of plain.split(/[\s<>|"'`()[\]{}]+/)) {
    const [host, ...more] = token.matchAll(SLACK_HOST);
    if (host === undefined) continue;
    let start = host.index;
    while (start > 0 && /[a-z0-9.-]/i.test(token[start - 1] as string)) start -= 1;
    const link = token.slice(start).replace(/[.,;:!?]{1,9}$/, "");
    // A bare mention of the host is not a link.
    if (more.length === 0 && !/[/?#:%\\]/.test(link)) continue;
    const channel = more.length === 0 ? MESSAGE_LINK.exec(link)?.[1] : undefined;
    if (channel === undefined) return false;
    conversations.add(channel);
    for (const [, id = ""] of link.matchAll(CONVERSATION_PARAMETER)) conversations.add(id);
  }
  return true;
}

function unscopable(reason: string): ServiceResource {
  return { kind: "unscopable", reason };
}
