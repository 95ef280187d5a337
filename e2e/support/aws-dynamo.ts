/** Two operations of DynamoDB, JSON 1.0: one table whose items have the key `id`. */
import { crc32 } from "node:zlib";
import type { AwsAnswer } from "./aws-answer.ts";
import { AwsFault } from "./aws-verify.ts";
import type { Received } from "./services.ts";

interface Call {
  readonly TableName: string;
  readonly Item?: { readonly id: { readonly S: string } };
  readonly Key?: { readonly id: { readonly S: string } };
}

export function answerDynamo(
  { headers }: Received,
  text: string,
  items: Map<string, unknown>,
): AwsAnswer {
  const { TableName, Item, Key } = JSON.parse(text) as Call;
  const target = headers["x-amz-target"];
  if (target === "DynamoDB_20120810.PutItem" && Item !== undefined) {
    items.set(`${TableName}/${Item.id.S}`, Item);
    return json({});
  }
  if (target === "DynamoDB_20120810.GetItem" && Key !== undefined)
    return json({ Item: items.get(`${TableName}/${Key.id.S}`) });
  throw new AwsFault(400, "UnknownOperationException", String(target));
}

/** Includes the checksum that SDKs verify. */
function json(value: object): AwsAnswer {
  const body = JSON.stringify(value);
  return {
    status: 200,
    headers: { "content-type": "application/x-amz-json-1.0", "x-amz-crc32": String(crc32(body)) },
    body,
  };
}
