import { describe, expect, test } from "vitest";
import { request } from "../testing.ts";
import { isRefused, told } from "./testing.ts";

const VIRTUAL = "https://bucket.s3.eu-west-1.amazonaws.com";
const PATH = "https://s3.eu-west-1.amazonaws.com";

describe("actions", () => {
  test.each([
    [`GET ${PATH}/`, ["s3:ListAllMyBuckets unscopable"]],
    [`GET ${PATH}/bucket`, ["s3:ListBucket arn:aws:s3:::bucket"]],
    [`GET ${PATH}/bucket/`, ["s3:ListBucket arn:aws:s3:::bucket"]],
    [
      `GET ${VIRTUAL}/?list-type=2&prefix=a%2Fb&encoding-type=url`,
      ["s3:ListBucket arn:aws:s3:::bucket"],
    ],
    [`GET ${VIRTUAL}/?versions`, ["s3:ListBucketVersions arn:aws:s3:::bucket"]],
    [`GET ${VIRTUAL}/?policy`, ["s3:GetBucketPolicy arn:aws:s3:::bucket"]],
    [`PUT ${VIRTUAL}/?policy=`, ["s3:PutBucketPolicy arn:aws:s3:::bucket"]],
    [`DELETE ${VIRTUAL}/?lifecycle`, ["s3:PutLifecycleConfiguration arn:aws:s3:::bucket"]],
    [`PUT ${VIRTUAL}/`, ["s3:CreateBucket arn:aws:s3:::bucket"]],
    [`HEAD ${VIRTUAL}/`, ["s3:ListBucket arn:aws:s3:::bucket"]],
    [`GET ${VIRTUAL}/a/b.txt?x-id=GetObject`, ["s3:GetObject arn:aws:s3:::bucket/a/b.txt"]],
    [`HEAD ${VIRTUAL}/a?partNumber=1`, ["s3:GetObject arn:aws:s3:::bucket/a"]],
    [`GET ${VIRTUAL}/a?versionId=3`, ["s3:GetObjectVersion arn:aws:s3:::bucket/a"]],
    [
      `GET ${VIRTUAL}/a?attributes&versionId=3`,
      [
        "s3:GetObjectVersion arn:aws:s3:::bucket/a",
        "s3:GetObjectVersionAttributes arn:aws:s3:::bucket/a",
      ],
    ],
    [`PUT ${VIRTUAL}/a?partNumber=2&uploadId=x`, ["s3:PutObject arn:aws:s3:::bucket/a"]],
    [`POST ${VIRTUAL}/a?uploads`, ["s3:PutObject arn:aws:s3:::bucket/a"]],
    [`POST ${VIRTUAL}/a?uploadId=x`, ["s3:PutObject arn:aws:s3:::bucket/a"]],
    [`DELETE ${VIRTUAL}/a?uploadId=x`, ["s3:AbortMultipartUpload arn:aws:s3:::bucket/a"]],
    [`DELETE ${VIRTUAL}/a?versionId=1`, ["s3:DeleteObjectVersion arn:aws:s3:::bucket/a"]],
    [`GET ${VIRTUAL}/a?uploadId=x`, ["s3:ListMultipartUploadParts arn:aws:s3:::bucket/a"]],
    [`POST ${VIRTUAL}/a?select&select-type=2`, ["s3:GetObject arn:aws:s3:::bucket/a"]],
    [
      "GET https://point-111122223333.s3-accesspoint.eu-west-1.amazonaws.com/a/b",
      ["s3:GetObject arn:aws:s3:eu-west-1:111122223333:accesspoint/point/object/a/b"],
    ],
    [
      "GET https://bucket.s3.cn-north-1.amazonaws.com.cn/a",
      ["s3:GetObject arn:aws-cn:s3:::bucket/a"],
    ],
    [
      "GET https://bucket.s3.us-gov-west-1.amazonaws.com/a",
      ["s3:GetObject arn:aws-us-gov:s3:::bucket/a"],
    ],
  ])("%s", (line, expected) => {
    expect(told(request(line))).toEqual(expected);
  });

  test.each(["analytics", "inventory", "logging", "notification", "replication"])(
    "the body of %s names where objects or reports go",
    (subresource) => {
      expect(told(request(`PUT ${VIRTUAL}/?${subresource}`)).join()).toContain("unscopable");
      expect(told(request(`GET ${VIRTUAL}/?${subresource}`)).join()).not.toContain("unscopable");
    },
  );

  const RESTORE = `POST ${VIRTUAL}/a?restore`;
  test.each<[string, string, boolean]>([
    ["plain", "<RestoreRequest><Days>1</Days></RestoreRequest>", false],
    [
      "to another bucket",
      "<RestoreRequest><Type>SELECT</Type><OutputLocation><S3><BucketName>x</BucketName></" +
        "S3></OutputLocation></RestoreRequest>",
      true,
    ],
    ["with a document type", '<!DOCTYPE x [<!ENTITY a "b">]><RestoreRequest/>', true],
    ["in another encoding", '<?xml version="1.0" encoding="ibm037"?><RestoreRequest/>', true],
    ["in UTF-16", "\ufeff<RestoreRequest/>", true],
    ["not XML", "LrestoreRequest", true],
  ])("a restore, %s", (_name, body, reaches) => {
    const sent = { body: Buffer.from(body, body.startsWith("\ufeff") ? "utf16le" : "utf8") };
    expect(told(request(RESTORE, sent)).includes("s3:RestoreObject unscopable")).toBe(reaches);
  });

  test("a rename of directory buckets is refused", () => {
    const headers = { "x-amz-rename-source": "/secret/b" };
    expect(isRefused(request(`PUT ${VIRTUAL}/a`, { headers }))).toBe(true);
  });

  test("headers that do one thing more need one action more", () => {
    const headers = {
      "x-amz-acl": "public-read",
      "x-amz-tagging": "a=b",
      "x-amz-object-lock-mode": "COMPLIANCE",
    };
    expect(told(request(`PUT ${VIRTUAL}/a`, { headers }))).toEqual(
      ["PutObject", "PutObjectAcl", "PutObjectTagging", "PutObjectRetention"].map(
        (action) => `s3:${action} arn:aws:s3:::bucket/a`,
      ),
    );
    expect(
      told(request(`PUT ${VIRTUAL}/a`, { headers: { "x-amz-grant-read": "uri=..." } })),
    ).toContain("s3:PutObjectAcl arn:aws:s3:::bucket/a");
    expect(
      told(
        request(`DELETE ${VIRTUAL}/a`, {
          headers: { "x-amz-bypass-governance-retention": "true" },
        }),
      ),
    ).toContain("s3:BypassGovernanceRetention arn:aws:s3:::bucket/a");
  });
});

describe("keys are what S3 decodes, once", () => {
  test.each([
    ["/a//b", "a//b"],
    ["//a", "/a"],
    ["/a/../b", "a/../b"],
    ["/../other/key", "../other/key"],
    ["/%2e%2e/b", "../b"],
    ["/a%2Fb", "a/b"],
    ["/a%252Fb", "a%2Fb"],
    ["/a%20b%2Bc", "a b+c"],
    ["/%C3%A9%E2%82%AC", "é€"],
    ["/a/", "a/"],
    ["/a!b'(c)*", "a!b'(c)*"],
  ])("%s", (path, key) => {
    expect(told(request(`GET ${VIRTUAL}${path}`))).toEqual([
      `s3:GetObject arn:aws:s3:::bucket/${key}`,
    ]);
  });

  test.each([
    "/a+b",
    "/a;b",
    "/a%",
    "/a%2",
    "/a%00",
    "/a%0a",
    "/a%ff",
    "/a\\b",
    "/a b",
    "/é",
    '/"a"',
  ])("%j is refused", (path) => {
    expect(isRefused(request(`GET ${VIRTUAL}${path}`))).toBe(true);
  });

  test.each([
    "//bucket/a",
    "/../bucket/a",
    "/b%75cket/a",
    "/bucket%2Fa",
    "/./a",
    "/ab/a",
    "/bu..cket/a",
    "/.bucket/a",
  ])("%s has no bucket that is certain", (path) => {
    expect(isRefused(request(`GET ${PATH}${path}`))).toBe(true);
  });
});

describe("doubtful requests", () => {
  test.each([
    `GET ${VIRTUAL}/?policy&acl`,
    `GET ${VIRTUAL}/?acl&acl`,
    `GET ${VIRTUAL}/a?versionId=1&versionid=2`,
    `GET ${VIRTUAL}/?unknown`,
    `GET ${VIRTUAL}/?ACL`,
    `GET ${VIRTUAL}/a?acl;tagging`,
    `GET ${VIRTUAL}/?prefix=a+b`,
    `POST ${VIRTUAL}/`,
    `PATCH ${VIRTUAL}/a`,
    `get ${VIRTUAL}/a`,
    `PUT ${PATH}/`,
    `GET ${VIRTUAL}/?session`,
    `PUT ${VIRTUAL}/a?x-amz-acl=public-read`,
    `GET ${VIRTUAL}/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=x&X-Amz-Signature=y`,
    `GET ${VIRTUAL}/a?x-amz-signatur%65=y`,
    `GET ${VIRTUAL}/a?AWSAccessKeyId=x&Signature=y&Expires=1`,
    "GET https://bucket.s3-website-eu-west-1.amazonaws.com/a",
    "GET https://bucket.s3-website.eu-west-1.amazonaws.com/a",
    "GET https://point-111122223333.s3-object-lambda.eu-west-1.amazonaws.com/a",
    "GET https://b--use1-az4--x-s3.s3express-use1-az4.us-east-1.amazonaws.com/a",
    "GET https://m.accesspoint.s3-global.amazonaws.com/a",
    "GET https://bucket.s3.eu-west-1.amazonaws.com.cn/a",
    "GET https://bucket.s3.eu-west-1.evil.amazonaws.com/a",
    "GET https://bucket.s3.amazonaws.com.evil.com/a",
  ])("%s", (line) => {
    expect(isRefused(request(line))).toBe(true);
  });
});

describe("a copy needs its source, too", () => {
  const copy = (source: string): readonly string[] =>
    told(request(`PUT ${VIRTUAL}/a`, { headers: { "x-amz-copy-source": source } }));

  test.each([
    ["other/key", "s3:GetObject arn:aws:s3:::other/key"],
    ["/other/a%20b%2Fc", "s3:GetObject arn:aws:s3:::other/a b/c"],
    ["other/../key", "s3:GetObject arn:aws:s3:::other/../key"],
    ["other%2Fkey", "s3:GetObject arn:aws:s3:::other/key"],
    ["other/key?versionId=abc", "s3:GetObjectVersion arn:aws:s3:::other/key"],
    [
      "arn:aws:s3:eu-west-1:111122223333:accesspoint/point/object/a/b",
      "s3:GetObject arn:aws:s3:eu-west-1:111122223333:accesspoint/point/object/a/b",
    ],
  ])("%s", (source, expected) => {
    expect(copy(source)).toEqual(["s3:PutObject arn:aws:s3:::bucket/a", expected]);
  });

  test.each([
    "",
    "key",
    "/",
    "other/",
    "other/a, other/b",
    "other/a+b",
    "other/a;b",
    "other/a%",
    "other/a?versionId=1&x=y",
    "other/a%3FversionId=1",
    "other/a?x",
    "arn:aws:s3:::other/key",
    "o%0Aer/k",
  ])("%j is refused", (source) => {
    expect(
      isRefused(request(`PUT ${VIRTUAL}/a`, { headers: { "x-amz-copy-source": source } })),
    ).toBe(true);
  });

  test("a part of an upload copies as well; elsewhere the header is refused", () => {
    const headers = { "x-amz-copy-source": "other/key" };
    expect(told(request(`PUT ${VIRTUAL}/a?partNumber=1&uploadId=x`, { headers }))).toContain(
      "s3:GetObject arn:aws:s3:::other/key",
    );
    expect(isRefused(request(`PUT ${VIRTUAL}/a?tagging`, { headers }))).toBe(true);
    expect(isRefused(request(`PUT ${VIRTUAL}/`, { headers }))).toBe(true);
  });
});

describe("many keys deleted at once", () => {
  const remove = (body: string, headers = {}): readonly string[] =>
    told(request(`POST ${VIRTUAL}/?delete`, { body, headers }));
  // In the form of boto3 1.44 and @aws-sdk/client-s3.
  const sent =
    '<?xml version="1.0" encoding="UTF-8"?><Delete ' +
    'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Object><Key>a/../b</Key></' +
    "Object><Object><Key>c &amp; " +
    "d</Key><VersionId>1</VersionId></Object><Quiet>true</Quiet></Delete>";

  test("each is judged", () => {
    expect(remove(sent)).toEqual([
      "s3:DeleteObject arn:aws:s3:::bucket/a/../b",
      "s3:DeleteObjectVersion arn:aws:s3:::bucket/c & d",
    ]);
    const bypass = remove(sent, { "x-amz-bypass-governance-retention": "true" });
    expect(bypass.slice(2)).toEqual([
      "s3:BypassGovernanceRetention arn:aws:s3:::bucket/a/../b",
      "s3:BypassGovernanceRetention arn:aws:s3:::bucket/c & d",
    ]);
    expect(remove("<Delete><Object><Key>&#97;&#x62;</Key></Object></Delete>")).toEqual([
      "s3:DeleteObject arn:aws:s3:::bucket/ab",
    ]);
    expect(remove("<Delete>\n <Object>\n <Key>a</Key>\n </Object>\n</Delete>\n")).toEqual([
      "s3:DeleteObject arn:aws:s3:::bucket/a",
    ]);
  });

  test.each([
    "",
    "<Delete></Delete>",
    "<Delete><Object></Object></Delete>",
    "<Delete><Object><Key></Key></Object></Delete>",
    "<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
    "<Delete><Object><Key>a</Key></Object></Delete><Delete><Object><Key>b</Key></Object></Delete>",
    "<Delete><Object><Key>a<!-- x -->b</Key></Object></Delete>",
    "<Delete><!-- --><Object><Key>a</Key></Object></Delete>",
    "<Delete><Object><Key><![CDATA[a]]></Key></Object></Delete>",
    '<!DOCTYPE d [<!ENTITY e "x">]><Delete><Object><Key>&e;</Key></Object></Delete>',
    "<Delete><Object><Key>&e;</Key></Object></Delete>",
    "<Delete><Object><Key>&#0;</Key></Object></Delete>",
    "<Delete><Object><Key>&#xD800;</Key></Object></Delete>",
    "<Delete><Object><Key> a</Key></Object></Delete>",
    "<Delete><Object><Key>a\r\nb</Key></Object></Delete>",
    '<Delete><Object><Key a="b">a</Key></Object></Delete>',
    "<Delete><Object><key>b</key><Key>a</Key></Object></Delete>",
    "<Delete><x:Object><Key>a</Key></x:Object></Delete>",
    "<Delete><Key>a</Key></Delete>",
    "<Delete>text<Object><Key>a</Key></Object></Delete>",
    "<Delete><Object><Key>a</Key>text</Object></Delete>",
    "<Delete><Object><Key>a</Object></Key></Delete>",
    "<Delete><Object><Key>a</Key></Object>",
    '<?xml version="1.0" encoding="UTF-16"?><Delete><Object><Key>a</Key></Object></Delete>',
    `<Delete>${"<Object><Key>a</Key></Object>".repeat(1001)}</Delete>`,
  ])("%j is refused", (body) => {
    expect(remove(body)[0]).toMatch(/^\(/);
  });

  test("a body that was not read, is compressed or in chunks is refused", () => {
    expect(isRefused(request(`POST ${VIRTUAL}/?delete`))).toBe(true);
    expect(remove(sent, { "content-encoding": "gzip" })[0]).toMatch(/^\(/);
    expect(
      remove(sent, { "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER" })[0],
    ).toMatch(/^\(/);
    expect(isRefused(request(`POST ${VIRTUAL}/a?delete`, { body: sent }))).toBe(true);
  });
});

describe("bodies", () => {
  const put = (hash: string): boolean =>
    isRefused(request(`PUT ${VIRTUAL}/a`, { headers: { "x-amz-content-sha256": hash } }));

  test.each([
    "UNSIGNED-PAYLOAD",
    "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  ])("%s passes", (hash) => {
    expect(put(hash)).toBe(false);
  });

  test.each([
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
    "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
    "abc",
    "",
  ])("%s is refused", (hash) => {
    expect(put(hash)).toBe(true);
  });
});
