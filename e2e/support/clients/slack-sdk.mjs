// What agents do with Slack's SDK: one line of JSON for each try.
/* eslint-disable unicorn/require-post-message-target-origin -- it is chat's, not a window's */
import { WebClient } from "@slack/web-api";
import { attempts } from "./attempt.mjs";

// Without retries: the SDK repeats every answer other than 200 and 429 for half an hour.
const slack = new WebClient("xoxb-agents-own", { retryConfig: { retries: 0 } });
const attempt = attempts(({ statusCode, data, body, message }) => ({
  status: statusCode,
  code: (body ?? data)?.error,
  message: (body ?? data)?.response_metadata?.messages?.[0] ?? message,
}));

const channel = "C0123456789";
await attempt("who", async () => (await slack.auth.test()).user_id);
await attempt("post", async () => (await slack.chat.postMessage({ channel, text: "Hello" })).ts);
await attempt("blocks", async () => {
  const blocks = [{ type: "section", text: { type: "mrkdwn", text: "*Hello*" } }];
  const { message } = await slack.chat.postMessage({ channel, text: "Hello", blocks });
  return message.blocks;
});
await attempt("history", async () => {
  const { messages } = await slack.conversations.history({ channel, limit: 10 });
  return messages.map(({ text }) => text);
});
await attempt("reply", async () => {
  const { messages } = await slack.conversations.history({ channel, limit: 1 });
  const { message } = await slack.chat.postMessage({
    channel,
    text: "Reply",
    thread_ts: messages[0].ts,
  });
  return message.thread_ts === messages[0].ts;
});
await attempt("slack's own error", () =>
  slack.reactions.add({ channel, timestamp: "1", name: "x" }),
);
await attempt("denied action", () => slack.chat.delete({ channel, ts: "1.1" }));
await attempt("denied channel", () =>
  slack.chat.postMessage({ channel: "C9999999999", text: "secret plans" }),
);
await attempt("denied list", () => slack.conversations.list());
await attempt("denied method", () => slack.admin.users.list({ team_id: "T1" }));
