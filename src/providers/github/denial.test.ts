import { expect, test } from "vitest";
import { request } from "../testing.ts";
import { wordDenial } from "./denial.ts";

const DENIAL = {
  status: 403,
  code: "out_of_scope",
  message: "other/hello is outside the scope of github.",
  details: {},
};

test.each([
  "GET https://github.com/other/hello.git/info/refs?service=git-upload-pack",
  "POST https://github.com/other/hello/git-upload-pack",
  "POST https://github.example.com/other/hello.git/git-receive-pack",
])("git is told in plain text: %s", (line) => {
  expect(wordDenial(request(line), DENIAL)).toEqual({
    headers: [["content-type", "text/plain; charset=utf-8"]],
    body: "svc: other/hello is outside the scope of github.\n",
  });
});

test.each([
  "GET https://api.github.com/repos/other/hello/pulls",
  "POST https://github.com/other/hello.git/info/lfs/objects/batch",
  "GET https://github.com/other/hello/info/refs/heads",
])("others are told in JSON: %s", (line) => {
  expect(wordDenial(request(line), DENIAL)).toBeUndefined();
});

test("a name cannot move a terminal's cursor, nor add a line", () => {
  const { body } = wordDenial(request("GET https://github.com/o/r/info/refs"), {
    ...DENIAL,
    message: "a\u001b[2Jb\nremote: ok\u009b",
  }) ?? { body: "" };
  expect(body).toBe("svc: a [2Jb remote: ok \n");
});
