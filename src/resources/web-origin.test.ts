import { expect, test } from "vitest";
import { hostSchema, originSchema } from "./web-origin.ts";

test.each<[text: string, isOrigin: boolean]>([
  ["https://inspector.example.com", true],
  ["http://localhost:6274", true],
  ["http://[::1]:6274", true],
  ["vscode-webview://1a2b", true],
  ["chrome-extension://abcdef", true],
  ["https://inspector.example.com/", false],
  ["https://inspector.example.com:443", false],
  ["https://Inspector.example.com", false],
  ["HTTPS://inspector.example.com", false],
  ["https://*.example.com", false],
  ["https://user@example.com", false],
  ["inspector.example.com", false],
  ["null", false],
  ["*", false],
  ["https://", false],
  ["", false],
])("%j is an origin: %s", (text, isOrigin) => {
  expect(originSchema.safeParse(text).success).toBe(isOrigin);
});

test.each<[text: string, isHost: boolean]>([
  ["svc.example.com", true],
  ["svc", true],
  ["192.0.2.1", true],
  ["2001:db8::1", true],
  ["[2001:db8::1]", false],
  ["svc.example.com:8080", false],
  ["svc.example.com.", false],
  ["Svc.example.com", false],
  ["https://svc.example.com", false],
  ["svc.example.com/x", false],
  ["user@svc.example.com", false],
  ["a b", false],
  ["", false],
])("%j is a host: %s", (text, isHost) => {
  expect(hostSchema.safeParse(text).success).toBe(isHost);
});
