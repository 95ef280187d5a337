import { describe, expect, test } from "vitest";
import type { ServiceRequest } from "../contract.ts";
import { context, request } from "../testing.ts";
import { plugin } from "./plugin.ts";
import { ACCOUNT, aws, isRefused, KEY, told } from "./testing.ts";

const REGION = "eu-west-1";
const at = (prefix: string): string => `https://${prefix}.${REGION}.amazonaws.com`;
const own = (service: string, rest: string): string =>
  `arn:aws:${service}:${REGION}:${ACCOUNT}:${rest}`;
/** The request line of a call of a model, by its ID. */
const invoke = (model: string): string =>
  `POST ${at("bedrock-runtime")}/model/${encodeURIComponent(model)}/invoke`;

function json(prefix: string, target: string, body: object | string): ServiceRequest {
  return request(`POST ${at(prefix)}/`, {
    headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": target },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

function form(prefix: string, body: string, path = "/"): ServiceRequest {
  return request(`POST ${at(prefix)}${path}`, {
    headers: { "content-type": "application/x-www-form-urlencoded; charset=utf-8" },
    body,
  });
}

const table = own("dynamodb", "table/T_1");
const dynamodb = (operation: string, body: object | string): readonly string[] =>
  told(json("dynamodb", `DynamoDB_20120810.${operation}`, body));

describe("DynamoDB", () => {
  test.each([
    [
      "PutItem",
      { TableName: "T_1", Item: { a: { S: "x" }, A: { S: "y" } } },
      [`dynamodb:PutItem ${table}`],
    ],
    [
      "GetItem",
      { TableName: "arn:aws:dynamodb:us-east-1:999988887777:table/T_1" },
      ["dynamodb:GetItem arn:aws:dynamodb:us-east-1:999988887777:table/T_1"],
    ],
    ["Query", { TableName: "T_1" }, [`dynamodb:Query ${table}`]],
    ["Query", { TableName: "T_1", IndexName: "by-a" }, [`dynamodb:Query ${table}/index/by-a`]],
    [
      "BatchGetItem",
      { RequestItems: { T_1: {}, T_2: {} } },
      [`dynamodb:BatchGetItem ${table}`, `dynamodb:BatchGetItem ${own("dynamodb", "table/T_2")}`],
    ],
    ["BatchWriteItem", { RequestItems: { T_1: [] } }, [`dynamodb:BatchWriteItem ${table}`]],
    [
      "TransactWriteItems",
      {
        TransactItems: [
          { Put: { TableName: "T_1" } },
          { Delete: { TableName: "T_2" } },
          { ConditionCheck: { TableName: "T_1" } },
        ],
      },
      [
        `dynamodb:PutItem ${table}`,
        `dynamodb:DeleteItem ${own("dynamodb", "table/T_2")}`,
        `dynamodb:ConditionCheckItem ${table}`,
      ],
    ],
    [
      "TransactGetItems",
      { TransactItems: [{ Get: { TableName: "T_1" } }] },
      [`dynamodb:GetItem ${table}`],
    ],
    ["ListTables", {}, ["dynamodb:ListTables unscopable"]],
    ["Scan", { TableName: "T_1", IndexName: 5 }, ["dynamodb:Scan unscopable"]],
    ["Scan", { TableName: "T_1", IndexName: "a/b" }, ["dynamodb:Scan unscopable"]],
    ["BatchGetItem", { RequestItems: [] }, ["dynamodb:BatchGetItem unscopable"]],
    [
      "ListTagsOfResource",
      { ResourceArn: `arn:aws:dynamodb:eu-west-1:${ACCOUNT}:table/T_1` },
      [`dynamodb:ListTagsOfResource ${table}`],
    ],
    ["ListTagsOfResource", { ResourceArn: "T_1" }, ["dynamodb:ListTagsOfResource unscopable"]],
    [
      "RestoreTableFromBackup",
      { TargetTableName: "T_1" },
      ["dynamodb:RestoreTableFromBackup unscopable"],
    ],
  ])("%s %j", (operation, body, expected) => {
    expect(dynamodb(operation, body)).toEqual(expected);
  });

  test.each([
    ["GetItem", '{"TableName":"T_1","TableName":"T_2"}'],
    ["GetItem", '{"TableName":"T_1","\\u0054ableName":"T_2"}'],
    ["GetItem", '\uFEFF{"TableName":"T_1"}'],
    ["GetItem", "[]"],
    ["GetItem", "{"],
    ["GetItem", {}],
    ["GetItem", { tableName: "T_1" }],
    ["GetItem", { TableName: "T_1/../T_2" }],
    ["GetItem", { TableName: "T_*" }],
    ["GetItem", { TableName: "T_1\n" }],
    ["GetItem", { TableName: ["T_1"] }],
    ["GetItem", { TableName: "arn:aws-cn:dynamodb:cn-north-1:999988887777:table/T_1" }],
    ["GetItem", { TableName: "arn:aws:s3:::T_1" }],
    ["Query", { TableName: "T_1", IndexName: "a/b" }],
    ["BatchGetItem", { RequestItems: {} }],
    ["BatchGetItem", { RequestItems: { "T/1": {} } }],
  ])("%s %j cannot be scoped", (operation, body) => {
    expect(dynamodb(operation, body)).toEqual([`dynamodb:${operation} unscopable`]);
  });

  test.each([
    { TransactItems: [] },
    { TransactItems: [{ Put: { TableName: "T_1" }, Delete: { TableName: "T_2" } }] },
    { TransactItems: [{ Other: {} }] },
    {},
  ])("a transaction of %j is refused", (body) => {
    expect(isRefused(json("dynamodb", "DynamoDB_20120810.TransactWriteItems", body))).toBe(true);
  });

  test("PartiQL is refused: what it does stands in a statement", () => {
    expect(
      isRefused(
        json("dynamodb", "DynamoDB_20120810.ExecuteStatement", { Statement: "DELETE FROM T_1" }),
      ),
    ).toBe(true);
  });
});

describe("other services", () => {
  const sqsUrl = `https://sqs.${REGION}.amazonaws.com/999988887777/jobs.fifo`;
  test.each([
    [
      json("sqs", "AmazonSQS.SendMessageBatch", { QueueUrl: sqsUrl }),
      [`sqs:SendMessage arn:aws:sqs:${REGION}:999988887777:jobs.fifo`],
    ],
    [
      json("sqs", "AmazonSQS.CreateQueue", { QueueName: "jobs" }),
      [`sqs:CreateQueue ${own("sqs", "jobs")}`],
    ],
    [
      form("sqs", `Action=SendMessage&QueueUrl=${encodeURIComponent(sqsUrl)}&MessageBody=a+b%0A`),
      [`sqs:SendMessage arn:aws:sqs:${REGION}:999988887777:jobs.fifo`],
    ],
    [
      form(
        "sqs",
        `Action=SendMessage&QueueUrl=${encodeURIComponent(sqsUrl)}`,
        "/999988887777/jobs.fifo",
      ),
      [`sqs:SendMessage arn:aws:sqs:${REGION}:999988887777:jobs.fifo`],
    ],
    [
      form(
        "sns",
        "Action=Publish&Version=2010-03-31&TopicArn=arn%3Aaws%3Asns%3Aeu-west-" +
          "1%3A111122223333%3Anews&Message=a%0Ab",
      ),
      [`sns:Publish ${own("sns", "news")}`],
    ],
    [form("sns", "Action=Publish&PhoneNumber=1"), ["sns:Publish unscopable"]],
    [form("sns", "Action=Publish&TopicArn=a&TargetArn=b"), ["sns:Publish unscopable"]],
    [
      request(`GET ${at("ec2")}/?Action=DescribeInstances&Version=2016-11-15`),
      ["ec2:DescribeInstances unscopable"],
    ],
    [form("sts", "Action=GetCallerIdentity&Version=2011-06-15"), ["sts:GetCallerIdentity none"]],
    [
      request(`POST ${at("lambda")}/2015-03-31/functions/f/invocations`, { body: "{}" }),
      [`lambda:InvokeFunction ${own("lambda", "function:f")}`],
    ],
    [
      request(`POST ${at("lambda")}/2015-03-31/functions/f/invocations?Qualifier=v1`, {
        body: "{}",
      }),
      [`lambda:InvokeFunction ${own("lambda", "function:f:v1")}`],
    ],
    [
      request(
        `POST ${at("lambda")}/2015-03-31/functions/999988887777%3Afunction%3Af%3A2/invocations`,
        { body: "" },
      ),
      [`lambda:InvokeFunction arn:aws:lambda:${REGION}:999988887777:function:f:2`],
    ],
    [
      request(
        "GET " +
          `${at("lambda")}/2015-03-31/functions/${encodeURIComponent(own("lambda", "function:f"))}`,
      ),
      [`lambda:GetFunction ${own("lambda", "function:f")}`],
    ],
    [request(`GET ${at("lambda")}/2015-03-31/functions/`), ["lambda:ListFunctions unscopable"]],
    [
      json("kms", "TrentService.ReEncrypt", {
        SourceKeyId: "alias/a",
        DestinationKeyId: "1234abcd-12ab-34cd-56ef-1234567890ab",
      }),
      ["ReEncryptFrom", "ReEncryptTo"].flatMap((action) => [
        `kms:${action} ${own("kms", "alias/a")}`,
        `kms:${action} ${own("kms", "key/1234abcd-12ab-34cd-56ef-1234567890ab")}`,
      ]),
    ],
    [json("kms", "TrentService.Decrypt", { CiphertextBlob: "" }), ["kms:Decrypt unscopable"]],
    [
      json("secretsmanager", "secretsmanager.GetSecretValue", { SecretId: "prod/db" }),
      [`secretsmanager:GetSecretValue ${own("secretsmanager", "secret:prod/db-??????")}`],
    ],
    [
      json("secretsmanager", "secretsmanager.GetSecretValue", {
        SecretId: own("secretsmanager", "secret:prod/db-AbCdEf"),
      }),
      [`secretsmanager:GetSecretValue ${own("secretsmanager", "secret:prod/db-AbCdEf")}`],
    ],
    [
      json("ssm", "AmazonSSM.GetParameters", { Names: ["/a/b", "c:3"] }),
      [
        `ssm:GetParameters ${own("ssm", "parameter/a/b")}`,
        `ssm:GetParameters ${own("ssm", "parameter/c")}`,
      ],
    ],
    [
      json("ssm", "AmazonSSM.GetParametersByPath", { Path: "/a" }),
      ["ssm:GetParametersByPath unscopable"],
    ],
    [
      json("logs", "Logs_20140328.PutLogEvents", { logGroupName: "/app/x" }),
      [`logs:PutLogEvents ${own("logs", "log-group:/app/x")}`],
    ],
    [
      json("kinesis", "Kinesis_20131202.PutRecord", {
        StreamName: "s",
        StreamARN: own("kinesis", "stream/t"),
      }),
      ["kinesis:PutRecord unscopable"],
    ],
    [
      json("states", "AWSStepFunctions.StartExecution", {
        stateMachineArn: own("states", "stateMachine:m"),
      }),
      [`states:StartExecution ${own("states", "stateMachine:m")}`],
    ],
    [
      json("events", "AWSEvents.PutEvents", { Entries: [{}, { EventBusName: "b" }] }),
      [
        `events:PutEvents ${own("events", "event-bus/default")}`,
        `events:PutEvents ${own("events", "event-bus/b")}`,
      ],
    ],
    [
      json("api.ecr", "AmazonEC2ContainerRegistry_V20150921.ListImages", {
        repositoryName: "team/app",
        registryId: "999988887777",
      }),
      [`ecr:ListImages arn:aws:ecr:${REGION}:999988887777:repository/team/app`],
    ],
    [
      request(
        `POST ${at("bedrock-runtime")}/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse`,
        { body: "{}" },
      ),
      [
        "bedrock:InvokeModel " +
          `arn:aws:bedrock:${REGION}::foundation-model/anthropic.claude-3-haiku-20240307-v1:0`,
      ],
    ],
    [
      request(
        "POST " +
          `${at("bedrock-runtime")}/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/` +
          "converse-stream",
        { body: "{}" },
      ),
      [
        "bedrock:InvokeModelWithResponseStream " +
          own("bedrock", "inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
      ],
    ],
    [
      request(
        "POST " +
          `${at("bedrock-runtime")}/model/` +
          encodeURIComponent(own("bedrock", "inference-profile/eu.x")) +
          "/invoke",
        { body: "{}" },
      ),
      [`bedrock:InvokeModel ${own("bedrock", "inference-profile/eu.x")}`],
    ],
    [
      request(
        `POST ${at("monitoring")}/service/GraniteServiceVersion20100801/operation/PutMetricData`,
        { headers: { "smithy-protocol": "rpc-v2-cbor" }, body: "x" },
      ),
      ["cloudwatch:PutMetricData unscopable"],
    ],
    [
      json("monitoring", "GraniteServiceVersion20100801.PutMetricData", {}),
      ["cloudwatch:PutMetricData unscopable"],
    ],
    [
      request("GET https://route53.amazonaws.com/2013-04-01/hostedzone/Z1/rrset"),
      ["route53:ListResourceRecordSets unscopable"],
    ],
    [
      request(`GET ${at("apigateway")}/restapis/abc/stages`),
      [`apigateway:GET arn:aws:apigateway:${REGION}::/restapis/abc/stages`],
    ],
    [
      request(`POST https://search-x.${REGION}.es.amazonaws.com/_bulk`, { body: "x" }),
      ["es:ESHttpPost unscopable"],
    ],
  ])("%#", (call, expected) => {
    expect(told(call)).toEqual(expected);
  });
});

describe("what a body names besides", () => {
  const queueArn = own("sqs", "dead");
  const queueUrl = `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/jobs`;
  const topicArn = own("sns", "news");
  const snsForm = (parameters: Record<string, string>): ServiceRequest =>
    form("sns", new URLSearchParams(parameters).toString().replaceAll("+", "%20"));
  const sqsForm = (parameters: Record<string, string>): ServiceRequest =>
    form("sqs", new URLSearchParams({ QueueUrl: queueUrl, ...parameters }).toString());
  const lambda = (method: string, path: string, body: object): ServiceRequest =>
    request(`${method} ${at("lambda")}${path}`, { body: JSON.stringify(body) });
  const bedrock = (body: object | string): ServiceRequest =>
    request(`POST ${at("bedrock-runtime")}/model/amazon.nova-pro-v1%3A0/converse`, {
      body: typeof body === "string" ? body : JSON.stringify(body),
    });

  test.each<[ServiceRequest, string]>([
    [json("dynamodb", "DynamoDB_20120810.CreateTable", { TableName: "T_1" }), table],
    [
      json("dynamodb", "DynamoDB_20120810.CreateTable", {
        TableName: "T_1",
        GlobalTableSourceArn: own("dynamodb", "table/secret"),
      }),
      own("dynamodb", "table/secret"),
    ],
    [
      json("dynamodb", "DynamoDB_20120810.UpdateTable", { TableName: "T_1", ReplicaUpdates: [] }),
      "unscopable",
    ],
    [
      json("dynamodb", "DynamoDB_20120810.GetItem", { TableName: "T_1", Unheard: "x" }),
      "unscopable",
    ],
    [
      json("sqs", "AmazonSQS.SetQueueAttributes", {
        QueueUrl: queueUrl,
        Attributes: { DelaySeconds: "5" },
      }),
      own("sqs", "jobs"),
    ],
    [
      json("sqs", "AmazonSQS.SetQueueAttributes", {
        QueueUrl: queueUrl,
        Attributes: {
          RedrivePolicy: JSON.stringify({ deadLetterTargetArn: queueArn, maxReceiveCount: 1 }),
        },
      }),
      queueArn,
    ],
    [
      json("sqs", "AmazonSQS.SetQueueAttributes", {
        QueueUrl: queueUrl,
        Attributes: { RedrivePolicy: "{" },
      }),
      "unscopable",
    ],
    [
      json("sqs", "AmazonSQS.SetQueueAttributes", {
        QueueUrl: queueUrl,
        Attributes: { Unheard: "x" },
      }),
      "unscopable",
    ],
    [
      sqsForm({
        Action: "SetQueueAttributes",
        "Attribute.1.Name": "RedrivePolicy",
        "Attribute.1.Value": JSON.stringify({ deadLetterTargetArn: queueArn }),
      }),
      queueArn,
    ],
    [sqsForm({ Action: "SetQueueAttributes", "Attribute.x.Name": "RedrivePolicy" }), "unscopable"],
    [json("sqs", "AmazonSQS.ListDeadLetterSourceQueues", { QueueUrl: queueUrl }), "unscopable"],
    [
      snsForm({ Action: "Subscribe", TopicArn: topicArn, Protocol: "sqs", Endpoint: queueArn }),
      queueArn,
    ],
    [
      snsForm({
        Action: "Subscribe",
        TopicArn: topicArn,
        Protocol: "https",
        Endpoint: "https://evil.example",
      }),
      "unscopable",
    ],
    [
      snsForm({
        Action: "Subscribe",
        TopicArn: topicArn,
        Protocol: "sqs",
        Endpoint: queueArn,
        "Attributes.entry.1.key": "RedrivePolicy",
        "Attributes.entry.1.value": JSON.stringify({ deadLetterTargetArn: own("sqs", "other") }),
      }),
      own("sqs", "other"),
    ],
    [
      snsForm({
        Action: "SetTopicAttributes",
        TopicArn: topicArn,
        AttributeName: "DisplayName",
        AttributeValue: "x",
      }),
      topicArn,
    ],
    [
      snsForm({
        Action: "SetTopicAttributes",
        TopicArn: topicArn,
        AttributeName: "SQSSuccessFeedbackRoleArn",
        AttributeValue: "arn:aws:iam::1:role/x",
      }),
      "unscopable",
    ],
    [
      lambda("PUT", "/2015-03-31/functions/f/code", { ZipFile: "UEs=" }),
      own("lambda", "function:f"),
    ],
    [
      lambda("PUT", "/2015-03-31/functions/f/code", { S3Bucket: "secret", S3Key: "a/b.zip" }),
      "arn:aws:s3:::secret/a/b.zip",
    ],
    [
      lambda("PUT", "/2015-03-31/functions/f/code", {
        ImageUri: "999988887777.dkr.ecr.eu-west-1.amazonaws.com/team/app:v1",
      }),
      "arn:aws:ecr:eu-west-1:999988887777:repository/team/app",
    ],
    [lambda("PUT", "/2015-03-31/functions/f/code", { ImageUri: "docker.io/x/y" }), "unscopable"],
    [
      lambda("PUT", "/2015-03-31/functions/f/configuration", {
        Role: "arn:aws:iam::111122223333:role/admin",
      }),
      "arn:aws:iam::111122223333:role/admin",
    ],
    [
      lambda("PUT", "/2015-03-31/functions/f/configuration", {
        Layers: [own("lambda", "layer:secret:1")],
      }),
      own("lambda", "layer:secret:1"),
    ],
    [
      lambda("PUT", "/2015-03-31/functions/f/configuration", { FileSystemConfigs: [] }),
      "unscopable",
    ],
    [
      json("secretsmanager", "secretsmanager.RotateSecret", {
        SecretId: "a",
        RotationLambdaARN: own("lambda", "function:thief"),
      }),
      own("lambda", "function:thief"),
    ],
    [
      json("secretsmanager", "secretsmanager.BatchGetSecretValue", {
        SecretIdList: ["a"],
        Filters: [{ Key: "all", Values: ["prod"] }],
      }),
      "unscopable",
    ],
    [
      json("logs", "Logs_20140328.PutSubscriptionFilter", {
        logGroupName: "/app/x",
        filterName: "x",
        filterPattern: "",
        destinationArn: own("kinesis", "stream/thief"),
      }),
      own("kinesis", "stream/thief"),
    ],
    [
      json("kinesis", "Kinesis_20131202.PutRecord", { StreamName: "s", StreamId: "x" }),
      "unscopable",
    ],
    [json("firehose", "Firehose_20150804.UpdateDestination", {}), "unscopable"],
    [
      json("states", "AWSStepFunctions.ListExecutions", {
        stateMachineArn: own("states", "stateMachine:m"),
        mapRunArn: own("states", "mapRun:n/x:1"),
      }),
      "unscopable",
    ],
    [
      json("states", "AWSStepFunctions.UpdateStateMachine", {
        stateMachineArn: own("states", "stateMachine:m"),
        definition: "{}",
      }),
      "unscopable",
    ],
    [
      json("states", "AWSStepFunctions.DescribeStateMachineForExecution", {
        executionArn: own("states", "execution:m:1"),
      }),
      own("states", "stateMachine:m"),
    ],
    [
      json("ssm", "AmazonSSM.GetParameter", {
        Name: "/aws/reference/secretsmanager/prod/db",
        WithDecryption: true,
      }),
      own("secretsmanager", "secret:prod/db-??????"),
    ],
    [
      json("ssm", "AmazonSSM.GetParameters", {
        Names: ["a", own("ssm", "parameter/aws/reference/secretsmanager/db")],
      }),
      own("secretsmanager", "secret:db-??????"),
    ],
    [
      bedrock({
        messages: [
          { content: [{ document: { source: { s3Location: { uri: "s3://secret/a.pdf" } } } }] },
        ],
      }),
      "arn:aws:s3:::secret/a.pdf",
    ],
    [bedrock({ messages: [{ content: [{ x: " S3://secret/a" }] }] }), "unscopable"],
    [bedrock('{"a":1,"a":2}'), "unscopable"],
    [request(`POST ${at("apigateway")}/restapis`, { body: '{"cloneFrom":"abc"}' }), "unscopable"],
  ])("%#: %o is about %s as well", (call, expected) => {
    const found = told(call).map((line) => line.slice(line.indexOf(" ") + 1));
    expect(found).toContain(expected);
    if (expected !== "unscopable") expect(found).not.toContain("unscopable");
  });

  test("what Parameter Store reads from Secrets Manager needs that service's action", () => {
    expect(
      told(json("ssm", "AmazonSSM.GetParameter", { Name: "/aws/reference/secretsmanager/db" })),
    ).toEqual([
      `ssm:GetParameter ${own("ssm", "parameter/aws/reference/secretsmanager/db")}`,
      `secretsmanager:GetSecretValue ${own("secretsmanager", "secret:db-??????")}`,
    ]);
  });

  test("a conversation that only mentions a bucket is about the model alone", () => {
    expect(told(bedrock({ messages: [{ content: [{ text: "see s3://secret/a" }] }] }))).toEqual([
      `bedrock:InvokeModel arn:aws:bedrock:${REGION}::foundation-model/amazon.nova-pro-v1:0`,
    ]);
  });
});

describe("what names a resource in another way", () => {
  const lambdaAt = (rest: string): ServiceRequest =>
    request(`POST ${at("lambda")}/2015-03-31/functions/${rest}`, { body: "{}" });
  const sqs = (operation: string, body: object): ServiceRequest =>
    json("sqs", `AmazonSQS.${operation}`, body);
  const execution = own("states", "execution:m:1");
  const places = (call: ServiceRequest): readonly string[] => [
    ...new Set(told(call).map((line) => line.slice(line.indexOf(" ") + 1))),
  ];

  test.each<[name: string, call: ServiceRequest, expected: readonly string[]]>([
    ["a queue of its own account", sqs("GetQueueUrl", { QueueName: "q" }), [own("sqs", "q")]],
    [
      "a queue of another account",
      sqs("GetQueueUrl", { QueueName: "q", QueueOwnerAWSAccountId: "999988887777" }),
      [`arn:aws:sqs:${REGION}:999988887777:q`],
    ],
    [
      "a queue of what is no account",
      sqs("GetQueueUrl", { QueueName: "q", QueueOwnerAWSAccountId: "x999988887777" }),
      ["unscopable"],
    ],
    [
      "a queue of what is no account, either",
      sqs("GetQueueUrl", { QueueName: "q", QueueOwnerAWSAccountId: "9999888877771" }),
      ["unscopable"],
    ],
    [
      "a queue of another region",
      sqs("PurgeQueue", { QueueUrl: "https://sqs.us-east-1.amazonaws.com/999988887777/q" }),
      ["unscopable"],
    ],
    [
      "a queue by another service's host",
      sqs("PurgeQueue", { QueueUrl: `https://sns.${REGION}.amazonaws.com/999988887777/q` }),
      ["unscopable"],
    ],
    [
      "a queue with more after its name",
      sqs("PurgeQueue", { QueueUrl: `https://sqs.${REGION}.amazonaws.com/999988887777/q/r` }),
      ["unscopable"],
    ],
    ["a queue without a URL", sqs("PurgeQueue", { QueueUrl: 1 }), ["unscopable"]],
    [
      "a repository of what is no account",
      json("api.ecr", "AmazonEC2ContainerRegistry_V20150921.ListImages", {
        repositoryName: "team/app",
        registryId: "x999988887777",
      }),
      ["unscopable"],
    ],
    [
      "a repository of its own account",
      json("api.ecr", "AmazonEC2ContainerRegistry_V20150921.ListImages", {
        repositoryName: "team/app",
      }),
      [own("ecr", "repository/team/app")],
    ],
    [
      "a function with two qualifiers",
      lambdaAt("f/invocations?Qualifier=1&Qualifier=2"),
      ["unscopable"],
    ],
    [
      "a function with a qualifier in both places",
      lambdaAt("f%3A1/invocations?Qualifier=1"),
      ["unscopable"],
    ],
    ["a function with an empty qualifier", lambdaAt("f/invocations?Qualifier="), ["unscopable"]],
    [
      "a function with what is no qualifier",
      lambdaAt("f/invocations?Qualifier=1%2F2"),
      ["unscopable"],
    ],
    [
      "the latest version",
      lambdaAt("f/invocations?Qualifier=%24LATEST"),
      [own("lambda", "function:f:$LATEST")],
    ],
    ["what is no function's name", lambdaAt("f.g/invocations"), ["unscopable"]],
    [
      "a function of another region",
      lambdaAt(
        `${encodeURIComponent(`arn:aws:lambda:us-east-1:${ACCOUNT}:function:f`)}/invocations`,
      ),
      ["unscopable"],
    ],
    [
      "a secret that is created",
      json("secretsmanager", "secretsmanager.CreateSecret", { Name: "s" }),
      [own("secretsmanager", "secret:s-??????")],
    ],
    [
      "secrets by a list",
      json("secretsmanager", "secretsmanager.BatchGetSecretValue", { SecretIdList: ["a", "b"] }),
      [own("secretsmanager", "secret:a-??????"), own("secretsmanager", "secret:b-??????")],
    ],
    [
      "secrets by an empty list",
      json("secretsmanager", "secretsmanager.BatchGetSecretValue", { SecretIdList: [] }),
      ["unscopable"],
    ],
    [
      "a group of logs by its name",
      json("logs", "Logs_20140328.GetLogEvents", { logGroupName: "/a", logStreamName: "s" }),
      [own("logs", "log-group:/a")],
    ],
    [
      "a group of logs by its ARN",
      json("logs", "Logs_20140328.GetLogEvents", {
        logGroupIdentifier: own("logs", "log-group:/a"),
        logStreamName: "s",
      }),
      [own("logs", "log-group:/a")],
    ],
    [
      "a stream that is created",
      json("kinesis", "Kinesis_20131202.CreateStream", { StreamName: "s" }),
      [own("kinesis", "stream/s")],
    ],
    [
      "a stream by its ARN",
      json("kinesis", "Kinesis_20131202.PutRecord", { StreamARN: own("kinesis", "stream/t") }),
      [own("kinesis", "stream/t")],
    ],
    [
      "a stream of deliveries",
      json("firehose", "Firehose_20150804.PutRecord", { DeliveryStreamName: "d", Record: {} }),
      [own("firehose", "deliverystream/d")],
    ],
    [
      "events through a global endpoint",
      json("events", "AWSEvents.PutEvents", { Entries: [{}], EndpointId: "abcde.veo" }),
      ["unscopable"],
    ],
    [
      "events that are no objects",
      json("events", "AWSEvents.PutEvents", { Entries: ["x"] }),
      ["unscopable"],
    ],
    [
      "secrets without a list",
      json("secretsmanager", "secretsmanager.BatchGetSecretValue", {}),
      ["unscopable"],
    ],
    [
      "a table by another service's ARN",
      json("dynamodb", "DynamoDB_20120810.GetItem", { TableName: own("kinesis", "table/T_1") }),
      ["unscopable"],
    ],
    [
      "a function, with an empty body",
      request(`GET ${at("lambda")}/2015-03-31/functions/f`, { body: "" }),
      [own("lambda", "function:f")],
    ],
    [
      "a topic whose messages the query of a GET sends elsewhere",
      request(
        "GET " +
          `${at("sns")}/?Action=Subscribe&TopicArn=${own("sns", "news")}&Protocol=https&` +
          "Endpoint=x",
      ),
      [own("sns", "news"), "unscopable"],
    ],
    ["no events", json("events", "AWSEvents.PutEvents", { Entries: [] }), ["unscopable"]],
    [
      "an execution",
      json("states", "AWSStepFunctions.DescribeExecution", { executionArn: execution }),
      [execution],
    ],
    [
      "the machine of an execution",
      json("states", "AWSStepFunctions.DescribeStateMachineForExecution", {
        executionArn: execution,
      }),
      [execution, own("states", "stateMachine:m")],
    ],
    [
      "the machine of what is no execution",
      json("states", "AWSStepFunctions.DescribeStateMachineForExecution", { executionArn: "x" }),
      ["unscopable"],
    ],
    [
      "a model of another partition",
      request(invoke("arn:aws-cn:bedrock:cn-north-1::foundation-model/a.b"), { body: "{}" }),
      ["unscopable"],
    ],
    [
      "a model by an ARN with more around it",
      request(invoke(`${own("bedrock", "inference-profile/eu.x")} y`), { body: "{}" }),
      ["unscopable"],
    ],
    [
      "a model whose id does not tell what it is",
      request(`POST ${at("bedrock-runtime")}/model/abcdefghijkl/invoke`, { body: "{}" }),
      ["unscopable"],
    ],
  ])("%s", (_name, call, expected) => {
    expect(places(call)).toEqual(expected);
  });

  test.each([
    [`POST https://search-x.${REGION}.es.amazonaws.com/_bulk`, "es:ESHttpPost"],
    [`GET https://abcdefghij.execute-api.${REGION}.amazonaws.com/prod/x`, "execute-api:Invoke"],
    [
      `POST https://abcdefghij.execute-api.${REGION}.amazonaws.com/prod/@connections/c`,
      "execute-api:ManageConnections",
    ],
    [`GET https://abcdefghij.${REGION}.aoss.amazonaws.com/_search`, "aoss:APIAccessAll"],
    [
      `GET https://abcdefghijklmnopqrstuvwxyz012345.lambda-url.${REGION}.on.aws/x`,
      "lambda:InvokeFunctionUrl",
    ],
  ])("a host that may be anybody's is in no scope: %s", (line, action) => {
    expect(told(request(line))).toEqual([`${action} unscopable`]);
    expect(isRefused(request(line.replace(/^\S+/, "TRACE")))).toBe(true);
    expect(isRefused(request(`${line}/../y`))).toBe(true);
    expect(isRefused(request(`${line}?a;b`))).toBe(true);
  });
});

describe("API Gateway", () => {
  const api = (line: string): readonly string[] => {
    const [method, path] = line.split(" ");
    return told(request(`${method} ${at("apigateway")}${path}`));
  };

  test.each(["GET", "HEAD", "DELETE"])("%s is about the path alone", (method) => {
    expect(api(`${method} /restapis/abc`)).toEqual([
      `apigateway:${method} arn:aws:apigateway:${REGION}::/restapis/abc`,
    ]);
  });

  test.each(["POST", "PUT", "PATCH"])("%s may be about more", (method) => {
    expect(api(`${method} /restapis/abc`)).toEqual([
      `apigateway:${method} arn:aws:apigateway:${REGION}::/restapis/abc`,
      `apigateway:${method} unscopable`,
    ]);
  });

  test.each([
    "GET /restapis/../usageplans",
    "GET /restapis?a;b",
    "OPTIONS /restapis",
    "get /restapis",
  ])("%s is refused", (line) => {
    expect(api(line)[0]).toMatch(/^\(/);
  });
});

describe("a URL with a signature of its own is refused", () => {
  test.each([
    "X-Amz-Signature=1",
    "x-amz-signature=1",
    "a=b&X-Amz-Credential",
    "X-Amz-%53ignature=1",
    "%58-Amz-Signature=1",
    "X%2DAmz%2Dsignature=1",
    "AWSAccessKeyId=1",
    "Signature=1",
  ])("%s", (query) => {
    expect(told(request(`GET ${at("lambda")}/2015-03-31/functions/f?${query}`))).toEqual([
      "(The URL is presigned: its signature is not made with the real key)",
    ]);
  });

  test.each(["name=x-amz-signature", "a%26X-Amz-Signature=1", "xX-Amz-Signature=1"])(
    "one without is not: %s",
    (query) => {
      expect(told(request(`GET ${at("lambda")}/2015-03-31/functions/f?${query}`))).toEqual([
        `lambda:GetFunction ${own("lambda", "function:f")}`,
      ]);
    },
  );
});

test("a refusal says what to do, where there is something", () => {
  expect(
    aws.resolveAction(request(`GET ${at("lambda")}/2015-03-31/functions/f?Signature=1`)),
  ).toEqual({
    kind: "unresolved",
    reason: "The URL is presigned: its signature is not made with the real key",
    hint: "Call the API itself; the proxy signs it.",
  });
  expect(aws.resolveAction(request(`TRACE ${at("apigateway")}/restapis`))).toEqual({
    kind: "unresolved",
    reason: "TRACE is not a known method of apigateway",
  });
});

describe("what a body holds that is not understood", () => {
  const code = (body: object | string): ServiceRequest =>
    request(`PUT ${at("lambda")}/2015-03-31/functions/f/code`, {
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  const configuration = (body: object): ServiceRequest =>
    request(`PUT ${at("lambda")}/2015-03-31/functions/f/configuration`, {
      body: JSON.stringify(body),
    });
  const topic = own("sns", "news");
  const sns = (parameters: Record<string, string>): ServiceRequest =>
    form("sns", new URLSearchParams({ TopicArn: topic, ...parameters }).toString());
  const converse = (value: unknown): ServiceRequest =>
    request(`POST ${at("bedrock-runtime")}/model/amazon.nova-pro-v1%3A0/converse`, {
      body: JSON.stringify({ messages: value }),
    });
  const media = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `s3://bucket/${index}`);

  test.each<[name: string, call: ServiceRequest]>([
    ["a body that is not JSON", code("{")],
    ["code in a bucket without a key", code({ S3Bucket: "b" })],
    ["code in what is no bucket", code({ S3Bucket: "b/c", S3Key: "k" })],
    ["code in a bucket that is no text", code({ S3Bucket: 1, S3Key: "k" })],
    ["an image that is no text", code({ ImageUri: 1 })],
    [
      "an image with more around it",
      code({ ImageUri: "x999988887777.dkr.ecr.eu-west-1.amazonaws.com/a/b" }),
    ],
    ["layers that are no list", configuration({ Layers: "x" })],
    ["a layer that is no ARN", configuration({ Layers: ["x"] })],
    [
      "a queue for failures that is no ARN",
      configuration({ DeadLetterConfig: { TargetArn: "x" } }),
    ],
    [
      "a policy of failures that is no object",
      json("sqs", "AmazonSQS.SetQueueAttributes", {
        QueueUrl: `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/jobs`,
        Attributes: { RedrivePolicy: "1" },
      }),
    ],
    ["a role that is no text", configuration({ Role: 1 })],
    ["a role of another partition", configuration({ Role: "arn:aws-cn:iam::111122223333:role/r" })],
    [
      "a topic's attribute without a name",
      sns({ Action: "SetTopicAttributes", AttributeName: "" }),
    ],
    [
      "an attribute that comes twice",
      sns({
        Action: "Subscribe",
        Protocol: "sqs",
        Endpoint: own("sqs", "q"),
        "Attributes.entry.1.key": "FilterPolicy",
        "Attributes.entry.2.key": "FilterPolicy",
      }),
    ],
    [
      "messages to an address of another protocol",
      sns({ Action: "Subscribe", Protocol: "sqsx", Endpoint: own("sqs", "q") }),
    ],
    [
      "messages to an address of a protocol in other letters",
      sns({ Action: "Subscribe", Protocol: "xsqs", Endpoint: own("sqs", "q") }),
    ],
    ["more than 100 places in S3", converse(media(101))],
    ["a place in S3 without a key", converse(["s3://bucket"])],
  ])("%s is in no scope", (_name, call) => {
    expect(told(call).join()).toContain("unscopable");
  });

  test.each<[name: string, call: ServiceRequest, also: readonly string[]]>([
    [
      "a queue for failures",
      configuration({ DeadLetterConfig: { TargetArn: own("sqs", "dead") } }),
      [own("lambda", "function:f"), own("sqs", "dead")],
    ],
    [
      "no queue for failures",
      configuration({ DeadLetterConfig: {} }),
      [own("lambda", "function:f")],
    ],
    [
      "a role of a subscription",
      sns({
        Action: "Subscribe",
        Protocol: "firehose",
        Endpoint: own("firehose", "deliverystream/d"),
        "Attributes.entry.1.key": "SubscriptionRoleArn",
        "Attributes.entry.1.value": "arn:aws:iam::111122223333:role/r",
      }),
      [topic, own("firehose", "deliverystream/d"), "arn:aws:iam::111122223333:role/r"],
    ],
    [
      "100 places in S3, each once",
      converse([...media(100), ...media(100)]),
      [
        `arn:aws:bedrock:${REGION}::foundation-model/amazon.nova-pro-v1:0`,
        ...media(100).map((uri) => uri.replace("s3://", "arn:aws:s3:::")),
      ],
    ],
  ])("%s is in the scope as well", (_name, call, also) => {
    const found = told(call).map((line) => line.slice(line.indexOf(" ") + 1));
    expect(found.toSorted()).toEqual(also.toSorted());
  });
});

describe("names without an account cannot be scoped where the account is not known", () => {
  const bare = plugin.create(context({ authType: "access-key", secrets: KEY }));

  test("it says what to do", () => {
    expect(
      bare.resolveAction(json("dynamodb", "DynamoDB_20120810.GetItem", { TableName: "T_1" })),
    ).toEqual({
      kind: "resolved",
      actions: [
        {
          action: "dynamodb:GetItem",
          resources: [
            {
              kind: "unscopable",
              reason: "the ARN needs the account: set config.accountId on the Provider",
            },
          ],
        },
      ],
    });
  });
});

describe("credentials are not handed to the agent", () => {
  test.each([
    "AssumeRole",
    "AssumeRoleWithSAML",
    "AssumeRoleWithWebIdentity",
    "AssumeRoot",
    "GetDelegatedAccessToken",
    "GetFederationToken",
    "GetSessionToken",
    "GetWebIdentityToken",
  ])("sts:%s", (action) => {
    expect(told(form("sts", `Action=${action}&RoleArn=x`))[0]).toContain("credentials");
    expect(isRefused(request(`GET https://sts.amazonaws.com/?Action=${action}`))).toBe(true);
  });

  test.each([
    request("POST https://iam.amazonaws.com/", {
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: "Action=CreateAccessKey",
    }),
    json("api.ecr", "AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken", {}),
    json("cognito-identity", "AWSCognitoIdentityService.GetCredentialsForIdentity", {}),
    request(
      "GET " +
        `https://portal.sso.${REGION}.amazonaws.com/federation/credentials?role_name=x&` +
        "account_id=y",
    ),
    request(
      "GET " +
        `https://111122223333.s3-control.${REGION}.amazonaws.com/v20180820/` +
        "accessgrantsinstance/dataaccess?permission=READ&target=s3%3A%2F%2Fx",
    ),
  ])("%#", (call) => {
    expect(isRefused(call)).toBe(true);
  });
});

describe("what could be read in two ways is refused", () => {
  const formHeader = { "content-type": "application/x-www-form-urlencoded" };
  const target = { "x-amz-target": "AmazonSQS.ReceiveMessage" };
  const jsonHeader = { "content-type": "application/x-amz-json-1.0" };
  test.each([
    [
      "Action in query and body",
      request(`POST ${at("sns")}/?Action=ListTopics`, {
        headers: formHeader,
        body: "Action=DeleteTopic",
      }),
    ],
    [
      "Action in the query of a POST",
      request(`POST ${at("sns")}/?Action=ListTopics`, { body: "" }),
    ],
    [
      "Action in the query, with a body",
      request(`GET ${at("sns")}/?Action=ListTopics`, { headers: { "content-length": "20" } }),
    ],
    ["Action twice", form("sns", "Action=ListTopics&Action=DeleteTopic")],
    ["Action in two cases", form("sns", "Action=ListTopics&action=DeleteTopic")],
    ["Action escaped", form("sns", "%41ction=DeleteTopic&Action=ListTopics")],
    ["a parameter twice", form("sns", "Action=Publish&TopicArn=a&TopicArn=b")],
    ["semicolons", form("sns", "Action=ListTopics;Action=DeleteTopic")],
    ["no Action", form("sns", "Version=1")],
    [
      "a form that is compressed",
      request(`POST ${at("sns")}/`, {
        headers: { ...formHeader, "content-encoding": "gzip" },
        body: "Action=ListTopics",
      }),
    ],
    [
      "a form that was not read",
      request(`POST ${at("sns")}/`, { headers: { ...formHeader, "content-length": "5" } }),
    ],
    [
      "target and form",
      request(`POST ${at("sqs")}/`, {
        headers: { ...formHeader, ...target },
        body: "Action=PurgeQueue",
      }),
    ],
    [
      "target and Action",
      request(`POST ${at("sqs")}/?Action=PurgeQueue`, {
        headers: { ...jsonHeader, ...target },
        body: "{}",
      }),
    ],
    [
      "target and CBOR",
      request(`POST ${at("sqs")}/service/AmazonSQS/operation/PurgeQueue`, {
        headers: { ...jsonHeader, ...target, "smithy-protocol": "rpc-v2-cbor" },
        body: "{}",
      }),
    ],
    [
      "target twice",
      request(`POST ${at("sqs")}/`, {
        headers: {
          ...jsonHeader,
          "x-amz-target": "AmazonSQS.ReceiveMessage, AmazonSQS.PurgeQueue",
        },
        body: "{}",
      }),
    ],
    [
      "target of another service",
      request(`POST ${at("sqs")}/`, {
        headers: { ...jsonHeader, "x-amz-target": "DynamoDB_20120810.GetItem" },
        body: "{}",
      }),
    ],
    ["target of no operation", json("sqs", "AmazonSQS.constructor", {})],
    ["target by GET", request(`GET ${at("sqs")}/`, { headers: { ...jsonHeader, ...target } })],
    [
      "target at a path",
      request(`POST ${at("sqs")}/x`, { headers: { ...jsonHeader, ...target }, body: "{}" }),
    ],
    [
      "target and another type",
      request(`POST ${at("sqs")}/`, {
        headers: { ...target, "content-type": "text/plain" },
        body: "{}",
      }),
    ],
    [
      "queue of path and parameter",
      form(
        "sqs",
        "Action=SendMessage&QueueUrl=https%3A%2F%2Fsqs.eu-west-1.amazonaws.com%2F999988887777%2Fa",
        "/999988887777/b",
      ),
    ],
    [
      "a stream of events",
      request(`POST ${at("bedrock-runtime")}/model/a.b/invoke-with-bidirectional-stream`, {
        headers: { "content-type": "application/vnd.amazon.eventstream" },
      }),
    ],
    [
      "a body in chunks",
      request(`POST ${at("lambda")}/2015-03-31/functions/f/invocations`, {
        headers: { "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER" },
        body: "",
      }),
    ],
    [
      "a body that was not read",
      request(`POST ${at("lambda")}/2015-03-31/functions/f/invocations`, {
        headers: { "content-length": "5" },
      }),
    ],
    [
      "presigned",
      request(`GET https://sts.amazonaws.com/?Action=GetCallerIdentity&X-Amz-Signature=x`),
    ],
    ["a load balancer", request(`GET https://lb-1.${REGION}.elb.amazonaws.com/`)],
  ])("%s", (_name, call) => {
    expect(isRefused(call)).toBe(true);
  });

  test.each([
    "//2015-03-31/functions/f",
    "/2015-03-31//functions/f",
    "/x/../2015-03-31/functions/f",
    "/2015-03-31/functions/%2e%2e/f",
    "/2015-03-31/functions/f%2F..%2Fg",
    "/2015-03-31/functions;x/f",
    "/2015-03-31/%66unctions/f",
    "/2015-03-31/functions/f%00",
    "/2015-03-31\\functions/f",
    "/2015-03-31/functions/f%252F",
    "/2015-03-31/functions/f/nothing",
    "/2015-03-31/functions/f+g",
  ])("the path %s", (path) => {
    expect(isRefused(request(`GET ${at("lambda")}${path}`))).toBe(true);
  });
});
