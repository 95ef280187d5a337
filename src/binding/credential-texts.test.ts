import { describe, expect, test } from "vitest";
import type { Injection } from "../providers/contract.ts";
import { credentialTexts } from "./credential-texts.ts";

const plugin = {
  credentialHeaders: ["authorization", "x-amz-date", "x-amz-security-token"],
  credentialQuery: ["access_token"],
};

const texts = (more: Partial<Injection>): readonly string[] =>
  credentialTexts({ set: [], setQuery: [], ...more }, plugin);

describe("what could be quoted of a credential", () => {
  test("a token without its scheme", () => {
    expect(texts({ set: [["authorization", "Bearer t0ken"]] })).toEqual(["t0ken"]);
  });

  test("Basic credentials, and the password in them", () => {
    const basic = Buffer.from("x-access-token:ghs_1:2").toString("base64");
    expect(texts({ set: [["authorization", `Basic ${basic}`]] })).toEqual([basic, "ghs_1:2"]);
  });

  test("a signature and a session token, but not the time of a signature, nor other headers", () => {
    const signature = "AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host, Signature=00ff";
    expect(
      texts({
        set: [
          ["authorization", signature],
          ["x-amz-date", "20260131T120000Z"],
          ["x-amz-security-token", "s3ss10n"],
          ["x-amz-content-sha256", "UNSIGNED-PAYLOAD"],
          ["accept", "Bearer no-credential"],
        ],
      }),
    ).toEqual([signature.slice("AWS4-HMAC-SHA256 ".length), "s3ss10n"]);
  });

  test("a query parameter, encoded and not", () => {
    expect(
      texts({
        setQuery: [
          ["access_token", "a/b"],
          ["page", "2"],
        ],
      }),
    ).toEqual(["a/b", "a%2Fb"]);
  });

  test("none, where nothing was put on; and never a line break, which parts them", () => {
    expect(texts({})).toEqual([]);
    expect(texts({ setQuery: [["access_token", "a\nb"]] })).toEqual(["a%0Ab"]);
  });
});
