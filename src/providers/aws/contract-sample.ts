import { type ContractSample, request } from "../testing.ts";

const secrets = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};

export const sample: ContractSample = {
  auth: {
    "access-key": {
      secrets: { ...secrets, sessionToken: "FwoGZXIvYXdzEXAMPLETOKEN" },
      config: { accountId: "111122223333" },
    },
  },
  requests: [
    {
      request: request("GET https://bucket.s3.eu-west-1.amazonaws.com/reports/2026.csv"),
      actions: ["s3:GetObject"],
    },
    {
      request: request("POST https://dynamodb.eu-west-1.amazonaws.com/", {
        headers: {
          "content-type": "application/x-amz-json-1.0",
          "x-amz-target": "DynamoDB_20120810.GetItem",
        },
        body: '{"TableName":"jobs","Key":{}}',
      }),
      actions: ["dynamodb:GetItem"],
    },
    {
      request: request("POST https://sns.eu-west-1.amazonaws.com/", {
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: "Action=Publish&TopicArn=arn%3Aaws%3Asns%3Aeu-west-1%3A111122223333%3Anews&Message=x",
      }),
      actions: ["sns:Publish"],
    },
    {
      request: request("GET https://lambda.eu-west-1.amazonaws.com/2015-03-31/functions/f"),
      actions: ["lambda:GetFunction"],
    },
  ],
  exceptions: {
    "paths are names": "S3 takes every dot and slash of a key literally",
    "sets other headers":
      "x-amz-content-sha256 says what the body is; the client's own holds where the body " +
      "goes on unread",
  },
};
