/**
 * Members that the body of each scopable operation may contain besides its own resource
 * (resources.ts). Every member was checked in AWS's service models: it names nothing else
 * (`plain`), or it is evaluated by what it names (`judged`). Any other member, including those that
 * AWS adds later, is assumed to name another resource, and the request is out of every scope.
 *
 * Encryption keys and a model's guardrails are used, but neither returned nor changed: they count
 * as plain, as do policies of the resource itself.
 */
import type { ServiceResource } from "../contract.ts";
import { isJsonObject, jsonMembers, type StrictJson, parseStrictJson } from "../strict-json.ts";
import { anyArn, arn, member, ownArn, unscopable, type Input } from "./arns.ts";

type Judge = (value: StrictJson, input: Input) => readonly ServiceResource[];

interface Reviewed {
  /** Name in JSON and, after `/`, in the query protocol if it differs. */
  readonly plain: string;
  readonly judged?: Readonly<Record<string, Judge>>;
}

const named: Judge = (value, input) => [anyArn(value, input)];
const fieldArn =
  (field: string): Judge =>
  (value, input) => {
    const inner = member(value, field);
    return inner === undefined ? [] : [anyArn(inner, input)];
  };

/** Maps of attributes: as an object in JSON, as numbered parameters in the query protocol. */
function attributesOf(name: string, input: Input): ReadonlyMap<string, StrictJson> | undefined {
  const fields = input.fields() ?? {};
  const whole = fields[name];
  if (whole !== undefined) return isJsonObject(whole) ? new Map(Object.entries(whole)) : undefined;
  const found = new Map<string, StrictJson>();
  for (const [key, value] of Object.entries(fields)) {
    const [, base, number, part] =
      /^(Attributes?)\.(?:entry\.)?(\d{1,4})\.(Name|Value|key|value)$/.exec(key) ?? [];
    if (base === undefined) {
      if (/^Attributes?\./.test(key)) return undefined;
      continue;
    }
    if (part !== "Name" && part !== "key") continue;
    const valueKey = key.slice(0, -part.length) + (part === "Name" ? "Value" : "value");
    if (typeof value !== "string" || found.has(value) || number === undefined) return undefined;
    found.set(value, fields[valueKey] ?? "");
  }
  return found;
}

/** @param plain names of attributes that name no other resource */
function attributes(plain: string): Judge {
  const known = new Set(plain.split(" "));
  return (_value, input) => {
    const found = attributesOf("Attributes", input);
    if (found === undefined) return [unscopable("The attributes are not understood")];
    return [...found].flatMap(([name, value]) => attribute(name, value, known, input));
  };
}

function attribute(
  name: string,
  value: StrictJson,
  known: ReadonlySet<string>,
  input: Input,
): readonly ServiceResource[] {
  if (known.has(name) || name === "KmsMasterKeyId") return [];
  if (name === "RedrivePolicy") return [deadLetterQueue(value, input)];
  if (name === "SubscriptionRoleArn") return [anyArn(value, input)];
  return [unscopable("An attribute may name something else")];
}

function deadLetterQueue(value: StrictJson, input: Input): ServiceResource {
  const parsed = typeof value === "string" ? parseStrictJson(Buffer.from(value)) : undefined;
  const policy = parsed?.kind === "parsed" ? parsed.value : value;
  return anyArn(member(policy, "deadLetterTargetArn"), input);
}

const QUEUE_ATTRIBUTES = attributes(
  "ContentBasedDeduplication DeduplicationScope DelaySeconds FifoQueue FifoThroughputLimit " +
    "KmsDataKeyReusePeriodSeconds MaximumMessageSize MessageRetentionPeriod Policy " +
    "ReceiveMessageWaitTimeSeconds RedriveAllowPolicy SqsManagedSseEnabled VisibilityTimeout",
);
const TOPIC_ATTRIBUTES =
  "ArchivePolicy ContentBasedDeduplication DataProtectionPolicy DeliveryPolicy DisplayName " +
  "FifoThroughputScope FifoTopic Policy SignatureVersion TracingConfig";
const SUBSCRIPTION_ATTRIBUTES = attributes(
  "DeliveryPolicy FilterPolicy FilterPolicyScope RawMessageDelivery ReplayPolicy",
);

const topicAttribute: Judge = (_value, input) => {
  const fields = input.fields() ?? {};
  const name = fields["AttributeName"];
  return typeof name === "string"
    ? attribute(name, fields["AttributeValue"] ?? "", new Set(TOPIC_ATTRIBUTES.split(" ")), input)
    : [unscopable("The attribute has no name")];
};

/** Queues, functions and streams receive the messages; a web or mail address has no ARN. */
const subscriber: Judge = (value, input) => {
  const protocol = input.fields()?.["Protocol"];
  return typeof protocol === "string" && /^(?:sqs|lambda|firehose|application)$/.test(protocol)
    ? [anyArn(value, input)]
    : [unscopable("The messages go to an address that has no ARN")];
};

const codeInBucket: Judge = (value, input) => {
  const key = input.fields()?.["S3Key"];
  return typeof value === "string" && typeof key === "string" && /^[A-Za-z0-9._-]+$/.test(value)
    ? [arn(`arn:${input.place.partition}:s3:::${value}/${key}`)]
    : [unscopable("The code is in a bucket that is not understood")];
};

const image: Judge = (value, input) => {
  const [, account, region, repository] =
    /^([0-9]{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?\/([a-z0-9][a-z0-9._/-]{1,255})(?::[\w.-]{1,128})?(?:@sha256:[0-9a-f]{64})?$/.exec(
      typeof value === "string" ? value : "",
    ) ?? [];
  return account === undefined || region === undefined
    ? [unscopable("The image is in a registry that is not understood")]
    : [
        ownArn(
          { place: { ...input.place, region }, account },
          "ecr",
          `repository/${repository ?? ""}`,
        ),
      ];
};

const layers: Judge = (value, input) =>
  Array.isArray(value)
    ? (value as readonly StrictJson[]).map((each) => anyArn(each, input))
    : [unscopable("The layers are no list")];

const EMPTY: Reviewed = { plain: "" };
const PAGE = "NextToken MaxResults";
const READ_ITEMS =
  "ConsistentRead ReturnConsumedCapacity ProjectionExpression ExpressionAttributeNames " +
  "AttributesToGet";
const WRITE_ITEM =
  "Expected ReturnValues ReturnConsumedCapacity ReturnItemCollectionMetrics " +
  "ConditionalOperator ConditionExpression ExpressionAttributeNames " +
  "ExpressionAttributeValues ReturnValuesOnConditionCheckFailure";
const TABLE =
  "AttributeDefinitions BillingMode ProvisionedThroughput StreamSpecification " +
  "SSESpecification TableClass DeletionProtectionEnabled WarmThroughput OnDemandThroughput " +
  "GlobalTableSettingsReplicationMode";
const ITEMS_OF =
  "ConditionalOperator ExpressionAttributeValues FilterExpression Limit Select ExclusiveStartKey";
const KEY_USE = "GrantTokens DryRun";
const ENCRYPTION = "EncryptionContext EncryptionAlgorithm";
const DATA_KEY = `EncryptionContext NumberOfBytes KeySpec ${KEY_USE}`;
const REGISTRY = "registryId";

/** By service and operation. Members read by resources.ts are omitted. */
export const REVIEWED: Readonly<Record<string, Readonly<Record<string, Reviewed>>>> = {
  "bedrock-runtime": {
    Converse: EMPTY,
    ConverseStream: EMPTY,
    CountTokens: EMPTY,
    InvokeModel: EMPTY,
    InvokeModelWithResponseStream: EMPTY,
  },
  dynamodb: {
    BatchGetItem: { plain: "ReturnConsumedCapacity" },
    BatchWriteItem: { plain: "ReturnConsumedCapacity ReturnItemCollectionMetrics" },
    CreateTable: {
      plain:
        "KeySchema LocalSecondaryIndexes GlobalSecondaryIndexes VectorIndexes Tags " +
        `ResourcePolicy ${TABLE}`,
      judged: { GlobalTableSourceArn: named },
    },
    DeleteItem: { plain: `Key ${WRITE_ITEM}` },
    DeleteTable: EMPTY,
    DescribeContinuousBackups: EMPTY,
    DescribeTable: EMPTY,
    DescribeTimeToLive: EMPTY,
    GetItem: { plain: `Key ${READ_ITEMS}` },
    ListTagsOfResource: { plain: "NextToken" },
    PutItem: { plain: `Item ${WRITE_ITEM}` },
    Query: {
      plain:
        `KeyConditions KeyConditionExpression QueryFilter ScanIndexForward ${READ_ITEMS} ` +
        ITEMS_OF,
    },
    Scan: { plain: `ScanFilter Segment TotalSegments ${READ_ITEMS} ${ITEMS_OF}` },
    UpdateContinuousBackups: { plain: "PointInTimeRecoverySpecification" },
    UpdateItem: { plain: `Key AttributeUpdates UpdateExpression ${WRITE_ITEM}` },
    UpdateTable: {
      plain:
        "GlobalSecondaryIndexUpdates VectorIndexUpdates DisassociationProtectionEnabled " +
        `MultiRegionConsistency ${TABLE}`,
    },
    UpdateTimeToLive: { plain: "TimeToLiveSpecification" },
  },
  ecr: {
    BatchCheckLayerAvailability: { plain: `layerDigests ${REGISTRY}` },
    BatchDeleteImage: { plain: `imageIds ${REGISTRY}` },
    BatchGetImage: { plain: `imageIds acceptedMediaTypes ${REGISTRY}` },
    CompleteLayerUpload: { plain: `uploadId layerDigests ${REGISTRY}` },
    CreateRepository: {
      plain:
        "tags imageTagMutability imageTagMutabilityExclusionFilters " +
        `imageScanningConfiguration encryptionConfiguration ${REGISTRY}`,
    },
    DeleteRepository: { plain: `force ${REGISTRY}` },
    DescribeImages: { plain: `imageIds nextToken maxResults filter ${REGISTRY}` },
    GetDownloadUrlForLayer: { plain: `layerDigest ${REGISTRY}` },
    GetRepositoryPolicy: { plain: REGISTRY },
    InitiateLayerUpload: { plain: REGISTRY },
    ListImages: { plain: `nextToken maxResults filter ${REGISTRY}` },
    PutImage: { plain: `imageManifest imageManifestMediaType imageTag imageDigest ${REGISTRY}` },
    SetRepositoryPolicy: { plain: `policyText force ${REGISTRY}` },
    UploadLayerPart: { plain: `uploadId partFirstByte partLastByte layerPartBlob ${REGISTRY}` },
  },
  events: { PutEvents: EMPTY },
  firehose: {
    DeleteDeliveryStream: { plain: "AllowForceDelete" },
    DescribeDeliveryStream: { plain: "Limit ExclusiveStartDestinationId" },
    PutRecord: { plain: "Record" },
    PutRecordBatch: { plain: "Records" },
  },
  kinesis: {
    AddTagsToStream: { plain: "Tags" },
    CreateStream: {
      plain:
        "ShardCount StreamModeDetails Tags WarmThroughputMiBps MaxRecordSizeInKiB " +
        "RecordDistributionStrategy",
    },
    DecreaseStreamRetentionPeriod: { plain: "RetentionPeriodHours" },
    DeleteStream: { plain: "EnforceConsumerDeletion" },
    DescribeStream: { plain: "Limit ExclusiveStartShardId" },
    DescribeStreamSummary: EMPTY,
    GetShardIterator: {
      plain: "ShardId ShardIteratorType StartingSequenceNumber Timestamp DryRun",
    },
    IncreaseStreamRetentionPeriod: { plain: "RetentionPeriodHours" },
    ListTagsForStream: { plain: "ExclusiveStartTagKey Limit" },
    MergeShards: { plain: "ShardToMerge AdjacentShardToMerge" },
    PutRecord: { plain: "Data PartitionKey ExplicitHashKey SequenceNumberForOrdering DryRun" },
    PutRecords: { plain: "Records DryRun" },
    RemoveTagsFromStream: { plain: "TagKeys" },
    SplitShard: { plain: "ShardToSplit NewStartingHashKey" },
    UpdateShardCount: { plain: "TargetShardCount ScalingType" },
  },
  kms: {
    CancelKeyDeletion: EMPTY,
    Decrypt: { plain: `CiphertextBlob Recipient DryRunModifiers ${ENCRYPTION} ${KEY_USE}` },
    DescribeKey: { plain: "GrantTokens" },
    DisableKey: EMPTY,
    DisableKeyRotation: EMPTY,
    EnableKey: EMPTY,
    EnableKeyRotation: { plain: "RotationPeriodInDays" },
    Encrypt: { plain: `Plaintext ${ENCRYPTION} ${KEY_USE}` },
    GenerateDataKey: { plain: `Recipient ${DATA_KEY}` },
    GenerateDataKeyPair: { plain: `EncryptionContext KeyPairSpec Recipient ${KEY_USE}` },
    GenerateDataKeyPairWithoutPlaintext: { plain: `EncryptionContext KeyPairSpec ${KEY_USE}` },
    GenerateDataKeyWithoutPlaintext: { plain: DATA_KEY },
    GenerateMac: { plain: `Message MacAlgorithm ${KEY_USE}` },
    GetKeyPolicy: { plain: "PolicyName" },
    GetKeyRotationStatus: EMPTY,
    GetPublicKey: { plain: "GrantTokens" },
    ListKeyPolicies: { plain: "Limit Marker" },
    ListResourceTags: { plain: "Limit Marker" },
    PutKeyPolicy: { plain: "PolicyName Policy BypassPolicyLockoutSafetyCheck" },
    ReEncrypt: {
      plain:
        "CiphertextBlob SourceEncryptionContext DestinationEncryptionContext " +
        `SourceEncryptionAlgorithm DestinationEncryptionAlgorithm DryRunModifiers ${KEY_USE}`,
    },
    ScheduleKeyDeletion: { plain: "PendingWindowInDays" },
    Sign: { plain: `Message MessageType SigningAlgorithm ${KEY_USE}` },
    TagResource: { plain: "Tags" },
    UntagResource: { plain: "TagKeys" },
    Verify: { plain: `Message MessageType Signature SigningAlgorithm ${KEY_USE}` },
    VerifyMac: { plain: `Message Mac MacAlgorithm ${KEY_USE}` },
  },
  lambda: {
    AddPermission: {
      plain:
        "StatementId Action Principal SourceArn FunctionUrlAuthType InvokedViaFunctionUrl " +
        "SourceAccount EventSourceToken RevisionId PrincipalOrgID",
    },
    CreateAlias: { plain: "Name FunctionVersion Description RoutingConfig" },
    DeleteFunction: EMPTY,
    DeleteFunctionConcurrency: EMPTY,
    GetFunction: EMPTY,
    GetFunctionConcurrency: EMPTY,
    GetFunctionConfiguration: EMPTY,
    GetPolicy: EMPTY,
    // The input of a function is the caller's own data.
    Invoke: EMPTY,
    InvokeAsync: EMPTY,
    InvokeWithResponseStream: EMPTY,
    ListAliases: EMPTY,
    ListVersionsByFunction: EMPTY,
    PublishVersion: { plain: "CodeSha256 Description RevisionId PublishTo" },
    PutFunctionConcurrency: { plain: "ReservedConcurrentExecutions" },
    UpdateFunctionCode: {
      plain:
        "ZipFile S3Key S3ObjectVersion S3ObjectStorageMode Architectures Publish PublishTo " +
        "DryRun RevisionId SourceKMSKeyArn",
      judged: { S3Bucket: codeInBucket, ImageUri: image },
    },
    UpdateFunctionConfiguration: {
      plain:
        "Handler Description Timeout MemorySize Environment Runtime KMSKeyArn " +
        "TracingConfig RevisionId ImageConfig EphemeralStorage SnapStart DurableConfig",
      judged: { Role: named, Layers: layers, DeadLetterConfig: fieldArn("TargetArn") },
    },
  },
  logs: {
    CreateLogGroup: { plain: "kmsKeyId tags logGroupClass deletionProtectionEnabled" },
    CreateLogStream: { plain: "logStreamName" },
    DeleteLogGroup: EMPTY,
    DeleteLogStream: { plain: "logStreamName" },
    DeleteMetricFilter: { plain: "filterName" },
    DeleteRetentionPolicy: EMPTY,
    DeleteSubscriptionFilter: { plain: "filterName" },
    DescribeLogStreams: { plain: "logStreamNamePrefix orderBy descending nextToken limit" },
    DescribeMetricFilters: {
      plain: "filterNamePrefix nextToken limit metricName metricNamespace",
    },
    DescribeSubscriptionFilters: { plain: "filterNamePrefix nextToken limit" },
    FilterLogEvents: {
      plain:
        "logStreamNames logStreamNamePrefix startTime endTime filterPattern nextToken " +
        "limit startFromHead interleaved unmask",
    },
    GetLogEvents: {
      plain: "logStreamName startTime endTime nextToken limit startFromHead unmask",
    },
    GetLogGroupFields: { plain: "time" },
    PutLogEvents: { plain: "logStreamName logEvents sequenceToken entity" },
    PutMetricFilter: {
      plain:
        "filterName filterPattern metricTransformations applyOnTransformedLogs " +
        "fieldSelectionCriteria emitSystemFieldDimensions",
    },
    PutRetentionPolicy: { plain: "retentionInDays" },
    PutSubscriptionFilter: {
      plain:
        "filterName filterPattern distribution applyOnTransformedLogs " +
        "fieldSelectionCriteria emitSystemFields",
      judged: { destinationArn: named, roleArn: named },
    },
  },
  secretsmanager: {
    // AWS accepts either filters or ids; filters could find any secret.
    BatchGetSecretValue: { plain: PAGE },
    CancelRotateSecret: EMPTY,
    CreateSecret: {
      plain: "ClientRequestToken Description KmsKeyId SecretBinary SecretString Tags Type",
    },
    DeleteResourcePolicy: { plain: "PolicyName" },
    DeleteSecret: { plain: "RecoveryWindowInDays ForceDeleteWithoutRecovery" },
    DescribeSecret: EMPTY,
    GetResourcePolicy: { plain: "PolicyName" },
    GetSecretValue: { plain: "VersionId VersionStage" },
    ListSecretVersionIds: { plain: `${PAGE} IncludeDeprecated` },
    PutResourcePolicy: { plain: "ResourcePolicy PolicyName BlockPublicPolicy" },
    PutSecretValue: {
      plain: "ClientRequestToken SecretBinary SecretString VersionStages RotationToken",
    },
    RestoreSecret: EMPTY,
    RotateSecret: {
      plain: "ClientRequestToken RotationRules RotateImmediately",
      // It receives the secret.
      judged: { RotationLambdaARN: named, ExternalSecretRotationRoleArn: named },
    },
    TagResource: { plain: "Tags" },
    UntagResource: { plain: "TagKeys" },
    UpdateSecret: {
      plain: "ClientRequestToken Description KmsKeyId SecretBinary SecretString Type",
    },
    UpdateSecretVersionStage: { plain: "VersionStage RemoveFromVersionId MoveToVersionId" },
  },
  sns: {
    AddPermission: { plain: "Label AWSAccountId ActionName" },
    CreateTopic: {
      plain: "Tags DataProtectionPolicy",
      judged: { Attributes: attributes(TOPIC_ATTRIBUTES) },
    },
    DeleteTopic: EMPTY,
    GetDataProtectionPolicy: EMPTY,
    GetTopicAttributes: EMPTY,
    ListSubscriptionsByTopic: { plain: "NextToken" },
    Publish: {
      plain:
        "Message Subject MessageStructure MessageAttributes MessageDeduplicationId MessageGroupId",
    },
    PublishBatch: { plain: "PublishBatchRequestEntries" },
    RemovePermission: { plain: "Label" },
    SetTopicAttributes: { plain: "AttributeValue", judged: { AttributeName: topicAttribute } },
    Subscribe: {
      plain: "Protocol ReturnSubscriptionArn",
      judged: { Endpoint: subscriber, Attributes: SUBSCRIPTION_ATTRIBUTES },
    },
  },
  sqs: {
    AddPermission: { plain: "Label AWSAccountIds/AWSAccountId Actions/ActionName" },
    ChangeMessageVisibility: { plain: "ReceiptHandle VisibilityTimeout" },
    ChangeMessageVisibilityBatch: { plain: "Entries/ChangeMessageVisibilityBatchRequestEntry" },
    CreateQueue: {
      plain: "tags/Tag",
      judged: { Attributes: QUEUE_ATTRIBUTES, Attribute: QUEUE_ATTRIBUTES },
    },
    DeleteMessage: { plain: "ReceiptHandle" },
    DeleteMessageBatch: { plain: "Entries/DeleteMessageBatchRequestEntry" },
    DeleteQueue: EMPTY,
    GetQueueAttributes: { plain: "AttributeNames/AttributeName" },
    GetQueueUrl: { plain: "QueueOwnerAWSAccountId" },
    ListQueueTags: EMPTY,
    PurgeQueue: EMPTY,
    ReceiveMessage: {
      plain:
        "AttributeNames/AttributeName " +
        "MessageSystemAttributeNames/MessageSystemAttributeName " +
        "MessageAttributeNames/MessageAttributeName MaxNumberOfMessages VisibilityTimeout " +
        "WaitTimeSeconds ReceiveRequestAttemptId",
    },
    RemovePermission: { plain: "Label" },
    SendMessage: {
      plain:
        "MessageBody DelaySeconds MessageAttributes/MessageAttribute " +
        "MessageSystemAttributes/MessageSystemAttribute MessageDeduplicationId " +
        "MessageGroupId",
    },
    SendMessageBatch: { plain: "Entries/SendMessageBatchRequestEntry" },
    SetQueueAttributes: {
      plain: "",
      judged: { Attributes: QUEUE_ATTRIBUTES, Attribute: QUEUE_ATTRIBUTES },
    },
    TagQueue: { plain: "Tags/Tag" },
    UntagQueue: { plain: "TagKeys/TagKey" },
  },
  ssm: {
    DeleteParameter: EMPTY,
    DeleteParameters: EMPTY,
    GetParameter: { plain: "WithDecryption" },
    GetParameterHistory: { plain: `WithDecryption ${PAGE}` },
    GetParameters: { plain: "WithDecryption" },
    LabelParameterVersion: { plain: "ParameterVersion Labels" },
    PutParameter: {
      plain: "Description Value Type KeyId Overwrite AllowedPattern Tags Tier Policies DataType",
    },
    UnlabelParameterVersion: { plain: "ParameterVersion Labels" },
  },
  stepfunctions: {
    DeleteStateMachine: EMPTY,
    DescribeExecution: { plain: "includedData" },
    DescribeStateMachine: { plain: "includedData" },
    DescribeStateMachineForExecution: { plain: "includedData" },
    GetExecutionHistory: { plain: "maxResults reverseOrder nextToken includeExecutionData" },
    ListExecutions: { plain: "statusFilter maxResults nextToken redriveFilter" },
    RedriveExecution: { plain: "clientToken" },
    StartExecution: { plain: "name input traceHeader" },
    StartSyncExecution: { plain: "name input traceHeader includedData" },
    StopExecution: { plain: "error cause" },
  },
  sts: { GetCallerIdentity: EMPTY },
};

/** Operations whose whole body is the caller's data, or a model's own document. */
export const FREE_BODY: ReadonlySet<string> = new Set([
  "bedrock-runtime.CountTokens",
  "bedrock-runtime.Converse",
  "bedrock-runtime.ConverseStream",
  "bedrock-runtime.InvokeModel",
  "bedrock-runtime.InvokeModelWithResponseStream",
  "lambda.Invoke",
  "lambda.InvokeAsync",
  "lambda.InvokeWithResponseStream",
]);

/** Parameters of the query protocol itself. */
const PROTOCOL = ["Action", "Version"];

/** By service: members read by resources.ts. */
export const OWN: Readonly<Record<string, readonly string[]>> = {
  dynamodb: ["TableName", "IndexName", "RequestItems", "ResourceArn"],
  ecr: ["repositoryName"],
  events: ["Entries", "EndpointId"],
  firehose: ["DeliveryStreamName"],
  kinesis: ["StreamName", "StreamARN"],
  kms: ["KeyId", "SourceKeyId", "DestinationKeyId"],
  lambda: ["FunctionName"],
  logs: ["logGroupName", "logGroupIdentifier"],
  secretsmanager: ["SecretId", "SecretIdList", "Name"],
  sns: ["TopicArn", "TargetArn", "PhoneNumber", "ResourceArn", "Name"],
  sqs: ["QueueUrl", "QueueName"],
  ssm: ["Name", "Names"],
  stepfunctions: ["stateMachineArn", "executionArn"],
};

/** Returns the resources that the body names besides the operation's own resource. */
export function linkedResources(service: string, input: Input): readonly ServiceResource[] {
  const reviewed = REVIEWED[service]?.[input.operation];
  if (reviewed === undefined) return [unscopable("how far it reaches is not known here")];
  if (service === "bedrock-runtime") return mediaInBuckets(input);
  if (FREE_BODY.has(`${service}.${input.operation}`) || !input.hasBody) return [];
  const fields = input.fields();
  if (fields === undefined)
    return [unscopable("the body is not understood: send plain JSON without repeated keys")];
  const plain = new Set([...PROTOCOL, ...(OWN[service] ?? []), ...reviewed.plain.split(/[ /]/)]);
  const judged = reviewed.judged ?? {};
  const found: ServiceResource[] = [];
  const done = new Set<string>();
  for (const [key, value] of Object.entries(fields)) {
    // The query protocol numbers lists and maps: `Attribute.1.Name`.
    const name = key.split(".")[0] as string;
    if (plain.has(name) || done.has(name)) continue;
    done.add(name);
    const judge = Object.hasOwn(judged, name) ? judged[name] : undefined;
    if (judge === undefined) return [unscopable("a member of the body may name something else")];
    for (const resource of judge(value, input)) found.push(resource);
  }
  return found;
}

/** Models read images, documents and videos from S3 if a request names them. */
function mediaInBuckets(input: Input): readonly ServiceResource[] {
  if (!input.hasBody) return [];
  const fields = input.fields();
  if (fields === undefined)
    return [unscopable("the body is not understood: send plain JSON without repeated keys")];
  const found = new Map<string, ServiceResource>();
  for (const { value } of jsonMembers(fields)) {
    if (typeof value !== "string" || !/^\s*s3:/i.test(value)) continue;
    const [, bucket, key] = /^s3:\/\/([A-Za-z0-9._-]{3,255})\/(\P{Cc}*)$/u.exec(value) ?? [];
    const resource =
      bucket === undefined
        ? unscopable("the body names a place in S3 that is not understood")
        : arn(`arn:${input.place.partition}:s3:::${bucket}/${key ?? ""}`);
    found.set(value, resource);
    if (found.size > MAX_MEDIA) return [unscopable("the body names too many objects of S3")];
  }
  return [...found.values()];
}

const MAX_MEDIA = 100;
