/** Assertions about every request that reaches an upstream. */
import { expect } from "vitest";
import type { Fixture } from "./fixture.ts";
import { type DialectName, DIALECTS, type Recorded, type Vendor } from "./vendors.ts";

const KEY_HEADERS = ["authorization", "x-api-key", "api-key", "x-goog-api-key"] as const;

const KEY_HEADER: Readonly<Record<DialectName, (typeof KEY_HEADERS)[number]>> = {
  openai: "authorization",
  anthropic: "x-api-key",
  gemini: "x-goog-api-key",
};

const INTERNAL = /^(x-svc-|x-envoy-|x-forwarded-|forwarded$|via$|cookie$)/;

/** A whole request as one text. */
export function wire(request: Recorded): string {
  return `${request.method} ${request.path}\n${request.rawHeaders.join("\n")}\n${request.body}`;
}

/**
 * The upstream's own key, in its own header, and no other key; its own host; no internal header of
 * the gateway.
 */
export function expectMediated(fixture: Fixture, vendor: Vendor, request: Recorded): void {
  const text = wire(request);
  expect(text).not.toContain(fixture.token);
  for (const name of DIALECTS) {
    const other = fixture.vendors[name];
    if (other !== vendor) {
      expect(text, `${vendor.dialect} sees ${name}'s key`).not.toContain(other.key);
      expect(text, `${vendor.dialect} sees ${name}'s host`).not.toContain(other.host);
    }
  }
  const own = KEY_HEADER[vendor.dialect];
  for (const name of KEY_HEADERS) {
    const expected =
      name !== own ? undefined : own === "authorization" ? `Bearer ${vendor.key}` : vendor.key;
    expect(request.headers[name], name).toBe(expected);
  }
  expect(text.split(vendor.key).length - 1, "copies of the key").toBe(1);
  expect(request.headers.host).toBe(vendor.host);
  expect(request.method).toBe("POST");
  const internal = Object.keys(request.headers).filter((name) => INTERNAL.test(name));
  expect(internal).toEqual([]);
  expect(request.headers["anthropic-version"] !== undefined, "anthropic-version").toBe(
    vendor.dialect === "anthropic",
  );
}

/** The path of a chat at this vendor, below its base path. */
export function chatPath(vendor: Vendor, model: string, stream: boolean): string {
  switch (vendor.dialect) {
    case "openai":
      return `${vendor.basePath}/chat/completions`;
    case "anthropic":
      return `${vendor.basePath}/messages`;
    case "gemini":
      return (
        `${vendor.basePath}/models/${model}:` +
        (stream ? "streamGenerateContent?alt=sse" : "generateContent")
      );
  }
}

/** Expects a chat request to this model, streamed or not, and mediated. */
export function expectChat(
  fixture: Fixture,
  vendor: Vendor,
  request: Recorded,
  model: string,
  stream: boolean,
): void {
  expectMediated(fixture, vendor, request);
  expect(request.path).toBe(chatPath(vendor, model, stream));
  if (vendor.dialect !== "gemini") {
    expect(request.json["model"]).toBe(model);
    expect(request.json["stream"] === true).toBe(stream);
  }
}
