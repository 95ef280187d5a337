/** Resources of each operation, by service. */
import type { ResolvedAction, ServiceResource } from "../contract.ts";
import { isJsonObject, type StrictJson } from "../strict-json.ts";
import {
  arn,
  each,
  fieldsOf,
  list,
  member,
  oneOf,
  ownArn,
  referenced,
  unscopable,
  type Input,
  type Reference,
} from "./arns.ts";
import { dynamodbResources } from "./dynamodb.ts";
import { endpointOf } from "./endpoint.ts";
import { linkedResources } from "./inputs.ts";

type Extract = (input: Input) => readonly ServiceResource[];

/** Returns the resources of an operation of `service`; an unscopable one if it is not listed. */
export function resourcesOf(service: string, input: Input): readonly ServiceResource[] {
  const table = Object.hasOwn(BY_SERVICE, service) ? BY_SERVICE[service] : undefined;
  const extract =
    table !== undefined && Object.hasOwn(table, input.operation)
      ? table[input.operation]
      : undefined;
  if (extract === undefined)
    return [
      unscopable(`the resources of ${input.operation} cannot be determined from the request`),
    ];
  const own = extract(input);
  return own.some(({ kind }) => kind === "unscopable")
    ? own
    : [...own, ...linkedResources(service, input)];
}

/** Secrets that Parameter Store reads from Secrets Manager, by parameters of this name. */
const SECRET_REFERENCE = /^(?:arn:[^/]*:parameter)?\/?aws\/reference\/secretsmanager\/(.+)$/s;

/** Returns the data of another service that an operation returns, with that service's action. */
export function readThrough(service: string, input: Input): readonly ResolvedAction[] {
  if (service !== "ssm") return [];
  const { Name: name, Names: names } = input.fields() ?? {};
  const references = [name, ...(list(names) ?? [])].flatMap((value) => {
    const id = typeof value === "string" ? SECRET_REFERENCE.exec(value)?.[1] : undefined;
    return id === undefined ? [] : [referenced(secret, id, input)];
  });
  return references.length === 0
    ? []
    : [{ action: "secretsmanager:GetSecretValue", resources: references }];
}

/** Applies one extraction to several operations, separated by spaces. */
function all(operations: string, extract: Extract): Readonly<Record<string, Extract>> {
  return Object.fromEntries(operations.split(" ").map((operation) => [operation, extract]));
}

function simple(service: string, prefix: string, name: string): Reference {
  return {
    service,
    rest: new RegExp(`^${prefix}${name}$`),
    name: new RegExp(`^${name}$`),
    restOf: (value) => `${prefix}${value}`,
  };
}

const QUEUE = "[A-Za-z0-9_-]{1,80}(?:\\.fifo)?";
const queue = simple("sqs", "", QUEUE);
/**
 * The account and name of the queue are decisive: SQS ignores the rest. A URL of another region is
 * refused.
 */
function queueOfUrl(value: StrictJson | undefined, input: Input): ServiceResource {
  const [, host = "", account, name] =
    typeof value === "string"
      ? (/^https:\/\/([a-z0-9.-]+)\/([0-9]{12})\/(.+)$/s.exec(value) ?? [])
      : [];
  const endpoint = endpointOf(host, "");
  const same =
    endpoint?.kind === "service" &&
    endpoint.region === input.place.region &&
    endpoint.services.some(({ id }) => id === "sqs");
  if (!same || name === undefined || !queue.name.test(name))
    return unscopable(
      "QueueUrl is not https://sqs.<region>.amazonaws.com/<account>/<name> of this region",
    );
  return ownArn({ place: input.place, account }, "sqs", name);
}
const sqs = {
  ...all(
    "AddPermission ChangeMessageVisibility ChangeMessageVisibilityBatch DeleteMessage " +
      "DeleteMessageBatch DeleteQueue GetQueueAttributes ListQueueTags PurgeQueue " +
      "ReceiveMessage RemovePermission SendMessage SendMessageBatch SetQueueAttributes " +
      "TagQueue UntagQueue",
    (input) => [queueOfUrl(input.fields()?.["QueueUrl"], input)],
  ),
  CreateQueue: (input: Input) => fieldsOf(queue, ["QueueName"], input),
  GetQueueUrl: (input: Input) => {
    const owner = input.fields()?.["QueueOwnerAWSAccountId"];
    return fieldsOf(
      queue,
      ["QueueName"],
      typeof owner === "string"
        ? { ...input, account: /^[0-9]{12}$/.test(owner) ? owner : undefined }
        : input,
    );
  },
};

const topic = simple("sns", "", "[A-Za-z0-9_-]{1,256}(?:\\.fifo)?");
const topicArn: Reference = { ...topic, name: /^(?!)/ };
const sns = {
  ...all(
    "AddPermission DeleteTopic GetTopicAttributes ListSubscriptionsByTopic PublishBatch " +
      "RemovePermission SetTopicAttributes Subscribe",
    (input) => fieldsOf(topicArn, ["TopicArn"], input),
  ),
  GetDataProtectionPolicy: (input: Input) => fieldsOf(topicArn, ["ResourceArn"], input),
  CreateTopic: (input: Input) => fieldsOf(topic, ["Name"], input),
  Publish: (input: Input) =>
    input.fields()?.["PhoneNumber"] === undefined
      ? oneOf(topicArn, ["TopicArn", "TargetArn"], input)
      : [unscopable("a phone number is no ARN")],
};

/**
 * A text that Lambda may read as the beginning of an ARN if a colon follows. Lambda's pattern of
 * FunctionName makes the region, the account and `function:` optional: `function:f` is the function
 * `f`, and not the alias `f` of a function named `function`.
 */
const PART_OF_ARN = /^(?:function|[0-9]{12}|[a-z]{2}(?:-[a-z]+)+-[0-9]+)$/;

/** A name, `account:function:name`, or an ARN, each with an optional qualifier. */
function functionOf(input: Input): readonly ServiceResource[] {
  const { place, account } = input;
  const value = input.labels["FunctionName"] ?? "";
  const [, prefix, owner, name = "", inName] =
    /^(arn:aws[a-z-]*:lambda:[a-z0-9-]+:(?=[0-9]{12}:)|)(?:([0-9]{12}):function:)?([A-Za-z0-9_-]{1,140})(?::(\$LATEST|[A-Za-z0-9_-]{1,128}))?$/.exec(
      value,
    ) ?? [];
  const [inQuery, ...more] = input.query("Qualifier");
  if (
    name === "" ||
    (owner === undefined && inName !== undefined && PART_OF_ARN.test(name)) ||
    more.length > 0 ||
    (inName !== undefined && inQuery !== undefined) ||
    (inQuery !== undefined && !/^(?:\$LATEST(?:\.PUBLISHED)?|[A-Za-z0-9_-]{1,128})$/.test(inQuery))
  ) {
    return [
      unscopable("the function is named in a form that is not understood, or its qualifier twice"),
    ];
  }
  const here = `arn:${place.partition}:lambda:${place.region}:`;
  if (prefix !== undefined && prefix !== "" && prefix !== here)
    return [unscopable("the function's ARN is of another region")];
  const qualifier = inName ?? inQuery;
  return [
    ownArn(
      { place, account: owner ?? account },
      "lambda",
      `function:${name}${qualifier === undefined ? "" : `:${qualifier}`}`,
    ),
  ];
}

const key: Reference = {
  service: "kms",
  rest: /^(?:key\/(?:mrk-)?[0-9a-f-]{32,36}|alias\/[A-Za-z0-9/_-]{1,250})$/,
  name: /^(?:(?:mrk-)?[0-9a-f-]{32,36}|alias\/[A-Za-z0-9/_-]{1,250})$/,
  restOf: (value) => (value.startsWith("alias/") ? value : `key/${value}`),
};

/** A name stands for itself and the six unknown characters that AWS appends. */
const secret: Reference = {
  service: "secretsmanager",
  rest: /^secret:[A-Za-z0-9/_+=.@-]{1,512}$/,
  name: /^[A-Za-z0-9/_+=.@-]{1,512}$/,
  restOf: (value) => `secret:${value}-??????`,
};

/**
 * `/a/b` and `a` are `parameter/a/b` and `parameter/a`; a version or label may follow, which IAM
 * ignores.
 */
const parameter: Reference = {
  service: "ssm",
  rest: /^parameter(?:\/[A-Za-z0-9_.-]+)+$/,
  name: /^(?:\/?[A-Za-z0-9_.-]+(?:\/[A-Za-z0-9_.-]+)*)(?::[A-Za-z0-9_.-]+)?$/,
  restOf: (value) => `parameter/${(value.split(":")[0] as string).replace(/^\//, "")}`,
};

const group = simple("logs", "log-group:", "[A-Za-z0-9_/.#-]{1,512}");
const groupOrAll: Reference = { ...group, rest: /^log-group:[A-Za-z0-9_/.#-]{1,512}(?::\*)?$/ };
const stream = simple("kinesis", "stream/", "[A-Za-z0-9_.-]{1,128}");
const delivery = simple("firehose", "deliverystream/", "[A-Za-z0-9_.-]{1,64}");
const bus = simple("events", "event-bus/", "[A-Za-z0-9/._-]{1,256}");
const machine: Reference = {
  service: "states",
  rest: /^stateMachine:[A-Za-z0-9_-]{1,80}(?::[A-Za-z0-9_-]{1,80})?$/,
  name: /^(?!)/,
  restOf: String,
};
const execution: Reference = {
  service: "states",
  rest: /^(?:execution|express):[A-Za-z0-9_-]{1,80}(?::[A-Za-z0-9_-]{1,80}){1,2}$/,
  name: /^(?!)/,
  restOf: String,
};
const repository: Reference = {
  service: "ecr",
  rest: /^(?!)/,
  name: /^[a-z0-9][a-z0-9._/-]{1,255}$/,
  restOf: (value) => `repository/${value}`,
};

function ecrRepository(input: Input): readonly ServiceResource[] {
  const registry = input.fields()?.["registryId"];
  if (registry === undefined) return fieldsOf(repository, ["repositoryName"], input);
  return fieldsOf(repository, ["repositoryName"], {
    ...input,
    account: typeof registry === "string" && /^[0-9]{12}$/.test(registry) ? registry : undefined,
  });
}

/** Cross-region profiles begin with their geography. */
const GEOGRAPHY = /^(?:us|us-gov|eu|apac|ap|au|jp|ca|sa|me|af|uk|in|kr|il|mx|global|amer|emea)\./;
function bedrockModel(input: Input): readonly ServiceResource[] {
  const { place } = input;
  const value = input.labels["modelId"] ?? "";
  if (value.startsWith("arn:")) {
    const known =
      /^arn:(aws|aws-cn|aws-us-gov):(?:bedrock|sagemaker):[a-z0-9-]*:(?:[0-9]{12})?:[a-z-]+\/[A-Za-z0-9._:/-]+$/.exec(
        value,
      );
    return [
      known?.[1] === place.partition ? arn(value) : unscopable("the model's ARN is not understood"),
    ];
  }
  // Custom and imported models and profiles have ids without a dot, which do not show the kind.
  if (!/^[a-z0-9-]+\.[A-Za-z0-9._:-]+$/.test(value))
    return [unscopable("the model's id does not tell what it is: send its ARN")];
  if (GEOGRAPHY.test(value)) return [ownArn(input, "bedrock", `inference-profile/${value}`)];
  return [arn(`arn:${place.partition}:bedrock:${place.region}::foundation-model/${value}`)];
}

const nothing: Extract = () => [{ kind: "none" }];

const BY_SERVICE: Readonly<Record<string, Readonly<Record<string, Extract>>>> = {
  dynamodb: dynamodbResources,
  sqs,
  sns,
  lambda: all(
    "Invoke InvokeAsync InvokeWithResponseStream GetFunction GetFunctionConfiguration " +
      "GetPolicy GetFunctionConcurrency DeleteFunction UpdateFunctionCode " +
      "UpdateFunctionConfiguration PublishVersion ListVersionsByFunction ListAliases " +
      "CreateAlias PutFunctionConcurrency DeleteFunctionConcurrency AddPermission",
    functionOf,
  ),
  kms: {
    ...all(
      "DescribeKey Encrypt Decrypt GenerateDataKey GenerateDataKeyWithoutPlaintext " +
        "GenerateDataKeyPair GenerateDataKeyPairWithoutPlaintext GenerateMac VerifyMac Sign " +
        "Verify GetPublicKey GetKeyPolicy PutKeyPolicy GetKeyRotationStatus EnableKey " +
        "DisableKey EnableKeyRotation DisableKeyRotation ScheduleKeyDeletion " +
        "CancelKeyDeletion TagResource UntagResource ListResourceTags ListKeyPolicies",
      (input) => fieldsOf(key, ["KeyId"], input),
    ),
    ReEncrypt: (input) => fieldsOf(key, ["SourceKeyId", "DestinationKeyId"], input),
  },
  secretsmanager: {
    ...all(
      "GetSecretValue PutSecretValue DescribeSecret UpdateSecret DeleteSecret " +
        "RestoreSecret RotateSecret CancelRotateSecret TagResource UntagResource " +
        "ListSecretVersionIds UpdateSecretVersionStage GetResourcePolicy PutResourcePolicy " +
        "DeleteResourcePolicy",
      (input) => fieldsOf(secret, ["SecretId"], input),
    ),
    CreateSecret: (input) => fieldsOf(secret, ["Name"], input),
    BatchGetSecretValue: (input) =>
      each(list(input.fields()?.["SecretIdList"]), (value) => referenced(secret, value, input)),
  },
  ssm: {
    ...all(
      "GetParameter PutParameter DeleteParameter GetParameterHistory LabelParameterVersion " +
        "UnlabelParameterVersion",
      (input) => fieldsOf(parameter, ["Name"], input),
    ),
    ...all("GetParameters DeleteParameters", (input) =>
      each(list(input.fields()?.["Names"]), (value) => referenced(parameter, value, input)),
    ),
  },
  logs: {
    ...all(
      "CreateLogGroup DeleteLogGroup CreateLogStream DeleteLogStream PutLogEvents " +
        "PutRetentionPolicy DeleteRetentionPolicy DescribeMetricFilters PutMetricFilter " +
        "DeleteMetricFilter PutSubscriptionFilter DeleteSubscriptionFilter " +
        "DescribeSubscriptionFilters",
      (input) => fieldsOf(group, ["logGroupName"], input),
    ),
    ...all("GetLogEvents FilterLogEvents DescribeLogStreams GetLogGroupFields", (input) =>
      oneOf(groupOrAll, ["logGroupName", "logGroupIdentifier"], input),
    ),
  },
  kinesis: {
    ...all("CreateStream", (input) => fieldsOf(stream, ["StreamName"], input)),
    ...all(
      "PutRecord PutRecords DescribeStream DescribeStreamSummary DeleteStream " +
        "GetShardIterator AddTagsToStream RemoveTagsFromStream ListTagsForStream " +
        "IncreaseStreamRetentionPeriod DecreaseStreamRetentionPeriod MergeShards SplitShard " +
        "UpdateShardCount",
      (input) => oneOf(stream, ["StreamName", "StreamARN"], input),
    ),
  },
  firehose: all("PutRecord PutRecordBatch DescribeDeliveryStream DeleteDeliveryStream", (input) =>
    fieldsOf(delivery, ["DeliveryStreamName"], input),
  ),
  events: {
    PutEvents: (input) =>
      input.fields()?.["EndpointId"] === undefined
        ? each(list(input.fields()?.["Entries"]), (entry) => eventBus(entry, input))
        : [unscopable("PutEvents through a global endpoint")],
  },
  stepfunctions: {
    ...all(
      "StartExecution StartSyncExecution DescribeStateMachine DeleteStateMachine ListExecutions",
      (input) => fieldsOf(machine, ["stateMachineArn"], input),
    ),
    ...all("DescribeExecution StopExecution GetExecutionHistory RedriveExecution", (input) =>
      fieldsOf(execution, ["executionArn"], input),
    ),
    DescribeStateMachineForExecution: machineOfExecution,
  },
  ecr: all(
    "BatchCheckLayerAvailability BatchDeleteImage BatchGetImage CompleteLayerUpload " +
      "CreateRepository DeleteRepository DescribeImages GetDownloadUrlForLayer " +
      "GetRepositoryPolicy InitiateLayerUpload ListImages PutImage SetRepositoryPolicy " +
      "UploadLayerPart",
    ecrRepository,
  ),
  "bedrock-runtime": all(
    "InvokeModel InvokeModelWithResponseStream Converse ConverseStream CountTokens",
    bedrockModel,
  ),
  sts: { GetCallerIdentity: nothing },
};

/** The resource is the state machine, whose name is part of the execution's. */
function machineOfExecution(input: Input): readonly ServiceResource[] {
  const found = fieldsOf(execution, ["executionArn"], input);
  return found.flatMap((resource): readonly ServiceResource[] => {
    if (resource.kind !== "scoped") return [resource];
    const [, start = "", name = ""] =
      /^((?:[^:]*:){5})(?:execution|express):([^:]+):/.exec(resource.value) ?? [];
    return [resource, { ...resource, value: `${start}stateMachine:${name}` }];
  });
}

/** For the test that every operation's body was reviewed. */
export const SCOPED_OPERATIONS: readonly string[] = Object.entries(BY_SERVICE).flatMap(
  ([service, table]) => Object.keys(table).map((operation) => `${service}.${operation}`),
);

function eventBus(entry: StrictJson, input: Input): ServiceResource {
  return isJsonObject(entry)
    ? referenced(bus, member(entry, "EventBusName") ?? "default", input)
    : unscopable("an entry is no object");
}
