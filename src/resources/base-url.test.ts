import { describe, expect, test } from "vitest";
import { parseBaseURL } from "./base-url.ts";

describe("parseBaseURL", () => {
  test.each([
    ["https://api.openai.com/v1", "https api.openai.com 443 /v1"],
    ["http://localhost:11434/", "http localhost 11434 "],
    ["HTTPS://API.Example.COM:8443/a/b-c/", "https api.example.com 8443 /a/b-c"],
    ["http://[fd00::1]:80", "http fd00::1 80 "],
    ["http://10.0.0.1", "http 10.0.0.1 80 "],
    ["https://bücher.example/v1", "https xn--bcher-kva.example 443 /v1"],
  ])("%s", (text, expected) => {
    const result = parseBaseURL(text);
    if (result.kind === "error") throw new Error(result.message);
    const { tls, host, port, basePath } = result.endpoint;
    expect(`${tls ? "https" : "http"} ${host} ${port} ${basePath}`).toBe(expected);
  });

  test.each([
    ["", "http or https"],
    ["api.openai.com/v1", "http or https"],
    ["ftp://x/v1", "http or https"],
    ["file:///etc/passwd", "http or https"],
    ["https:///v1", "valid host"],
    ["https://user:pass@x/v1", "user name"],
    ["https://x@y/v1", "user name"],
    ["https://x/v1?key=1", "query"],
    ["https://x/v1?", "query"],
    ["https://x?y", "query"],
    ["https://x/v1#f", "fragment"],
    ["https://x/v1\nHost: y", "white space"],
    ["https://x/\tv1", "white space"],
    ["https://x\\y/v1", "backslashes"],
    ["https://x/\u0000", "control"],
    ["https://x//v1", "plain path"],
    ["https://x/a/../v1", "plain path"],
    ["https://x/./v1", "plain path"],
    ["https://x/%2e%2e/v1", "plain path"],
    ["https://x:0/v1", "port 0"],
    ["https://x:99999/v1", "valid host"],
    ["https://exa mple/", "white space"],
    ["https://a%00b/", "valid host"],
  ])("%j is refused", (text, message) =>
    expect(parseBaseURL(text)).toEqual({
      kind: "error",
      message: expect.stringContaining(message),
    }),
  );
});
