import { expect, test } from "vitest";
import { request } from "../testing.ts";
import { wordDenial } from "./denial.ts";

const DENIAL = {
  status: 403,
  code: "action_denied",
  message: "The action chat:delete is not allowed for slack.",
  details: { binding: "slack" },
};

test("the Web API: ok, error and messages", () => {
  const { body } = wordDenial(request("POST https://slack.com/api/chat.delete"), DENIAL) ?? {};
  expect(JSON.parse(body ?? "")).toEqual({
    ok: false,
    error: "action_denied",
    response_metadata: { messages: [`[ERROR] ${DENIAL.message}`] },
    code: "action_denied",
    message: DENIAL.message,
    binding: "slack",
    source: "svc",
  });
});

test("files have no form of their own", () => {
  const sent = request("GET https://files.slack.com/files-pri/T1-F1/x.png");
  expect(wordDenial(sent, DENIAL)).toBeUndefined();
});
