/**
 * That the review of AWS's operations is whole: each operation that a scope is held against has its
 * body reviewed member by member, by AWS's own service models (testdata/inputs.json, made by
 * scripts/aws-inputs.py). Operations that are not listed are outside of every scope.
 */
import { expect, test } from "vitest";
import { FREE_BODY, OWN, REVIEWED } from "./inputs.ts";
import { SCOPED_OPERATIONS } from "./resources.ts";
import models from "./testdata/inputs.json" with { type: "json" };

const reviewed = Object.entries(REVIEWED).flatMap(([service, operations]) =>
  Object.entries(operations).map(([operation, review]) => ({
    id: `${service}.${operation}`,
    service,
    plain: review.plain.split(" ").filter(Boolean),
    judged: Object.keys(review.judged ?? {}),
  })),
);

test("the operations that can be scoped are those whose bodies were reviewed", () => {
  const ids = reviewed.map(({ id }) => id).sort();
  expect(ids.length).toBeGreaterThan(170);
  expect(ids).toEqual(SCOPED_OPERATIONS.toSorted());
  expect(ids).toEqual(Object.keys(models.operations).sort());
});

/** Members that name something else and are not judged: with them a request is out of scope. */
const OUT_OF_SCOPE: Readonly<Record<string, string>> = {
  "dynamodb.UpdateTable": "ReplicaUpdates GlobalTableWitnessUpdates",
  "kinesis.*": "StreamId",
  "lambda.UpdateFunctionConfiguration":
    "VpcConfig FileSystemConfigs LoggingConfig CapacityProviderConfig AcceleratorConfig RuntimeConfig",
  "secretsmanager.BatchGetSecretValue": "Filters",
  "secretsmanager.CreateSecret":
    "AddReplicaRegions ForceOverwriteReplicaSecret CrossAccountPrimaryARN",
  "secretsmanager.RotateSecret": "ExternalSecretRotationMetadata",
  "stepfunctions.ListExecutions": "mapRunArn",
};

test("every member of AWS's models is plain, judged, or out of scope", () => {
  const wrong = reviewed.flatMap(({ id, service, plain, judged }) => {
    if (FREE_BODY.has(id)) return [];
    const outside = [OUT_OF_SCOPE[id], OUT_OF_SCOPE[`${service}.*`]].flatMap(
      (names) => names?.split(" ") ?? [],
    );
    const known = [
      ...(OWN[service] ?? []),
      ...plain.map((name) => name.split("/")[0]),
      ...judged,
      ...outside,
    ];
    const members = (models.operations as Readonly<Record<string, string>>)[id]?.split(" ") ?? [];
    return [
      ...members
        .filter((name) => name !== "" && !known.includes(name))
        .map((name) => `${id}.${name} is not classified`),
      ...plain
        .filter((name) => !members.includes(name.split("/")[0] as string))
        .map((name) => `${id}.${name} is not in AWS's model`),
    ];
  });
  expect(wrong).toEqual([]);
});

test("no member that names another resource counts as plain unseen", () => {
  const NAMES =
    /arn|role|bucket|s3|destination|endpoint|target|source|replica|queue|topic|url|uri|table$|stream$|layer|vpc|filesystem/i;
  const seen = [
    // A condition of a permission, and digests, positions and settings within the resource.
    "lambda.AddPermission.SourceArn",
    "lambda.AddPermission.SourceAccount",
    "lambda.AddPermission.EventSourceToken",
    "lambda.AddPermission.FunctionUrlAuthType",
    "lambda.AddPermission.InvokedViaFunctionUrl",
    "lambda.UpdateFunctionCode.S3Key",
    "lambda.UpdateFunctionCode.S3ObjectVersion",
    "lambda.UpdateFunctionCode.S3ObjectStorageMode",
    "lambda.UpdateFunctionCode.SourceKMSKeyArn",
    "lambda.UpdateFunctionConfiguration.KMSKeyArn",
    "dynamodb.CreateTable.ResourcePolicy",
    "dynamodb.CreateTable.GlobalTableSettingsReplicationMode",
    "dynamodb.UpdateTable.GlobalTableSettingsReplicationMode",
    "secretsmanager.PutResourcePolicy.ResourcePolicy",
    "firehose.DescribeDeliveryStream.ExclusiveStartDestinationId",
    // Judged together with the name.
    "sqs.GetQueueUrl.QueueOwnerAWSAccountId",
    "ecr.BatchCheckLayerAvailability.layerDigests",
    "ecr.CompleteLayerUpload.layerDigests",
    "ecr.GetDownloadUrlForLayer.layerDigest",
    "ecr.UploadLayerPart.layerPartBlob",
    "kinesis.UpdateShardCount.TargetShardCount",
    "kms.ReEncrypt.SourceEncryptionContext",
    "kms.ReEncrypt.SourceEncryptionAlgorithm",
    "kms.ReEncrypt.DestinationEncryptionContext",
    "kms.ReEncrypt.DestinationEncryptionAlgorithm",
  ];
  const found = reviewed.flatMap(({ id, plain }) =>
    plain
      .flatMap((names) => names.split("/"))
      .filter((name) => NAMES.test(name) && !/^(?:Return|Start)/.test(name))
      .map((name) => `${id}.${name}`),
  );
  expect(found.filter((name) => !seen.includes(name))).toEqual([]);
});
