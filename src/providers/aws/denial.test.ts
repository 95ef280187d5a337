import { expect, test } from "vitest";
import { request } from "../testing.ts";
import { wordDenial } from "./denial.ts";

const DENIAL = {
  status: 403,
  code: "out_of_scope",
  message: "bucket/<a>&\u001b is outside the scope of aws.",
  details: { binding: "aws", resource: "r" },
};
const ERROR =
  "<Code>AccessDenied</Code><Message>bucket/&lt;a&gt;&amp;  is outside the scope of aws.</Message>";
const FORM = { "content-type": "application/x-www-form-urlencoded; charset=utf-8" };

test.each<[string, string, Record<string, string>, string]>([
  ["S3", "GET https://bucket.s3.eu-west-1.amazonaws.com/key", {}, `<Error>${ERROR}</Error>`],
  [
    "an access point",
    "GET https://point-111122223333.s3-accesspoint.eu-west-1.amazonaws.com/key",
    {},
    `<Error>${ERROR}</Error>`,
  ],
  [
    "query",
    "POST https://sts.amazonaws.com/",
    FORM,
    `<ErrorResponse><Error><Type>Sender</Type>${ERROR}</Error></ErrorResponse>`,
  ],
  [
    "query in the query",
    "GET https://sts.amazonaws.com/?Action=GetCallerIdentity",
    {},
    `<ErrorResponse><Error><Type>Sender</Type>${ERROR}</Error></ErrorResponse>`,
  ],
  [
    "EC2",
    "POST https://ec2.eu-west-1.amazonaws.com/",
    FORM,
    `<Response><Errors><Error>${ERROR}</Error></Errors></Response>`,
  ],
  [
    "XML by REST",
    "GET https://route53.amazonaws.com/2013-04-01/hostedzone",
    {},
    `<ErrorResponse><Error><Type>Sender</Type>${ERROR}</Error></ErrorResponse>`,
  ],
  [
    "S3 Control",
    "GET https://111122223333.s3-control.eu-west-1.amazonaws.com/v20180820/jobs",
    {},
    `<ErrorResponse><Error><Type>Sender</Type>${ERROR}</Error></ErrorResponse>`,
  ],
])("%s is told in XML, escaped", (_name, line, headers, body) => {
  expect(wordDenial(request(line, { headers }), DENIAL)).toEqual({
    headers: [["content-type", "application/xml"]],
    body: `<?xml version="1.0" encoding="UTF-8"?>\n${body}\n`,
  });
});

test.each<[string, Record<string, string>, string]>([
  [
    "POST https://dynamodb.eu-west-1.amazonaws.com/",
    { "x-amz-target": "DynamoDB_20120810.GetItem", "content-type": "application/x-amz-json-1.0" },
    "application/x-amz-json-1.0",
  ],
  ["GET https://lambda.eu-west-1.amazonaws.com/2015-03-31/functions/", {}, "application/json"],
])("%s is told in JSON", (line, headers, type) => {
  const worded = wordDenial(request(line, { headers }), DENIAL);
  expect(worded?.headers).toEqual([
    ["content-type", type],
    ["x-amzn-errortype", "AccessDeniedException"],
  ]);
  expect(JSON.parse(worded?.body ?? "")).toEqual({
    __type: "AccessDeniedException",
    code: "out_of_scope",
    message: DENIAL.message,
    binding: "aws",
    resource: "r",
    source: "svc",
  });
});

test("what may come to pass is an error that SDKs try again", () => {
  const sent = request("GET https://s3.amazonaws.com/bucket/key");
  expect(wordDenial(sent, { ...DENIAL, status: 503 })?.body).toContain(
    "<Code>ServiceUnavailable</Code>",
  );
  expect(wordDenial(sent, { ...DENIAL, status: 400 })?.body).toContain(
    "<Code>InvalidRequest</Code>",
  );
});
