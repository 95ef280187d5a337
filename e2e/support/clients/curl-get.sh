#!/bin/sh
# Asks each address of its arguments with curl, after an option of curl's; a line for each answer: status, protocol, body in
# base64.
option=$1
shift
for url; do
  if told=$(curl -sS "$option" -H 'authorization: token agents-own' -o /tmp/body -w '%{http_code} HTTP/%{http_version}' "$url" 2>&1); then
    echo "$told $(base64 -w 0 /tmp/body)"
  else
    echo "error curl $(echo "$told" | base64 -w 0)"
  fi
done
