/** The ways in which operations name their own resource, and forms that AWS reads differently. */
import { describe, expect, test } from "vitest";
import type { ServiceRequest } from "../contract.ts";
import { request } from "../testing.ts";
import { resourcesOf } from "./resources.ts";
import { ACCOUNT, aws, told } from "./testing.ts";

const REGION = "eu-west-1";
const OTHER = "999988887777";
const at = (prefix: string): string => `https://${prefix}.${REGION}.amazonaws.com`;
const arnOf = (service: string, account: string, rest: string): string =>
  `arn:aws:${service}:${REGION}:${account}:${rest}`;

function json(prefix: string, target: string, body: object): ServiceRequest {
  return request(`POST ${at(prefix)}/`, {
    headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": target },
    body: JSON.stringify(body),
  });
}

/** Returns the resources, each once. */
function places(call: ServiceRequest): readonly string[] {
  return [...new Set(told(call).map((line) => line.slice(line.indexOf(" ") + 1)))];
}

describe("a function", () => {
  const invoke = (name: string, query = ""): readonly string[] =>
    places(
      request(
        `POST ${at("lambda")}/2015-03-31/functions/${encodeURIComponent(name)}/invocations${query}`,
        { body: "{}" },
      ),
    );

  test.each([
    ["f", ACCOUNT, "f"],
    ["f_1-x", ACCOUNT, "f_1-x"],
    ["f:1", ACCOUNT, "f:1"],
    ["f:$LATEST", ACCOUNT, "f:$LATEST"],
    ["function", ACCOUNT, "function"],
    [OTHER, ACCOUNT, OTHER],
    ["eu-west-1", ACCOUNT, "eu-west-1"],
    ["functions:f", ACCOUNT, "functions:f"],
    [`${OTHER}:function:f`, OTHER, "f"],
    [`${OTHER}:function:f:prod`, OTHER, "f:prod"],
    [`${OTHER}:function:function:f`, OTHER, "function:f"],
    [arnOf("lambda", OTHER, "function:f"), OTHER, "f"],
    [arnOf("lambda", OTHER, "function:f:$LATEST"), OTHER, "f:$LATEST"],
  ])("%s is of %s: %s", (name, account, rest) => {
    expect(invoke(name)).toEqual([arnOf("lambda", account, `function:${rest}`)]);
  });

  // In Lambda's pattern the region, the account and `function:` are optional.
  test.each([
    "function:secret",
    `${OTHER}:secret`,
    `${OTHER}:function`,
    `${OTHER}:$LATEST`,
    "us-east-1:secret",
    "us-gov-west-1:secret",
    arnOf("lambda", OTHER, "secret"),
    arnOf("lambda", OTHER, "function"),
    `arn:aws:lambda:${REGION}:secret`,
    "arn:aws:lambda:secret",
    `${REGION}:${OTHER}:function:secret`,
    "us-east-1:function:secret",
  ])("%s may be read in more than one way", (name) => {
    expect(invoke(name)).toEqual(["unscopable"]);
  });

  test.each([
    `arn:aws-cn:lambda:${REGION}:${ACCOUNT}:function:f`,
    `arn:aws:lambda:us-east-1:${ACCOUNT}:function:f`,
    `arn:aws:sqs:${REGION}:${ACCOUNT}:function:f`,
    `xarn:aws:lambda:${REGION}:${ACCOUNT}:function:f`,
    `arn:aws:lambda:${REGION}:1${ACCOUNT}:function:f`,
    `arn:aws:lambda:${REGION}::function:f`,
    `1${ACCOUNT}:function:f`,
    `${ACCOUNT}:functions:f`,
    "f:1:2",
    "f:",
    ":f",
    "f:$LATEST.PUBLISHED",
    "f:a.b",
    "f*",
    "f".repeat(141),
  ])("%j is not understood", (name) => {
    expect(invoke(name)).toEqual(["unscopable"]);
  });

  test.each([
    ["?Qualifier=prod", "f:prod"],
    ["?Qualifier=%24LATEST.PUBLISHED", "f:$LATEST.PUBLISHED"],
    ["?qualifier=prod", "f"],
  ])("with the query %s is %s", (query, rest) => {
    expect(invoke("f", query)).toEqual([arnOf("lambda", ACCOUNT, `function:${rest}`)]);
  });

  test.each(["?Qualifier=a.b", "?Qualifier=%24LATESTx", "?Qualifier=x%24LATEST", "?Qualifier=*"])(
    "with the query %s is not understood",
    (query) => {
      expect(invoke("f", query)).toEqual(["unscopable"]);
    },
  );
});

describe("the URL of a queue", () => {
  const purge = (QueueUrl: unknown): readonly string[] =>
    places(json("sqs", "AmazonSQS.PurgeQueue", { QueueUrl }));
  const url = `https://sqs.${REGION}.amazonaws.com/${OTHER}/q`;

  test.each([
    [url, "q"],
    [`${url}.fifo`, "q.fifo"],
  ])("%s", (text, name) => {
    expect(purge(text)).toEqual([arnOf("sqs", OTHER, name)]);
  });

  test.each([
    `x${url}`,
    url.replace("https", "http"),
    url.replace("https://", "https://user@"),
    url.replace(".com/", ".com:443/"),
    url.replace(OTHER, `${OTHER}1`),
    url.replace(OTHER, OTHER.slice(1)),
    url.replace(OTHER, "a".repeat(12)),
    url.replace(".com/", ".com//"),
    url.replace("/q", "/"),
    `${url}\n`,
    `${url}?x`,
    `${url}*`,
    `\n${url}`,
    url.replace("amazonaws.com", "amazonaws.com.evil.example"),
    `https://${OTHER}/q`,
    "",
    null,
    [url],
  ])("%j is none of this region", (text) => {
    expect(purge(text)).toEqual(["unscopable"]);
  });
});

describe("a model", () => {
  const model = (id: string): readonly string[] =>
    places(
      request(`POST ${at("bedrock-runtime")}/model/${encodeURIComponent(id)}/invoke`, {
        body: "{}",
      }),
    );

  test.each([
    ["amazon.nova-pro-v1:0", `arn:aws:bedrock:${REGION}::foundation-model/amazon.nova-pro-v1:0`],
    ["us.amazon.nova", arnOf("bedrock", ACCOUNT, "inference-profile/us.amazon.nova")],
    ["us-gov.amazon.nova", arnOf("bedrock", ACCOUNT, "inference-profile/us-gov.amazon.nova")],
    [`arn:aws:bedrock:${REGION}::foundation-model/a.b`, ""],
    [`arn:aws:bedrock:us-east-1:${OTHER}:provisioned-model/abc`, ""],
    [`arn:aws:sagemaker:${REGION}:${OTHER}:endpoint/e`, ""],
  ])("%s", (id, expected) => {
    expect(model(id)).toEqual([expected === "" ? id : expected]);
  });

  test.each([
    `arn:aws-us-gov:bedrock:${REGION}::foundation-model/a.b`,
    `arn:aws:iam:${REGION}:${OTHER}:foundation-model/a`,
    `arn:aws:bedrock:${REGION}:1${OTHER}:foundation-model/a`,
    `arn:aws:bedrock:${REGION}:${OTHER}:Foundation/a`,
    `arn:aws:bedrock:${REGION}:${OTHER}:foundation-model/*`,
    `x arn:aws:bedrock:${REGION}::foundation-model/a.b`,
    `arn:x:arn:aws:bedrock:${REGION}::foundation-model/a.b`,
    "x amazon.nova",
    ".nova",
    "amazon.",
    "Amazon.nova",
    "amazon.nova*",
    "amazon.nova/x",
  ])("%j is not understood", (id) => {
    expect(model(id)).toEqual(["unscopable"]);
  });
});

describe("the machine of an execution", () => {
  const machine = (executionArn: string): readonly string[] =>
    places(json("states", "AWSStepFunctions.DescribeStateMachineForExecution", { executionArn }));

  test.each([
    ["execution:m:1", "m"],
    ["express:machine-2:1:2", "machine-2"],
  ])("%s is of %s", (rest, name) => {
    const execution = arnOf("states", OTHER, rest);
    expect(machine(execution)).toEqual([execution, arnOf("states", OTHER, `stateMachine:${name}`)]);
  });
});

describe("the account of what has only a name", () => {
  const repository = (registryId: unknown): readonly string[] =>
    places(
      json("api.ecr", "AmazonEC2ContainerRegistry_V20150921.ListImages", {
        repositoryName: "app",
        registryId,
      }),
    );
  const queue = (QueueOwnerAWSAccountId: unknown): readonly string[] =>
    places(json("sqs", "AmazonSQS.GetQueueUrl", { QueueName: "q", QueueOwnerAWSAccountId }));

  test("is the one that the body names", () => {
    expect(repository(OTHER)).toEqual([arnOf("ecr", OTHER, "repository/app")]);
    expect(queue(OTHER)).toEqual([arnOf("sqs", OTHER, "q")]);
  });

  test.each([`${OTHER}1`, `1${OTHER}`, "", "a".repeat(12), `${OTHER}\n`])(
    "is unknown if the body names %j",
    (id) => {
      expect(repository(id)).toEqual(["unscopable"]);
      expect(queue(id)).toEqual(["unscopable"]);
    },
  );

  test("of a registry is text", () => {
    expect(repository(Number(OTHER))).toEqual(["unscopable"]);
    expect(repository(null)).toEqual(["unscopable"]);
  });
});

describe("a secret that Parameter Store reads", () => {
  const read = (body: object, operation = "GetParameters"): readonly string[] =>
    told(json("ssm", `AmazonSSM.${operation}`, body)).filter((line) =>
      line.startsWith("secretsmanager:"),
    );
  const own = (name: string): string =>
    `secretsmanager:GetSecretValue ${arnOf("secretsmanager", ACCOUNT, `secret:${name}-??????`)}`;

  test.each([
    "/aws/reference/secretsmanager/db",
    "aws/reference/secretsmanager/db",
    arnOf("ssm", ACCOUNT, "parameter/aws/reference/secretsmanager/db"),
  ])("by %s", (name) => {
    expect(read({ Name: name }, "GetParameter")).toEqual([own("db")]);
    expect(read({ Names: ["a", name] })).toEqual([own("db")]);
  });

  test("several, each of them", () => {
    const names = ["/aws/reference/secretsmanager/a", "/aws/reference/secretsmanager/b/c"];
    expect(read({ Names: names })).toEqual([own("a"), own("b/c")]);
  });

  test("by a name that is not understood", () => {
    expect(read({ Names: ["/aws/reference/secretsmanager/a b"] })).toEqual([
      "secretsmanager:GetSecretValue unscopable",
    ]);
    expect(read({ Names: ["/aws/reference/secretsmanager/a\nb"] })).toEqual([
      "secretsmanager:GetSecretValue unscopable",
    ]);
  });

  test.each(["/x/aws/reference/secretsmanager/db", "/aws/reference/secretsmanager/", "/aws/x"])(
    "not by %s",
    (name) => {
      expect(read({ Names: [name, 1] })).toEqual([]);
      const resolution = aws.resolveAction(
        json("ssm", "AmazonSSM.GetParameters", { Names: [name] }),
      );
      expect(resolution).toMatchObject({ actions: [{ action: "ssm:GetParameters" }] });
      expect(resolution.kind === "resolved" && resolution.actions).toHaveLength(1);
    },
  );

  test("only by Parameter Store", () => {
    const name = "aws/reference/secretsmanager/db";
    const lines = told(json("secretsmanager", "secretsmanager.CreateSecret", { Name: name }));
    expect(lines.map((line) => line.split(" ")[0])).toEqual(["secretsmanager:CreateSecret"]);
  });
});

test("events go to the bus of each entry", () => {
  const put = (...Entries: readonly object[]): readonly string[] =>
    places(json("events", "AWSEvents.PutEvents", { Entries }));
  const bus = (account: string, name: string): string =>
    arnOf("events", account, `event-bus/${name}`);
  expect(put({}, { EventBusName: bus(OTHER, "b") })).toEqual([
    bus(ACCOUNT, "default"),
    bus(OTHER, "b"),
  ]);
  expect(put({ EventBusName: 1 })).toEqual(["unscopable"]);
  expect(put({ EventBusName: "a b" })).toEqual(["unscopable"]);
});

test("messages to a phone number, or to two places, are in no scope", () => {
  const publish = (parameters: Record<string, string>): readonly string[] =>
    places(
      request(`POST ${at("sns")}/`, {
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams({ Action: "Publish", Message: "x", ...parameters }).toString(),
      }),
    );
  const topic = arnOf("sns", ACCOUNT, "news");
  expect(publish({ TopicArn: topic })).toEqual([topic]);
  expect(publish({ TargetArn: topic })).toEqual([topic]);
  expect(publish({ TopicArn: topic, TargetArn: topic })).toEqual(["unscopable"]);
  expect(publish({ TopicArn: topic, PhoneNumber: "" })).toEqual(["unscopable"]);
  expect(publish({ TopicArn: "news" })).toEqual(["unscopable"]);
});

describe("a body that is not understood names nothing", () => {
  test.each([
    ["sqs", "AmazonSQS.PurgeQueue"],
    ["sqs", "AmazonSQS.GetQueueUrl"],
    ["api.ecr", "AmazonEC2ContainerRegistry_V20150921.ListImages"],
    ["secretsmanager", "secretsmanager.BatchGetSecretValue"],
    ["ssm", "AmazonSSM.GetParameters"],
    ["events", "AWSEvents.PutEvents"],
    ["logs", "Logs_20140328.GetLogEvents"],
    ["kinesis", "Kinesis_20131202.PutRecord"],
  ])("%s %s", (prefix, target) => {
    const call = json(prefix, target, {});
    for (const text of ["[]", "{", '{"a":1,"a":2}', "null"])
      expect(places({ ...call, body: Buffer.from(text) })).toEqual(["unscopable"]);
  });
});

test.each([
  ["GetDataProtectionPolicy", "ResourceArn", arnOf("sns", ACCOUNT, "news")],
  ["GetTopicAttributes", "TopicArn", arnOf("sns", ACCOUNT, "news")],
  ["CreateTopic", "Name", "news"],
])("%s of a topic names it by %s", (Action, member, value) => {
  const call = (parameters: Record<string, string>): ServiceRequest =>
    request(`POST ${at("sns")}/`, {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ Action, ...parameters }).toString(),
    });
  expect(places(call({ [member]: value }))).toEqual([arnOf("sns", ACCOUNT, "news")]);
  expect(places(call({ [member]: "a b" }))).toEqual(["unscopable"]);
  expect(places(call({}))).toEqual(["unscopable"]);
});

test.each([
  ["a", "a"],
  ["/a", "a"],
  ["a/b", "a/b"],
  ["/a/b:3", "a/b"],
  ["a:label", "a"],
])("the parameter %s is parameter/%s", (Name, rest) => {
  expect(places(json("ssm", "AmazonSSM.GetParameter", { Name }))).toEqual([
    arnOf("ssm", ACCOUNT, `parameter/${rest}`),
  ]);
});

test("the path of API Gateway may hold an ARN, whose slashes are escaped", () => {
  const stage = `arn:aws:apigateway:${REGION}::/restapis/abc`;
  expect(places(request(`GET ${at("apigateway")}/tags/${encodeURIComponent(stage)}`))).toEqual([
    `arn:aws:apigateway:${REGION}::/tags/${stage}`,
  ]);
});

test("an operation or a service with the name of every object's member is not listed", () => {
  const input = {
    operation: "constructor",
    place: { partition: "aws" as const, region: REGION },
    account: ACCOUNT,
    labels: {},
    query: () => [],
    hasBody: false,
    fields: () => ({}),
  };
  for (const service of ["sqs", "constructor", "toString"])
    expect(resourcesOf(service, input).map(({ kind }) => kind)).toEqual(["unscopable"]);
});
