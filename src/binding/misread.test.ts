/**
 * Requests that a service could interpret in another way than the proxy: credentials in another
 * spelling, and requests that ask to be treated as another request. Tested for every plugin, also
 * in audit mode.
 */
import { describe, expect, test } from "vitest";
import type { ProviderPlugin } from "../providers/contract.ts";
import { plugins } from "../providers/registry.ts";
import { request } from "../providers/testing.ts";
import type { Binding, BindingSnapshot } from "./binding.ts";
import { compileBindingPolicy } from "./binding.ts";
import { judge } from "./judge.ts";
import { isStripped, REFUSED_HEADERS } from "./rewriting.ts";

/** Returns the refusal's message, or "" if the request is forwarded. */
function refusal(
  plugin: ProviderPlugin,
  query: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): string {
  const policy = compileBindingPolicy(
    {
      name: "bound",
      type: "github",
      auth: { type: "token", env: {} },
      config: {},
      policy: { deny: [], httpRules: [] },
      scope: {},
      audit: { enforcement: "audit", logRequests: false },
    },
    plugin,
  );
  const instance = {
    resolveAction: () => ({ kind: "unresolved", reason: "It is not asked for." }),
  };
  const binding = { name: "bound", plugin, policy, instance, hosts: [] } as unknown as Binding;
  const snapshot: BindingSnapshot = { version: "1", workload: "w", bindingsOf: () => [binding] };
  const asked = {
    ...request("POST https://host.example/path", body === undefined ? {} : { body }),
    query,
    headers: new Map(Object.entries(headers)),
  };
  const verdict = judge(asked, snapshot);
  if (verdict.kind === "permitted") return "";
  expect(verdict.refusal).toMatchObject({ status: 400, code: "malformed_request" });
  return verdict.refusal?.message ?? "";
}

const hex = (character: string): string =>
  `%${character.charCodeAt(0).toString(16).padStart(2, "0")}`;
const encoded = (name: string): string => Array.from(name, hex).join("");
const upper = (name: string): string =>
  name === name.toUpperCase() ? name.toLowerCase() : name.toUpperCase();

/** Spellings of a parameter that some server reads as `name`. */
const SPELLINGS: readonly (readonly [string, (name: string) => string])[] = [
  ["a letter encoded", (name) => hex(name[0] ?? "") + name.slice(1)],
  ["the last letter encoded", (name) => name.slice(0, -1) + hex(name.at(-1) ?? "")],
  ["every letter encoded", encoded],
  ["encoded twice", (name) => encoded(name).replaceAll("%", "%25")],
  ["encoded three times", (name) => encoded(name).replaceAll("%", "%2525")],
  ["encoded beyond reading", (name) => encoded(name).replaceAll("%", `%${"25".repeat(9)}`)],
  ["in another case", upper],
  ["as an array", (name) => `${name}[]`],
  ["as an array, encoded", (name) => `${name}%5B%5D`],
  ["as a member", (name) => `${name}[x]`],
  ["with a space before it", (name) => `+${name}`],
  ["with two spaces before it", (name) => `++${name}`],
  ["with an encoded space before it", (name) => `%20${name}`],
  ["with a space behind it", (name) => `${name}+`],
  ["with a line end behind it", (name) => `${name}%0a`],
  ["with a NUL behind it", (name) => `${name}%00`],
  ["with a mark before it", (name) => `?${name}`],
  ["with an encoded ampersand before it", (name) => `%26${name}`],
  ["behind a semicolon", (name) => `x=1;${name}`],
  ["behind a semicolon, first", (name) => `;${name}`],
  ["behind an entity", (name) => `x=1&amp;${name}`],
  ["behind a semicolon, encoded", (name) => `x=1;${encoded(name)}`],
  ["in wide letters", (name) => encodeURIComponent(wide(name))],
  ["in escapes of old", (name) => `%u00${hex(name[0] ?? "").slice(1)}${name.slice(1)}`],
  ["with what is invisible", (name) => `${name[0]}%E2%80%8B${name.slice(1)}`],
  ["in bytes that are no text", (name) => `%c1${hex(name[0] ?? "")}${name.slice(1)}`],
];

function wide(name: string): string {
  return name.replace(/[a-z]/gi, (letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0));
}

for (const plugin of plugins.values()) {
  describe(plugin.providerName, () => {
    test.each(SPELLINGS)("no credential's parameter %s", (_name, spell) => {
      expect(plugin.credentialQuery.length).toBeGreaterThan(0);
      for (const name of plugin.credentialQuery) {
        const query = `a=b&${spell(name)}=own&c=d`;
        expect([query, refusal(plugin, query) !== ""]).toEqual([query, true]);
      }
    });

    test("by its own name it comes off, and is no reason to refuse", () => {
      for (const name of plugin.credentialQuery)
        expect(refusal(plugin, `a=b&${name}=own&c=${name}&d=x%3B${name}%3Dy`)).toBe("");
      expect(refusal(plugin, "q=a%20b&page=2&filter[x]=1&empty&=nameless")).toBe("");
    });

    test("with separators of another kind it is another spelling", () => {
      for (const name of plugin.credentialQuery.filter((each) => /[-_]/.test(each)))
        for (const sign of [".", "-", "_", "+", "%20"]) {
          const other = name.replaceAll(/[-_]/g, sign);
          if (other !== name) expect([other, refusal(plugin, other) !== ""]).toEqual([other, true]);
        }
    });

    test.each([...REFUSED_HEADERS])("the header %s is refused, whatever it holds", (name) => {
      for (const value of ["DELETE", "GET", "/x", ""])
        expect(refusal(plugin, "", { [name]: value })).toContain(name);
    });

    test.each([
      "_method=DELETE",
      "a=1&_method=DELETE",
      "%5fmethod=DELETE",
      "_%6dethod=DELETE",
      "_METHOD=DELETE",
      "%255fmethod=DELETE",
      "a=1;_method=DELETE",
      "_method[]=DELETE",
      "x-http-method-override=DELETE",
      "$httpMethod=DELETE",
      "_method",
    ])("another method by %s is refused, in the query and in a form", (text) => {
      expect(refusal(plugin, text)).toContain("another method");
      const form = { "content-type": "Application/X-WWW-Form-Urlencoded; charset=utf-8" };
      expect(refusal(plugin, "", form, text)).toContain("another method");
      expect(refusal(plugin, "", { "content-type": "application/json" }, text)).toBe("");
    });

    test.each(["payment_method=x", "a=_method", "method=x", "a=%5fmethod%3Dx"])(
      "%s asks for nothing else",
      (query) => {
        expect(refusal(plugin, query)).toBe("");
      },
    );

    test.each([
      "x_api_key",
      "transfer_encoding",
      "content_length",
      "x_http_method_override",
      "author_ization",
      "x.api.key",
      "x-api_key",
      "x-forwarded_host",
      "x-amz-meta_x",
      "x-amz_meta-x",
      "a|b",
      "a~b",
    ])("the header %s is refused", (name) => {
      expect(refusal(plugin, "", { [name]: "own" })).toContain(name);
    });

    test("objects' own metadata may be called as one likes", () => {
      const names = ["x-amz-meta-a_b", "x-ms-meta-a_b", "x-goog-meta-a.b"];
      for (const name of names) expect(refusal(plugin, "", { [name]: "x" })).toBe("");
      expect(refusal(plugin, "", { "x-ratelimit-1": "x", "if-none-match": "x" })).toBe("");
    });
  });
}

test.each([
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-uri",
  "x-forwarded-prefix",
  "x-forwarded-path",
  "x-forwarded-anything",
  "x-forwarded",
  "forwarded",
  "x-host",
  "x-real-ip",
])("the header %s is taken off", (name) => {
  expect(isStripped(name)).toBe(true);
  expect(REFUSED_HEADERS.has(name)).toBe(false);
});

test("names without end are not read without end", () => {
  const [plugin] = [...plugins.values()] as [ProviderPlugin];
  const form = { "content-type": "application/x-www-form-urlencoded" };
  expect(refusal(plugin, "", form, "a&".repeat(1_000_000))).toBe("");
  expect(refusal(plugin, "", form, "a+&".repeat(1_000_000))).toContain("or may");
  expect(refusal(plugin, "", form, "%25".repeat(1_000_000))).toBe("");
});
