/**
 * Slack's Web API: the methods of each action. The actions are the bot scopes that Slack itself
 * requires (https://docs.slack.dev/reference/methods); if it requires none, or one of four by the
 * kind of conversation, the first one's name is used. Unlisted methods are denied.
 */

/** Actions without a scope of their own in Slack, with the wider scope that it requires. */
export const BROADER: Readonly<Record<string, readonly string[]>> = {
  "chat:delete": ["chat:write"],
  "chat:update": ["chat:write"],
};

/** Methods on the conversation that an argument names. */
export const IN_CHANNEL: Readonly<Record<string, readonly string[]>> = {
  "chat:write": [
    "chat.postMessage",
    "chat.postEphemeral",
    "chat.meMessage",
    "chat.scheduleMessage",
    "chat.startStream",
    "chat.appendStream",
    "chat.stopStream",
  ],
  "chat:update": ["chat.update"],
  "chat:delete": ["chat.delete", "chat.deleteScheduledMessage"],
  "chat:read": ["chat.getPermalink"],
  "links:write": ["chat.unfurl"],
  "channels:history": ["conversations.history", "conversations.replies"],
  "channels:read": ["conversations.info", "conversations.members"],
  "channels:join": ["conversations.join"],
  "channels:manage": [
    "conversations.archive",
    "conversations.unarchive",
    "conversations.rename",
    "conversations.invite",
    "conversations.kick",
    "conversations.leave",
    "conversations.close",
    "conversations.mark",
    "conversations.setTopic",
    "conversations.setPurpose",
  ],
  "reactions:read": ["reactions.get"],
  "reactions:write": ["reactions.add", "reactions.remove"],
  "pins:read": ["pins.list"],
  "pins:write": ["pins.add", "pins.remove"],
  "bookmarks:read": ["bookmarks.list"],
  "bookmarks:write": ["bookmarks.add", "bookmarks.edit", "bookmarks.remove"],
  "assistant:write": [
    "assistant.threads.setStatus",
    "assistant.threads.setTitle",
    "assistant.threads.setSuggestedPrompts",
  ],
};

/** Methods on more than one conversation, or on none that an argument names. */
export const WIDE: Readonly<Record<string, readonly string[]>> = {
  "chat:read": ["chat.scheduledMessages.list"],
  "channels:read": ["conversations.list"],
  "channels:manage": ["conversations.create", "conversations.open"],
  "users:read": [
    "users.list",
    "users.info",
    "users.conversations",
    "users.getPresence",
    "bots.info",
  ],
  "users:read.email": ["users.lookupByEmail"],
  "users.profile:read": ["users.profile.get", "team.profile.get"],
  "users.profile:write": ["users.profile.set"],
  "users:write": ["users.setPresence"],
  "usergroups:read": ["usergroups.list", "usergroups.users.list"],
  "usergroups:write": [
    "usergroups.create",
    "usergroups.update",
    "usergroups.enable",
    "usergroups.disable",
    "usergroups.users.update",
  ],
  "files:read": ["files.list", "files.info"],
  "files:write": ["files.delete", "files.getUploadURLExternal", "files.completeUploadExternal"],
  "reactions:read": ["reactions.list"],
  "search:read": ["search.all", "search.files", "search.messages"],
  "team:read": ["team.info"],
  "emoji:read": ["emoji.list"],
  "dnd:read": ["dnd.info", "dnd.teamInfo"],
  "reminders:read": ["reminders.info", "reminders.list"],
  "reminders:write": ["reminders.add", "reminders.complete", "reminders.delete"],
  "views:write": ["views.open", "views.publish", "views.push", "views.update"],
  "canvases:read": ["canvases.sections.lookup"],
  "canvases:write": [
    "canvases.create",
    "canvases.edit",
    "canvases.delete",
    "canvases.access.set",
    "canvases.access.delete",
  ],
};

/** Methods about the caller only, or about no conversation. */
export const ABOUT_NOTHING: Readonly<Record<string, readonly string[]>> = {
  "auth:read": ["auth.test", "api.test"],
};
