/** Members of a body that name another resource, in forms that a lenient reader might skip. */
import { describe, expect, test } from "vitest";
import type { ServiceRequest } from "../contract.ts";
import { request } from "../testing.ts";
import { ACCOUNT, told } from "./testing.ts";

const REGION = "eu-west-1";
const at = (prefix: string): string => `https://${prefix}.${REGION}.amazonaws.com`;
const own = (service: string, rest: string): string =>
  `arn:aws:${service}:${REGION}:${ACCOUNT}:${rest}`;

function json(prefix: string, target: string, body: object): ServiceRequest {
  return request(`POST ${at(prefix)}/`, {
    headers: { "content-type": "application/x-amz-json-1.0", "x-amz-target": target },
    body: JSON.stringify(body),
  });
}

function form(prefix: string, parameters: Record<string, string>): ServiceRequest {
  return request(`POST ${at(prefix)}/`, {
    headers: { "content-type": "application/x-www-form-urlencoded; charset=utf-8" },
    body: new URLSearchParams(parameters).toString().replaceAll("+", "%20"),
  });
}

/** Returns the resources, each once. */
function places(call: ServiceRequest): readonly string[] {
  return [...new Set(told(call).map((line) => line.slice(line.indexOf(" ") + 1)))];
}

describe("attributes of a queue", () => {
  const queue = own("sqs", "jobs");
  const dead = own("sqs", "dead");
  const redrive = JSON.stringify({ deadLetterTargetArn: dead });
  const QueueUrl = `https://sqs.${REGION}.amazonaws.com/${ACCOUNT}/jobs`;
  const inJson = (Attributes: unknown): ServiceRequest =>
    json("sqs", "AmazonSQS.SetQueueAttributes", { QueueUrl, Attributes });
  const inForm = (parameters: Record<string, string>): ServiceRequest =>
    form("sqs", { Action: "SetQueueAttributes", QueueUrl, ...parameters });

  test.each<[string, ServiceRequest]>([
    ["settings", inJson({ DelaySeconds: "5", Policy: "{}", KmsMasterKeyId: "alias/a" })],
    ["none", inJson({})],
    ["in a form", inForm({ "Attribute.1.Name": "DelaySeconds", "Attribute.1.Value": "5" })],
    [
      "several in a form",
      inForm({
        "Attribute.1.Name": "DelaySeconds",
        "Attribute.1.Value": "5",
        "Attribute.2.Name": "KmsMasterKeyId",
        "Attribute.2.Value": "alias/a",
      }),
    ],
    ["in a form, as a map", inForm({ "Attributes.entry.1.key": "DelaySeconds" })],
  ])("that name nothing else: %s", (_name, call) => {
    expect(places(call)).toEqual([queue]);
  });

  test.each<[string, ServiceRequest]>([
    ["as JSON in a text", inJson({ DelaySeconds: "5", RedrivePolicy: redrive })],
    ["as an object", inJson({ RedrivePolicy: { deadLetterTargetArn: dead } })],
    [
      "the second of a form",
      inForm({
        "Attribute.1.Name": "DelaySeconds",
        "Attribute.1.Value": redrive,
        "Attribute.22.Name": "RedrivePolicy",
        "Attribute.22.Value": redrive,
      }),
    ],
    [
      "before its name",
      inForm({ "Attribute.1.Value": redrive, "Attribute.1.Name": "RedrivePolicy" }),
    ],
    [
      "of a map",
      inForm({ "Attributes.entry.1.key": "RedrivePolicy", "Attributes.entry.1.value": redrive }),
    ],
  ])("that name a queue for failures: %s", (_name, call) => {
    expect(places(call)).toEqual([queue, dead]);
  });

  test.each<[string, ServiceRequest]>([
    ["a text", inJson(redrive)],
    ["a list", inJson([{ RedrivePolicy: redrive }])],
    ["nothing", inJson(null)],
    ["a policy without a queue", inJson({ RedrivePolicy: "{}" })],
    ["a policy with the queue twice", inJson({ RedrivePolicy: `[${redrive}]` })],
    ["a policy that is broken", inJson({ RedrivePolicy: `${redrive}}` })],
    ["a name in other letters", inJson({ redrivePolicy: redrive })],
    ["a name with a space", inJson({ "RedrivePolicy ": redrive })],
    ["an empty name", inJson({ "": redrive })],
    ["a name of every object", inJson({ constructor: "x" })],
    ["a name without a value", inForm({ "Attribute.1.Name": "RedrivePolicy" })],
    [
      "a name whose value has another case",
      inForm({ "Attribute.1.name": "RedrivePolicy", "Attribute.1.Value": redrive }),
    ],
    [
      "a name whose value has another number",
      inForm({ "Attribute.1.Name": "RedrivePolicy", "Attribute.2.Value": redrive }),
    ],
    [
      "a number that is too long",
      inForm({ "Attribute.10000.Name": "RedrivePolicy", "Attribute.10000.Value": redrive }),
    ],
    ["no number", inForm({ "Attribute.Name": "RedrivePolicy", "Attribute.Value": redrive })],
    [
      "more after the name",
      inForm({ "Attribute.1.Name.x": "RedrivePolicy", "Attribute.1.Value": redrive }),
    ],
    [
      "one name twice",
      inForm({ "Attribute.1.Name": "DelaySeconds", "Attribute.2.Name": "DelaySeconds" }),
    ],
    ["a text and a map", inForm({ Attributes: "x", "Attribute.1.Name": "DelaySeconds" })],
    ["another member", inForm({ "Attributs.1.Name": "RedrivePolicy" })],
  ])("that are not understood: %s", (_name, call) => {
    expect(places(call)).toContain("unscopable");
  });
});

describe("attributes of a topic and of a subscription", () => {
  const topic = own("sns", "news");
  const role = `arn:aws:iam::${ACCOUNT}:role/r`;
  const set = (parameters: Record<string, string>): ServiceRequest =>
    form("sns", { Action: "SetTopicAttributes", TopicArn: topic, ...parameters });
  const subscribe = (parameters: Record<string, string>): ServiceRequest =>
    form("sns", { Action: "Subscribe", TopicArn: topic, ...parameters });

  test.each<[string, ServiceRequest, readonly string[]]>([
    ["a setting", set({ AttributeName: "Policy", AttributeValue: "{}" }), [topic]],
    ["a key", set({ AttributeName: "KmsMasterKeyId", AttributeValue: "alias/a" }), [topic]],
    ["a setting without a value", set({ AttributeName: "DisplayName" }), [topic]],
    [
      "a queue for failures",
      set({
        AttributeName: "RedrivePolicy",
        AttributeValue: JSON.stringify({ deadLetterTargetArn: own("sqs", "dead") }),
      }),
      [topic, own("sqs", "dead")],
    ],
    ["a role", set({ AttributeName: "SubscriptionRoleArn", AttributeValue: role }), [topic, role]],
    [
      "a role without a value",
      set({ AttributeName: "SubscriptionRoleArn" }),
      [topic, "unscopable"],
    ],
    [
      "an attribute that is not listed, by an ARN",
      set({ AttributeName: "SQSSuccessFeedbackRoleArn", AttributeValue: role }),
      [topic, "unscopable"],
    ],
    ["a list of names", set({ "AttributeName.1": "DisplayName" }), [topic, "unscopable"]],
    [
      "a function that receives",
      subscribe({ Protocol: "lambda", Endpoint: own("lambda", "function:f") }),
      [topic, own("lambda", "function:f")],
    ],
    [
      "an application that receives",
      subscribe({ Protocol: "application", Endpoint: own("sns", "app/GCM/a") }),
      [topic, own("sns", "app/GCM/a")],
    ],
    [
      "a filter",
      subscribe({
        Protocol: "sqs",
        Endpoint: own("sqs", "q"),
        "Attributes.entry.1.key": "FilterPolicy",
        "Attributes.entry.1.value": "{}",
      }),
      [topic, own("sqs", "q")],
    ],
    [
      "an address",
      subscribe({ Protocol: "email", Endpoint: "a@b.example" }),
      [topic, "unscopable"],
    ],
    ["no protocol", subscribe({ Endpoint: own("sqs", "q") }), [topic, "unscopable"]],
    ["what is no ARN", subscribe({ Protocol: "sqs", Endpoint: "q" }), [topic, "unscopable"]],
  ])("%s", (_name, call, expected) => {
    expect(places(call)).toEqual(expected);
  });
});

describe("the code of a function", () => {
  const f = own("lambda", "function:f");
  const code = (body: object): ServiceRequest =>
    request(`PUT ${at("lambda")}/2015-03-31/functions/f/code`, { body: JSON.stringify(body) });
  const configured = (body: object): ServiceRequest =>
    request(`PUT ${at("lambda")}/2015-03-31/functions/f/configuration`, {
      body: JSON.stringify(body),
    });
  const registry = "999988887777.dkr.ecr.us-east-1.amazonaws.com";
  const repository = "arn:aws:ecr:us-east-1:999988887777:repository/team/app";
  const digest = `sha256:${"0a".repeat(32)}`;

  test.each<[string, ServiceRequest, readonly string[]]>([
    ["an image", code({ ImageUri: `${registry}/team/app` }), [f, repository]],
    ["an image by a tag", code({ ImageUri: `${registry}/team/app:v1.2_x-y` }), [f, repository]],
    ["an image by a digest", code({ ImageUri: `${registry}/team/app@${digest}` }), [f, repository]],
    ["an image by both", code({ ImageUri: `${registry}/team/app:v1@${digest}` }), [f, repository]],
    [
      "an image with an odd digest",
      code({ ImageUri: `${registry}/a@${digest}0` }),
      [f, "unscopable"],
    ],
    ["an image with an odd tag", code({ ImageUri: `${registry}/aa:b/c` }), [f, "unscopable"]],
    ["an image without a name", code({ ImageUri: `${registry}/` }), [f, "unscopable"]],
    [
      "an image of another host",
      code({ ImageUri: `${registry}.evil.example/team/app` }),
      [f, "unscopable"],
    ],
    [
      "an image with a scheme",
      code({ ImageUri: `https://${registry}/team/app` }),
      [f, "unscopable"],
    ],
    ["a bucket", code({ S3Bucket: "b", S3Key: "k" }), [f, "arn:aws:s3:::b/k"]],
    ["a bucket of more lines", code({ S3Bucket: "b\nc", S3Key: "k" }), [f, "unscopable"]],
    ["a bucket with a wildcard", code({ S3Bucket: "*", S3Key: "k" }), [f, "unscopable"]],
    ["a key that is no text", code({ S3Bucket: "b", S3Key: ["k"] }), [f, "unscopable"]],
    ["no layers", configured({ Layers: [] }), [f]],
    [
      "two layers",
      configured({ Layers: [own("lambda", "layer:a:1"), own("lambda", "layer:b:1")] }),
      [f, own("lambda", "layer:a:1"), own("lambda", "layer:b:1")],
    ],
    ["a layer that is an object", configured({ Layers: [{}] }), [f, "unscopable"]],
    ["a member of every object", configured({ toString: "x" }), [f, "unscopable"]],
    ["a member with a dot", configured({ "Role.x": own("sqs", "q") }), [f, own("sqs", "q")]],
  ])("%s", (_name, call, expected) => {
    expect(places(call)).toEqual(expected);
  });
});

test.each(['{"Role":"arn:aws:iam::1:role/r"}', '{"Unheard":1,"Unheard":2}', "no JSON"])(
  "what a function is called with names nothing: %s",
  (body) => {
    const call = request(`POST ${at("lambda")}/2015-03-31/functions/f/invocations`, { body });
    expect(places(call)).toEqual([own("lambda", "function:f")]);
  },
);

describe("what a model reads", () => {
  const model = `arn:aws:bedrock:${REGION}::foundation-model/amazon.nova-pro-v1:0`;
  const converse = (uri: string): ServiceRequest =>
    request(`POST ${at("bedrock-runtime")}/model/amazon.nova-pro-v1%3A0/converse`, {
      body: JSON.stringify({ messages: [{ s3Location: { uri } }] }),
    });

  test.each<[uri: string, expected: string]>([
    ["s3://bucket/a b/c.pdf", "arn:aws:s3:::bucket/a b/c.pdf"],
    ["s3://bucket/", "arn:aws:s3:::bucket/"],
    ["s3://b/k", "unscopable"],
    ["s3://bucket", "unscopable"],
    ["s3:bucket/k", "unscopable"],
    ["S3://bucket/k", "unscopable"],
    [" s3://bucket/k", "unscopable"],
    ["\n\ts3://bucket/k", "unscopable"],
    ["s3://bucket/a\nb", "unscopable"],
    ["s3://buck*t/k", "unscopable"],
    ["s3://user@bucket/k", "unscopable"],
  ])("%j", (uri, expected) => {
    expect(places(converse(uri))).toEqual([model, expected]);
  });

  test("nothing, if there is no body", () => {
    expect(
      places(request(`POST ${at("bedrock-runtime")}/model/amazon.nova-pro-v1%3A0/converse`)),
    ).toEqual([model]);
  });
});
