"""Writes src/providers/gcp/methods.json: which method of which Google API a request is.

    python3 scripts/gcp-methods.py <googleapiclient/discovery_cache/documents> > src/providers/gcp/methods.json

From the discovery documents in PyPI's google-api-python-client (Apache-2.0, 2.202.0). A method's action is the API, its
innermost resource and its own name (`pubsub.projects.topics.publish` is `pubsub.topics.publish`), which for most is the
IAM permission. Labels are kept by name only where they name a project or a bucket.
"""
import json
import os
import re
import sys

APIS = """aiplatform.v1 aiplatform.v1beta1 alloydb.v1 apikeys.v2 appengine.v1 artifactregistry.v1 bigquery.v2 bigqueryconnection.v1
bigquerydatatransfer.v1 bigqueryreservation.v1 bigtableadmin.v2 billingbudgets.v1 calendar.v3 cloudasset.v1 cloudbilling.v1 cloudbuild.v1
cloudbuild.v2 clouddeploy.v1 clouderrorreporting.v1beta1 cloudfunctions.v1 cloudfunctions.v2 cloudkms.v1 cloudresourcemanager.v1
cloudresourcemanager.v3 cloudscheduler.v1 cloudtasks.v2 cloudtrace.v1 cloudtrace.v2 composer.v1 compute.v1 container.v1
containeranalysis.v1 datacatalog.v1 dataflow.v1b3 dataplex.v1 dataproc.v1 datastore.v1 deploymentmanager.v2 dialogflow.v2 dialogflow.v3
discoveryengine.v1 dlp.v2 dns.v1 docs.v1 documentai.v1 drive.v3 eventarc.v1 file.v1 firestore.v1 gmail.v1 iam.v1 language.v1 language.v2
logging.v2 memcache.v1 monitoring.v1 monitoring.v3 orgpolicy.v2 osconfig.v1 pubsub.v1 recommender.v1 redis.v1 run.v1 run.v2
secretmanager.v1 serviceusage.v1 sheets.v4 spanner.v1 speech.v1 sqladmin.v1 sqladmin.v1beta4 storage.v1 texttospeech.v1 translate.v2
translate.v3 videointelligence.v1 vision.v1 workflowexecutions.v1 workflows.v1""".split()

KEPT = {"project", "projectId", "bucket", "sourceBucket", "destinationBucket"}


def methods(resource):
    for method in resource.get("methods", {}).values():
        yield method
    for inner in resource.get("resources", {}).values():
        yield from methods(inner)


def template(path):
    path = path.strip("/")
    return re.sub(r"\{\+?(\w+)\*?\}", lambda match: "{%s}" % (match[1] if match[1] in KEPT else ""), path)


def main():
    folder, table = sys.argv[1], []
    for api in APIS:
        with open(os.path.join(folder, api + ".json")) as file:
            document = json.load(file)
        host = document["rootUrl"].removeprefix("https://").rstrip("/")
        base = document["servicePath"]
        lines = set()
        for method in methods(document):
            parts = method["id"].split(".")
            action = ".".join([document["name"], *parts[1:][-2:]])
            flat = method.get("flatPath") or method["path"]
            paths = [base + flat]
            for protocol in method.get("mediaUpload", {}).get("protocols", {}).values():
                # Only the plain form of a path is given: labels stand for one segment each in these APIs.
                paths.append(protocol["path"])
            if method.get("useMediaDownloadService"):
                paths.append("download/" + base + flat)
            for path in paths:
                if "{+" not in path:
                    lines.add(f"{method['httpMethod']} {template(path)} {action}")
        table.append({"host": host, "legacy": "www.googleapis.com" if base else "", "methods": "\n".join(sorted(lines))})
    json.dump({"apis": table}, sys.stdout, indent=0)
    print()


main()
