import { describe, expect, test } from "vitest";
import { endpointOf, S3_HOSTS } from "./endpoint.ts";

function short(host: string): string | undefined {
  const endpoint = endpointOf(host, "us-east-1");
  if (endpoint === undefined) return undefined;
  const at = `${endpoint.region} ${endpoint.partition}`;
  switch (endpoint.kind) {
    case "s3":
      return `s3 ${endpoint.bucket ?? "-"} ${at}`;
    case "s3-access-point":
      return `point ${endpoint.name} ${endpoint.account} ${at}`;
    case "service":
      return (
        `${[...new Set(endpoint.services.map(({ signingName }) => signingName))].join("+")} ` + at
      );
    case "method":
      return `${endpoint.service} ${endpoint.signingName} ${at}`;
  }
}

const S3 = [
  ["s3.amazonaws.com", "s3 - us-east-1 aws"],
  ["s3.eu-west-1.amazonaws.com", "s3 - eu-west-1 aws"],
  ["s3-eu-west-1.amazonaws.com", "s3 - eu-west-1 aws"],
  ["s3.dualstack.eu-west-1.amazonaws.com", "s3 - eu-west-1 aws"],
  ["s3-fips.us-gov-west-1.amazonaws.com", "s3 - us-gov-west-1 aws-us-gov"],
  ["s3-fips-us-gov-west-1.amazonaws.com", "s3 - us-gov-west-1 aws-us-gov"],
  ["s3-fips.dualstack.us-east-2.amazonaws.com", "s3 - us-east-2 aws"],
  ["bucket.s3.amazonaws.com", "s3 bucket us-east-1 aws"],
  ["my.bucket.s3.eu-west-1.amazonaws.com", "s3 my.bucket eu-west-1 aws"],
  ["a.s3.b.s3.eu-west-1.amazonaws.com", "s3 a.s3.b eu-west-1 aws"],
  ["bucket.s3.dualstack.eu-west-1.amazonaws.com", "s3 bucket eu-west-1 aws"],
  ["bucket.s3.cn-north-1.amazonaws.com.cn", "s3 bucket cn-north-1 aws-cn"],
  ["bucket.s3-accelerate.amazonaws.com", "s3 bucket us-east-1 aws"],
  ["bucket.vpce-1a2b-3c.s3.us-east-1.vpce.amazonaws.com", "s3 - us-east-1 aws"],
  ["my-bucket.bucket.vpce-1a2b-3c.s3.us-east-1.vpce.amazonaws.com", "s3 my-bucket us-east-1 aws"],
  [
    "point-111122223333.s3-accesspoint.eu-west-1.amazonaws.com",
    "point point 111122223333 eu-west-1 aws",
  ],
  [
    "p-q-111122223333.s3-accesspoint-fips.dualstack.us-east-1.amazonaws.com",
    "point p-q 111122223333 us-east-1 aws",
  ],
] as const;

const OTHERS = [
  ["dynamodb.eu-west-1.amazonaws.com", "dynamodb eu-west-1 aws"],
  ["111122223333.ddb.eu-west-1.amazonaws.com", "dynamodb eu-west-1 aws"],
  ["111122223333.data-kinesis.eu-west-1.amazonaws.com", "kinesis eu-west-1 aws"],
  ["111122223333.s3-control.dualstack.eu-west-1.amazonaws.com", "s3 eu-west-1 aws"],
  ["streams.dynamodb.eu-west-1.amazonaws.com", "dynamodb eu-west-1 aws"],
  ["sqs.cn-north-1.amazonaws.com.cn", "sqs cn-north-1 aws-cn"],
  ["lambda.us-east-1.api.aws", "lambda us-east-1 aws"],
  ["kms-fips.us-east-1.amazonaws.com", "kms us-east-1 aws"],
  ["monitoring.eu-west-1.amazonaws.com", "monitoring eu-west-1 aws"],
  ["email.eu-west-1.amazonaws.com", "ses eu-west-1 aws"],
  ["api.ecr.eu-west-1.amazonaws.com", "ecr eu-west-1 aws"],
  ["runtime.sagemaker.eu-west-1.amazonaws.com", "sagemaker eu-west-1 aws"],
  ["bedrock-runtime.us-west-2.amazonaws.com", "bedrock us-west-2 aws"],
  ["bedrock-runtime-fips.us-west-2.amazonaws.com", "bedrock us-west-2 aws"],
  ["sync-states.eu-west-1.amazonaws.com", "states eu-west-1 aws"],
  ["iam.amazonaws.com", "iam us-east-1 aws"],
  ["iam.us-gov.amazonaws.com", "iam us-gov-west-1 aws-us-gov"],
  ["sts.amazonaws.com", "sts us-east-1 aws"],
  ["sts.eu-west-1.amazonaws.com", "sts eu-west-1 aws"],
  ["cloudfront.amazonaws.com", "cloudfront us-east-1 aws"],
  ["route53.amazonaws.com", "route53 us-east-1 aws"],
  ["vpce-0a1-b2.sqs.eu-west-1.vpce.amazonaws.com", "sqs eu-west-1 aws"],
  ["apigateway.eu-west-1.amazonaws.com", "apigateway apigateway eu-west-1 aws"],
  ["abcdefghij.execute-api.eu-west-1.amazonaws.com", "execute-api execute-api eu-west-1 aws"],
  ["search-logs-abc123.eu-west-1.es.amazonaws.com", "es es eu-west-1 aws"],
  ["abcdefghij1234567890.eu-west-1.aoss.amazonaws.com", "aoss aoss eu-west-1 aws"],
  [
    "abcdefghijklmnopqrstuvwxyz012345.lambda-url.eu-west-1.on.aws",
    "lambda-url lambda eu-west-1 aws",
  ],
] as const;

test.each([...S3, ...OTHERS])("%s", (host, expected) => {
  expect(short(host)).toBe(expected);
});

describe("hosts that are not AWS's own API", () => {
  test.each([
    "amazonaws.com",
    "example.com",
    "sqs.eu-west-1.amazonaws.com.evil.com",
    "evil.sqs.eu-west-1.amazonaws.com",
    "sqs.eu-west-1.amazonaws.com.cn",
    "sqs.cn-north-1.amazonaws.com",
    "my-lb-1234.eu-west-1.elb.amazonaws.com",
    "ec2-1-2-3-4.eu-west-1.compute.amazonaws.com",
    "ec2-1-2-3-4.compute-1.amazonaws.com",
    "site.s3-website-eu-west-1.amazonaws.com",
    "vpce-1-2.vpce-svc-3.eu-west-1.vpce.amazonaws.com",
    "nosuchservice.eu-west-1.amazonaws.com",
    "sqs.nowhere.amazonaws.com",
    "a..b.s3.amazonaws.com",
    "-a.s3.amazonaws.com",
    "portal.sso.eu-west-1.amazonaws.com",
    "oidc.eu-west-1.amazonaws.com",
    "b--x-s3.s3express-use1-az4.us-east-1.amazonaws.com",
    "constructor.eu-west-1.amazonaws.com",
  ])("%s", (host) => {
    expect(short(host)).toBeUndefined();
  });
});

describe("which hosts' bodies are not read", () => {
  const pattern = new RegExp(`^(?:${S3_HOSTS})$`);

  test.each(S3.map(([host]) => host))("%s", (host) => {
    expect(pattern.test(host)).toBe(true);
  });

  test.each(OTHERS.map(([host]) => host))("%s is read", (host) => {
    expect(pattern.test(host)).toBe(false);
  });
});
