/**
 * Requests of boto3 1.44.5 (recorded before they were sent), their resolution, and the signature of
 * botocore's own signer for the same headers with the Provider's key, at the time of the tests'
 * clock.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { request } from "../testing.ts";
import { aws, told } from "./testing.ts";

interface Recorded {
  readonly call: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Latin 1. */
  readonly body: string;
  readonly actions: readonly string[];
  readonly signature: string;
}

const recorded = JSON.parse(
  readFileSync(path.join(import.meta.dirname, "testdata/boto3.json"), "utf8"),
) as readonly Recorded[];

test("there are enough of them", () => {
  expect(recorded.length).toBeGreaterThan(60);
});

describe("boto3", () => {
  test.each(recorded.map((each) => [`${each.call} ${each.url.slice(0, 80)}`, each] as const))(
    "%s",
    async (_name, each) => {
      // The body of a request to a bucket is not read.
      const isUnread = each.method !== "POST" && /^https:\/\/(?:[a-z.-]+\.)?s3\./.test(each.url);
      const call = request(
        `${each.method} ${each.url}`.replace(/^(\w+ https:\/\/[^/?]+)(?=\?|$)/, "$1/"),
        { headers: each.headers, ...(isUnread ? {} : { body: Buffer.from(each.body, "latin1") }) },
      );
      expect(told(call)).toEqual(each.actions);
      const { set } = await aws.injectCredentials(call);
      expect(set.find(([name]) => name === "authorization")?.[1]).toMatch(
        new RegExp(`Signature=${each.signature}$`),
      );
    },
  );
});
