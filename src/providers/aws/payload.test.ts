/** The part of a signature that covers the body. */
import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { request } from "../testing.ts";
import { bodyPayload, s3Payload } from "./payload.ts";

const HASH = createHash("sha256").update("x").digest("hex");
const EMPTY = createHash("sha256").digest("hex");
const SAID = "x-amz-content-sha256";

function call(headers: Record<string, string>, body?: string): ReturnType<typeof request> {
  return request("PUT https://bucket.s3.eu-west-1.amazonaws.com/a", {
    headers,
    ...(body !== undefined && { body }),
  });
}

describe("of S3", () => {
  test.each([HASH, "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])(
    "is what the client says: %s",
    (said) => {
      expect(s3Payload(call({ [SAID]: said }))).toEqual({ kind: "hash", value: said });
    },
  );

  test("is nothing if the client says nothing", () => {
    expect(s3Payload(call({}))).toEqual({ kind: "hash", value: "UNSIGNED-PAYLOAD" });
  });

  test.each([
    ["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "signed with the client's own key"],
    ["STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER", "signed with the client's own key"],
    ["STREAMING-OTHER", "is neither"],
    ["x-STREAMING-AWS4-", "is neither"],
    [`${HASH}0`, "is neither"],
    [`0${HASH}`, "is neither"],
    [HASH.toUpperCase(), "is neither"],
    ["", "is neither"],
  ])("is refused as %s", (said, reason) => {
    const payload = s3Payload(call({ [SAID]: said }));
    expect(payload.kind === "refused" && payload.reason).toContain(reason);
  });
});

describe("of another service", () => {
  test("is the hash of the body, whatever the client says", () => {
    expect(bodyPayload(call({ [SAID]: EMPTY }, "x"))).toEqual({ kind: "hash", value: HASH });
  });

  test.each([{}, { "content-length": "0" }])("is that of nothing without a body: %j", (headers) => {
    expect(bodyPayload(call(headers))).toEqual({ kind: "hash", value: EMPTY });
  });

  test.each<Record<string, string>>([
    { "content-length": "1" },
    { "transfer-encoding": "chunked" },
    { "content-length": "0", "transfer-encoding": "chunked" },
  ])("is refused if the body was not read: %j", (headers) => {
    expect(bodyPayload(call(headers)).kind).toBe("refused");
  });

  test.each(["STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])(
    "is refused in chunks: %s",
    (said) => {
      expect(bodyPayload(call({ [SAID]: said }, "x")).kind).toBe("refused");
    },
  );
});
