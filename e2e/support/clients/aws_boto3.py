"""What agents do with boto3, as it comes: one line of JSON for each try. Argument: the file of keys."""

import io
import json
import sys
import tempfile
import urllib.error
import urllib.request

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

BUCKET = "reports"
MIB = 1024 * 1024
with open(sys.argv[1], encoding="utf-8") as file:
    KEYS = json.load(file)

s3 = boto3.client("s3")


def attempt(name, call):
    try:
        print(json.dumps({"name": name, "value": call()}))
    except ClientError as error:
        answer = error.response
        print(json.dumps({"name": name, "status": answer["ResponseMetadata"]["HTTPStatusCode"], "code": answer["Error"].get("Code"), "message": answer["Error"].get("Message")}))
    except Exception as error:  # shown, and so a failure of the test
        print(json.dumps({"name": name, "error": f"{type(error).__name__}: {error}"}))


def get(key, **more):
    return s3.get_object(Bucket=BUCKET, Key=key, **more)["Body"].read().decode()


def round_trip(key):
    s3.put_object(Bucket=BUCKET, Key=key, Body=f"content of {key}".encode())
    size = s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"]
    return [get(key), size == len(f"content of {key}".encode())]


def listed():
    return sorted(item["Key"] for item in s3.list_objects_v2(Bucket=BUCKET).get("Contents", []))


def delete_each():
    for key in KEYS:
        s3.delete_object(Bucket=BUCKET, Key=key)
    return listed()


def streamed():
    with tempfile.TemporaryFile() as file:
        file.write(b"streamed " * 400_000)
        file.seek(0)
        s3.put_object(Bucket=BUCKET, Key="streamed", Body=file, ContentType="text/plain", Metadata={"origin": "a  file"})
    answer = s3.get_object(Bucket=BUCKET, Key="streamed")
    return [answer["Body"].read() == b"streamed " * 400_000, answer["ContentType"], answer["Metadata"]]


def multipart():
    content = bytes(range(256)) * (12 * MIB // 256)
    s3.upload_fileobj(io.BytesIO(content), BUCKET, "multi part/+large", Config=TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB))
    target = io.BytesIO()
    s3.download_fileobj(BUCKET, "multi part/+large", target, Config=TransferConfig(multipart_threshold=5 * MIB, multipart_chunksize=5 * MIB))
    return target.getvalue() == content


def aborted():
    upload = s3.create_multipart_upload(Bucket=BUCKET, Key="aborted")["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key="aborted", UploadId=upload, PartNumber=1, Body=b"part")
    return s3.abort_multipart_upload(Bucket=BUCKET, Key="aborted", UploadId=upload)["ResponseMetadata"]["HTTPStatusCode"]


def copied():
    s3.put_object(Bucket=BUCKET, Key="from/a b+ü%.txt", Body=b"copied")
    s3.copy_object(Bucket=BUCKET, Key="to//copy", CopySource={"Bucket": BUCKET, "Key": "from/a b+ü%.txt"})
    return get("to//copy")


def deleted_together():
    keys = ["to//copy", "from/a b+ü%.txt", "streamed", "multi part/+large"]
    answer = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key} for key in keys]})
    return [len(answer["Deleted"]), listed()]


def encoded():
    s3.put_object(Bucket=BUCKET, Key="encoded", Body=io.BytesIO(b"not really gzip"), ContentEncoding="gzip")
    encoding = s3.head_object(Bucket=BUCKET, Key="encoded")["ContentEncoding"]
    s3.delete_object(Bucket=BUCKET, Key="encoded")
    return encoding


def ranged():
    s3.put_object(Bucket=BUCKET, Key="ranged", Body=b"0123456789")
    part = get("ranged", Range="bytes=2-4")
    s3.delete_object(Bucket=BUCKET, Key="ranged")
    return part


def presigned():
    url = s3.generate_presigned_url("get_object", Params={"Bucket": BUCKET, "Key": "plain.txt"})
    try:
        return urllib.request.urlopen(url).read().decode()
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]


def item():
    table = boto3.resource("dynamodb").Table("jobs")
    table.put_item(Item={"id": "1", "text": "ünï \"quoted\""})
    return table.get_item(Key={"id": "1"})["Item"]


for key in KEYS:
    attempt(f"key {key}", lambda key=key: round_trip(key))
attempt("list", listed)
attempt("delete each", delete_each)
attempt("stream", streamed)
attempt("multipart", multipart)
attempt("abort", aborted)
attempt("copy", copied)
attempt("delete together", deleted_together)
attempt("content encoding", encoded)
attempt("range", ranged)
attempt("missing", lambda: get("missing"))
attempt("presigned", presigned)
attempt("item", item)
attempt("identity", lambda: boto3.client("sts").get_caller_identity()["Arn"])
attempt("denied bucket", lambda: s3.put_object(Bucket="payroll", Key="x", Body=b"x"))
attempt("denied copy", lambda: s3.copy_object(Bucket=BUCKET, Key="x", CopySource="payroll/x"))
attempt("denied item", lambda: boto3.client("dynamodb").delete_item(TableName="jobs", Key={"id": {"S": "1"}}))
attempt("denied role", lambda: boto3.client("sts").assume_role(RoleArn="arn:aws:iam::111122223333:role/admin", RoleSessionName="agent"))
