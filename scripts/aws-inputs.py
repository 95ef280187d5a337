"""Writes src/providers/aws/testdata/inputs.json: members of the input of each AWS operation that can be scoped.

    node -e 'import("./src/providers/aws/resources.ts").then((m) => console.log(m.SCOPED_OPERATIONS.join("\\n")))' \
      | python3 scripts/aws-inputs.py <botocore/data> > src/providers/aws/testdata/inputs.json

From the service models in PyPI's botocore (Apache-2.0, 1.44.5). Only members that stand in the body.
"""
import gzip
import json
import os
import sys

DATA = sys.argv[1]


def model(service):
    version = sorted(os.listdir(f"{DATA}/{service}"))[-1]
    path = f"{DATA}/{service}/{version}/service-2.json"
    if os.path.exists(path + ".gz"):
        with gzip.open(path + ".gz") as file:
            return json.load(file)
    with open(path) as file:
        return json.load(file)


models, table = {}, {}
for line in sorted(filter(None, map(str.strip, sys.stdin))):
    service, operation = line.split(".")
    if service not in models:
        models[service] = model(service)
    whole = models[service]
    shape = whole["operations"][operation].get("input", {}).get("shape")
    members = whole["shapes"][shape].get("members", {}) if shape else {}
    table[line] = " ".join(sorted(name for name, member in members.items() if "location" not in member))
json.dump({"operations": table}, sys.stdout, indent=0)
print()
