// What agents do with discord.js's client of the HTTP API: one line of JSON for each try.
import { REST } from "@discordjs/rest";
import { attempts } from "./attempt.mjs";

const rest = new REST({ version: "10" }).setToken("agents-own");
const attempt = attempts(({ status, code, message }) => ({ status, code, message }));

const CHANNEL = "41771983423143937";
await attempt("who", async () => (await rest.get("/users/@me")).username);
await attempt("post", async () => {
  const { id, content } = await rest.post(`/channels/${CHANNEL}/messages`, {
    body: { content: "Hello" },
  });
  return [id, content];
});
await attempt("reply", async () => {
  const { message_reference: reference } = await rest.post(`/channels/${CHANNEL}/messages`, {
    body: { content: "Reply", message_reference: { message_id: "1", channel_id: CHANNEL } },
  });
  return reference;
});
await attempt("read", async () => {
  const messages = await rest.get(`/channels/${CHANNEL}/messages`, {
    query: new URLSearchParams({ limit: "10" }),
  });
  return messages.map(({ content }) => content);
});
await attempt("edit", async () => {
  const { content } = await rest.patch(`/channels/${CHANNEL}/messages/1`, {
    body: { content: "Edited" },
  });
  return content;
});
await attempt("react", () =>
  rest.put(`/channels/${CHANNEL}/messages/1/reactions/${encodeURIComponent("🔥")}/@me`),
);
await attempt("discord's own error", () => rest.get(`/channels/${CHANNEL}/messages/999`));
await attempt("denied action", () => rest.delete(`/channels/${CHANNEL}/messages/1`));
await attempt("denied channel", () => rest.get("/channels/5/messages"));
await attempt("denied forward", () =>
  rest.post(`/channels/${CHANNEL}/messages`, {
    body: { message_reference: { type: 1, message_id: "7", channel_id: "5" } },
  }),
);
await attempt("denied file", () =>
  rest.post(`/channels/${CHANNEL}/messages`, {
    body: { content: "with a file" },
    files: [{ name: "a.txt", data: Buffer.from("a file") }],
  }),
);
await attempt("denied guild", () => rest.delete("/guilds/6"));
