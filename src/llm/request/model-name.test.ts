import { expect, test } from "vitest";
import { MAX_MODEL_NAME } from "../../resources/model-names.ts";
import { checkModelName } from "./model-name.ts";

test.each([
  "gpt-4o",
  "openai/gpt-4o-2024-08-06",
  "meta-llama/Llama-3.1-8B:free",
  "accounts/fireworks/models/x",
  "ft:gpt-4o:org::id",
  "claude-sonnet-4-5[1m]",
  "arn:aws:bedrock:us-east-1::model/x",
  "a@b+c=d,e(f)~g%h#i?j;k!l$m&n<o>p{q}r|s^t",
  "x".repeat(MAX_MODEL_NAME),
])("%s is a name", (name) => {
  expect(() => checkModelName(name)).not.toThrow();
});

test.each([
  ["", "model must be a non-empty string"],
  ["x".repeat(MAX_MODEL_NAME + 1), "model must have at most 256 characters; it has 257"],
  ["x".repeat(30_000_000), "model must have at most 256 characters; it has 30000000"],
  ["gpt 4", "visible ASCII"],
  ["gpt\n4", "visible ASCII"],
  ["gpt\u00004", "visible ASCII"],
  ["gpt\u001b[31m", "visible ASCII"],
  ['gpt"4', "visible ASCII"],
  ["gpt'4", "visible ASCII"],
  ["gpt\\4", "visible ASCII"],
  ["gpt`4", "visible ASCII"],
  ["gpt-*", "visible ASCII"],
  ["gpt-４", "visible ASCII"],
  ["gрt-4", "visible ASCII"],
  ["\u202egpt", "visible ASCII"],
])("%j is none", (name, message) => {
  expect(() => checkModelName(name)).toThrow(message);
});
