// What agents do with the AWS SDK for JavaScript, as it comes: one line of JSON for each try.
// Argument: the file of keys.
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import {
  DynamoDBClient,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
} from "@aws-sdk/client-dynamodb";
import { GetObjectCommand, S3 } from "@aws-sdk/client-s3";
import { AssumeRoleCommand, GetCallerIdentityCommand, STSClient } from "@aws-sdk/client-sts";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const Bucket = "reports";
const keys = JSON.parse(await readFile(process.argv[2], "utf8"));
const s3 = new S3();
const dynamo = new DynamoDBClient();
const sts = new STSClient();

/** `send("putObject", {Key})`: of the bucket. */
const send = (name, input) => s3[name]({ Bucket, ...input });
const get = async (input) => (await send("getObject", input)).Body.transformToString();

async function attempt(name, call) {
  try {
    console.log(JSON.stringify({ name, value: await call() }));
  } catch (error) {
    const status = error.$metadata?.httpStatusCode;
    console.log(
      JSON.stringify(
        status === undefined
          ? { name, error: String(error) }
          : { name, status, code: error.name, message: error.message },
      ),
    );
  }
}

const listed = async () =>
  ((await send("listObjectsV2", { EncodingType: "url" })).Contents ?? [])
    .map(({ Key }) => decodeURIComponent(Key))
    .sort();

for (const key of keys) {
  await attempt(`key ${key}`, async () => {
    const content = `content of ${key}`;
    await send("putObject", { Key: key, Body: content });
    const { ContentLength } = await send("headObject", { Key: key });
    return [await get({ Key: key }), ContentLength === Buffer.byteLength(content)];
  });
}
await attempt("list", listed);
await attempt("delete each", async () => {
  for (const key of keys) await send("deleteObject", { Key: key });
  return listed();
});
await attempt("stream", async () => {
  const content = Buffer.from("streamed ".repeat(400_000));
  const pieces = Array.from({ length: 100 }, (_, i) =>
    content.subarray(i * 36_000, (i + 1) * 36_000),
  );
  await send("putObject", {
    Key: "streamed",
    Body: Readable.from(pieces),
    ContentLength: content.length,
    ContentType: "text/plain",
    Metadata: { origin: "a  file" },
  });
  const { Body, ContentType, Metadata } = await send("getObject", { Key: "streamed" });
  return [content.equals(await buffer(Body)), ContentType, Metadata];
});
await attempt("multipart", async () => {
  const Key = "multi part/+large";
  const content = Buffer.alloc(
    12 * 1024 * 1024,
    Uint8Array.from({ length: 256 }, (_, i) => i),
  );
  const { UploadId } = await send("createMultipartUpload", { Key });
  const size = 5 * 1024 * 1024;
  const Parts = await Promise.all(
    [1, 2, 3].map(async (PartNumber) => {
      const { ETag, ChecksumCRC32 } = await send("uploadPart", {
        Key,
        UploadId,
        PartNumber,
        Body: content.subarray((PartNumber - 1) * size, PartNumber * size),
      });
      return { ETag, ChecksumCRC32, PartNumber };
    }),
  );
  await send("completeMultipartUpload", { Key, UploadId, MultipartUpload: { Parts } });
  return content.equals(await buffer((await send("getObject", { Key })).Body));
});
await attempt("abort", async () => {
  const { UploadId } = await send("createMultipartUpload", { Key: "aborted" });
  await send("uploadPart", { Key: "aborted", UploadId, PartNumber: 1, Body: "part" });
  return (await send("abortMultipartUpload", { Key: "aborted", UploadId })).$metadata
    .httpStatusCode;
});
await attempt("copy", async () => {
  await send("putObject", { Key: "from/a b+ü%.txt", Body: "copied" });
  await send("copyObject", {
    Key: "to//copy",
    CopySource: encodeURIComponent(`${Bucket}/from/a b+ü%.txt`),
  });
  return get({ Key: "to//copy" });
});
await attempt("delete together", async () => {
  const Objects = ["to//copy", "from/a b+ü%.txt", "streamed", "multi part/+large"].map((Key) => ({
    Key,
  }));
  const { Deleted } = await send("deleteObjects", { Delete: { Objects } });
  return [Deleted.length, await listed()];
});
await attempt("content encoding", async () => {
  const content = Buffer.from("not really gzip");
  await send("putObject", {
    Key: "encoded",
    Body: Readable.from([content]),
    ContentLength: content.length,
    ContentEncoding: "gzip",
  });
  const { ContentEncoding } = await send("headObject", { Key: "encoded" });
  await send("deleteObject", { Key: "encoded" });
  return ContentEncoding;
});
await attempt("range", async () => {
  await send("putObject", { Key: "ranged", Body: "0123456789" });
  const part = await get({ Key: "ranged", Range: "bytes=2-4" });
  await send("deleteObject", { Key: "ranged" });
  return part;
});
await attempt("missing", () => get({ Key: "missing" }));
await attempt("presigned", async () => {
  const answer = await fetch(
    await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key: "plain.txt" })),
  );
  return [answer.status, await answer.text()];
});
await attempt("item", async () => {
  await dynamo.send(
    new PutItemCommand({
      TableName: "jobs",
      Item: { id: { S: "1" }, text: { S: 'ünï "quoted"' } },
    }),
  );
  const { Item } = await dynamo.send(
    new GetItemCommand({ TableName: "jobs", Key: { id: { S: "1" } } }),
  );
  return { id: Item.id.S, text: Item.text.S };
});
await attempt("identity", async () => (await sts.send(new GetCallerIdentityCommand({}))).Arn);
await attempt("denied bucket", () => send("putObject", { Bucket: "payroll", Key: "x", Body: "x" }));
await attempt("denied copy", () => send("copyObject", { Key: "x", CopySource: "payroll/x" }));
await attempt("denied item", () =>
  dynamo.send(new DeleteItemCommand({ TableName: "jobs", Key: { id: { S: "1" } } })),
);
await attempt("denied role", () =>
  sts.send(
    new AssumeRoleCommand({
      RoleArn: "arn:aws:iam::111122223333:role/admin",
      RoleSessionName: "agent",
    }),
  ),
);
