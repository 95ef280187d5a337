/** Tables that a request to DynamoDB touches; an index if it reads one, as in IAM. */
import type { ServiceResource } from "../contract.ts";
import { isJsonObject } from "../strict-json.ts";
import {
  each,
  fieldsOf,
  list,
  member,
  referenced,
  unscopable,
  type Input,
  type Reference,
} from "./arns.ts";

const NAME = "[A-Za-z0-9_.-]{3,255}";
const table: Reference = {
  service: "dynamodb",
  rest: new RegExp(`^table/${NAME}$`),
  name: new RegExp(`^${NAME}$`),
  restOf: (name) => `table/${name}`,
};

const byTable = (input: Input): readonly ServiceResource[] => fieldsOf(table, ["TableName"], input);

function byIndex(input: Input): readonly ServiceResource[] {
  const index = input.fields()?.["IndexName"];
  const [resource] = byTable(input);
  if (index === undefined || resource?.kind !== "scoped")
    return resource === undefined ? [] : [resource];
  return typeof index === "string" && new RegExp(`^${NAME}$`).test(index)
    ? [{ ...resource, value: `${resource.value}/index/${index}` }]
    : [unscopable("the index has no name")];
}

const byRequestItems = (input: Input): readonly ServiceResource[] => {
  const items = input.fields()?.["RequestItems"];
  return each(isJsonObject(items) ? Object.keys(items) : undefined, (name) =>
    referenced(table, name, input),
  );
};

/** Members of a transaction's items, with the IAM action of each. */
export const TRANSACTION_ACTIONS: Readonly<Record<string, string>> = {
  ConditionCheck: "dynamodb:ConditionCheckItem",
  Delete: "dynamodb:DeleteItem",
  Get: "dynamodb:GetItem",
  Put: "dynamodb:PutItem",
  Update: "dynamodb:UpdateItem",
};

export interface TransactionPart {
  readonly action: string;
  readonly resource: ServiceResource;
}

/** Returns the parts of a transaction, item by item; undefined if the body could not be parsed. */
export function transaction(input: Input): readonly TransactionPart[] | undefined {
  const items = list(input.fields()?.["TransactItems"]);
  if (items === undefined || items.length === 0) return undefined;
  const parts: TransactionPart[] = [];
  for (const item of items) {
    const [name, ...more] = isJsonObject(item) ? Object.keys(item) : [];
    if (name === undefined || more.length > 0 || !Object.hasOwn(TRANSACTION_ACTIONS, name))
      return undefined;
    parts.push({
      action: TRANSACTION_ACTIONS[name] as string,
      resource: referenced(table, member(member(item, name), "TableName"), input),
    });
  }
  return parts;
}

export const dynamodbResources: Readonly<
  Record<string, (input: Input) => readonly ServiceResource[]>
> = {
  ...Object.fromEntries(
    [
      "CreateTable",
      "DeleteItem",
      "DeleteTable",
      "DescribeContinuousBackups",
      "DescribeTable",
      "DescribeTimeToLive",
      "GetItem",
      "PutItem",
      "UpdateContinuousBackups",
      "UpdateItem",
      "UpdateTable",
      "UpdateTimeToLive",
    ].map((name) => [name, byTable]),
  ),
  Query: byIndex,
  Scan: byIndex,
  BatchGetItem: byRequestItems,
  BatchWriteItem: byRequestItems,
  ListTagsOfResource: (input) => fieldsOf({ ...table, name: /^(?!)/ }, ["ResourceArn"], input),
};
