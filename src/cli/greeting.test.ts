import { execFileSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import type { GatewayStatus } from "../gateway/status.ts";
import { renderGreeting, type TokenSource, tokenCommand } from "./greeting.ts";

const status: GatewayStatus = {
  ready: true,
  reason: undefined,
  policyVersion: "1",
  activeCalls: 0,
  objects: [],
  problems: [],
  envoys: [],
};

const TOKEN = "svcw_secret";

function greeting(token: TokenSource, model = "mock/echo"): string {
  return renderGreeting({
    baseUrl: "http://127.0.0.1:8000",
    externalUrl: "http://127.0.0.1:8080",
    status,
    trial: { namespace: "default", name: "hello", model, token },
  });
}

describe("the call to try", () => {
  test("holds the token where it is shown", () => {
    expect(greeting({ kind: "shown", token: TOKEN })).toContain(
      `  curl http://127.0.0.1:8000/v1/chat/completions -H 'Authorization: Bearer ${TOKEN}' `,
    );
  });

  test("asks for it where it is not", () => {
    const text = greeting({ kind: "asked", command: ["/opt/svc", "token", "hello"] });
    expect(text).toContain(`-H "Authorization: Bearer $(/opt/svc token hello)" `);
    expect(text).not.toContain("svcw_");
  });

  test("is one shell command, whatever is in its words", () => {
    const command = tokenCommand(
      "/a b/it's $HOME/svc",
      { namespace: "team", name: "hello" },
      '/state `id`/"x"',
    );
    const [line = ""] = /^ {2}curl .*$/m.exec(greeting({ kind: "asked", command }, "it's")) ?? [];
    // Returns the words of the command that it would run.
    const words = execFileSync(
      "sh",
      ["-c", `curl() { printf '%s\\n' "$@"; }\n${line.replace("$(", "$(printf '<%s>' ")}`],
      { encoding: "utf8" },
    );
    expect(words.split("\n")).toEqual([
      "http://127.0.0.1:8000/v1/chat/completions",
      "-H",
      "Authorization: Bearer " +
        '</a b/it\'s $HOME/svc><token><hello><--namespace><team><--state-dir></state `id`/"x">',
      "-H",
      "Content-Type: application/json",
      "-d",
      `{"model":"it's","messages":[{"role":"user","content":"Hello"}]}`,
      "",
    ]);
  });
});

test("the command that prints a token names what is not the default", () => {
  const agent = { namespace: "default", name: "hello" };
  expect(tokenCommand("svc", agent, undefined)).toEqual(["svc", "token", "hello"]);
  expect(tokenCommand("svc", { ...agent, namespace: "team" }, "/s")).toEqual([
    "svc",
    "token",
    "hello",
    "--namespace",
    "team",
    "--state-dir",
    "/s",
  ]);
});

test("without an agent that is ready, it says so", () => {
  const text = renderGreeting({
    baseUrl: "http://127.0.0.1:8000",
    externalUrl: undefined,
    status,
    trial: undefined,
  });
  expect(text).toContain("No Agent is ready");
  expect(text).not.toContain("External");
});
