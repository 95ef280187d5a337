"""Asks each address of its arguments with requests; one line of JSON for each answer."""

import json
import sys

import requests

with requests.Session() as session:
    for url in sys.argv[1:]:
        try:
            answer = session.get(url, headers={"authorization": "token agents-own"})
            print(json.dumps({"status": answer.status_code, "protocol": "HTTP/%.1f" % (answer.raw.version / 10), "body": answer.text}))
        except requests.RequestException as error:
            print(json.dumps({"error": str(error)}))
