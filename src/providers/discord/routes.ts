/**
 * Discord's HTTP API, from its documentation: https://docs.discord.com/developers/reference.
 * Entries are a category and its operations: `METHODS path`; ids are numbers. Unlisted operations
 * are denied.
 */
export const ROUTES: Readonly<Record<string, readonly string[]>> = {
  channels: [
    "GET,PATCH,DELETE /channels/{channel:int}",
    "PUT,DELETE /channels/{channel:int}/permissions/{overwrite:int}",
    "POST /channels/{channel:int}/followers",
    "GET,POST,PATCH /guilds/{guild:int}/channels",
  ],
  messages: [
    "GET,POST /channels/{channel:int}/messages",
    "GET,PATCH,DELETE /channels/{channel:int}/messages/{message:int}",
    "POST /channels/{channel:int}/messages/bulk-delete",
    "POST /channels/{channel:int}/messages/{message:int}/crosspost",
    "POST /channels/{channel:int}/typing",
    "GET /guilds/{guild:int}/messages/search",
  ],
  pins: [
    "GET /channels/{channel:int}/pins",
    "PUT,DELETE /channels/{channel:int}/pins/{message:int}",
    "GET /channels/{channel:int}/messages/pins",
    "PUT,DELETE /channels/{channel:int}/messages/pins/{message:int}",
  ],
  reactions: [
    "DELETE /channels/{channel:int}/messages/{message:int}/reactions",
    "GET,DELETE /channels/{channel:int}/messages/{message:int}/reactions/{emoji}",
    "PUT,DELETE /channels/{channel:int}/messages/{message:int}/reactions/{emoji}/@me",
    "DELETE /channels/{channel:int}/messages/{message:int}/reactions/{emoji}/{user:int}",
  ],
  polls: [
    "GET /channels/{channel:int}/polls/{message:int}/answers/{answer:int}",
    "POST /channels/{channel:int}/polls/{message:int}/expire",
  ],
  threads: [
    "POST /channels/{channel:int}/threads",
    "POST /channels/{channel:int}/messages/{message:int}/threads",
    "GET /channels/{channel:int}/thread-members",
    "PUT,DELETE /channels/{channel:int}/thread-members/@me",
    "GET,PUT,DELETE /channels/{channel:int}/thread-members/{user:int}",
    "GET /channels/{channel:int}/threads/archived/public",
    "GET /channels/{channel:int}/threads/archived/private",
    "GET /channels/{channel:int}/users/@me/threads/archived/private",
    "GET /guilds/{guild:int}/threads/active",
  ],
  invites: [
    "GET,POST /channels/{channel:int}/invites",
    "GET /guilds/{guild:int}/invites",
    "GET,DELETE /invites/{code}",
    "GET /guilds/{guild:int}/vanity-url",
  ],
  webhooks: [
    "GET,POST /channels/{channel:int}/webhooks",
    "GET /guilds/{guild:int}/webhooks",
    "GET,PATCH,DELETE /webhooks/{webhook:int}",
  ],
  guilds: [
    "GET,PATCH /guilds/{guild:int}",
    "GET /guilds/{guild:int}/preview",
    "GET,POST /guilds/{guild:int}/prune",
    "GET /guilds/{guild:int}/regions",
    "GET /guilds/{guild:int}/integrations",
    "DELETE /guilds/{guild:int}/integrations/{integration:int}",
    "GET,PATCH /guilds/{guild:int}/widget",
    "GET,PATCH /guilds/{guild:int}/welcome-screen",
    "GET,PUT /guilds/{guild:int}/onboarding",
    "GET,POST /guilds/{guild:int}/auto-moderation/rules",
    "GET,PATCH,DELETE /guilds/{guild:int}/auto-moderation/rules/{rule:int}",
  ],
  "audit-logs": ["GET /guilds/{guild:int}/audit-logs"],
  members: [
    "GET /guilds/{guild:int}/members",
    "GET /guilds/{guild:int}/members/search",
    "GET,PATCH,DELETE /guilds/{guild:int}/members/{user:int}",
    "PATCH /guilds/{guild:int}/members/@me",
    "GET,PATCH /guilds/{guild:int}/voice-states/@me",
    "GET,PATCH /guilds/{guild:int}/voice-states/{user:int}",
  ],
  bans: [
    "GET /guilds/{guild:int}/bans",
    "GET,PUT,DELETE /guilds/{guild:int}/bans/{user:int}",
    "POST /guilds/{guild:int}/bulk-ban",
  ],
  roles: [
    "GET,POST,PATCH /guilds/{guild:int}/roles",
    "GET,PATCH,DELETE /guilds/{guild:int}/roles/{role:int}",
    "PUT,DELETE /guilds/{guild:int}/members/{user:int}/roles/{role:int}",
  ],
  emojis: [
    "GET,POST /guilds/{guild:int}/emojis",
    "GET,PATCH,DELETE /guilds/{guild:int}/emojis/{emoji:int}",
  ],
  stickers: [
    "GET /stickers/{sticker:int}",
    "GET,POST /guilds/{guild:int}/stickers",
    "GET,PATCH,DELETE /guilds/{guild:int}/stickers/{sticker:int}",
  ],
  "scheduled-events": [
    "GET,POST /guilds/{guild:int}/scheduled-events",
    "GET,PATCH,DELETE /guilds/{guild:int}/scheduled-events/{event:int}",
    "GET /guilds/{guild:int}/scheduled-events/{event:int}/users",
  ],
  users: [
    "GET,PATCH /users/@me",
    "GET /users/@me/guilds",
    "DELETE /users/@me/guilds/{guild:int}",
    "POST /users/@me/channels",
    "GET /users/{user:int}",
  ],
  commands: [
    "GET,POST,PUT /applications/{application:int}/commands",
    "GET,PATCH,DELETE /applications/{application:int}/commands/{command:int}",
    "GET,POST,PUT /applications/{application:int}/guilds/{guild:int}/commands",
    "GET,PATCH,DELETE /applications/{application:int}/guilds/{guild:int}/commands/{command:int}",
  ],
  applications: ["GET,PATCH /applications/@me"],
  gateway: ["GET /gateway", "GET /gateway/bot", "GET /voice/regions"],
};

/**
 * Routes with a token in the path, which is the whole credential: the bot's token is not injected.
 */
export const TOKEN_ROUTES: Readonly<Record<string, readonly string[]>> = {
  interactions: ["POST /interactions/{interaction:int}/{token}/callback"],
  webhooks: [
    "GET,POST,PATCH,DELETE /webhooks/{webhook:int}/{token}",
    "GET,PATCH,DELETE /webhooks/{webhook:int}/{token}/messages/{message:int}",
    "GET,PATCH,DELETE /webhooks/{webhook:int}/{token}/messages/@original",
  ],
};
