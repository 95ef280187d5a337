/**
 * An external program: the official clients, configured only by the environment. Prints the
 * received answers.
 */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const model = process.argv[2] ?? "";
const openai = new OpenAI();
const anthropic = new Anthropic();
const messages = [{ role: "user" as const, content: "Hi" }];

const chat = await openai.chat.completions.create({ model, messages });
let chatStream = "";
for await (const chunk of await openai.chat.completions.create({ model, messages, stream: true }))
  chatStream += chunk.choices[0]?.delta.content ?? "";

const message = await anthropic.messages.create({ model, messages, max_tokens: 64 });
let messageStream = "";
for await (const event of anthropic.messages.stream({ model, messages, max_tokens: 64 })) {
  if (event.type === "content_block_delta" && event.delta.type === "text_delta")
    messageStream += event.delta.text;
}

const listed: string[] = [];
for await (const each of openai.models.list()) listed.push(each.id);

process.stdout.write(
  JSON.stringify({
    chat: chat.choices[0]?.message.content,
    chatStream,
    message: message.content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    messageStream,
    counted: (
      await anthropic.messages
        .countTokens({ model, messages })
        .catch((error: { status?: number }) => ({ input_tokens: error.status }))
    ).input_tokens,
    listed,
  }),
);
