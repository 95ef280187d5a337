/**
 * ARNs of what a request to a service touches. Only operations that are listed here, with every
 * field of theirs that names a resource: anything else cannot be scoped, so that nothing hides in a
 * field that nobody looked at.
 * https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
 */
import type { Resource } from "../contract.ts";
import { isJsonObject, type Json } from "../strict-json.ts";
import type { Place } from "./endpoint.ts";

/** What a request says of an operation, in whichever protocol. */
export interface Input {
  readonly operation: string;
  readonly place: Place;
  /** Whose names without an account are; undefined where the operator did not say. */
  readonly account: string | undefined;
  /** Labels of the path. */
  readonly labels: Readonly<Record<string, string>>;
  /** By name; undefined where a parameter stands twice or not at all. */
  readonly query: (name: string) => string | undefined;
  /** Whether there is a body, or a form in the query. */
  readonly hasBody: boolean;
  /** JSON's members or a form's parameters; undefined where the body was not understood. */
  readonly fields: () => Readonly<Record<string, Json>> | undefined;
}

const NO_ACCOUNT = "the ARN needs the account: set config.accountId on the Provider";

export function arn(value: string): Resource {
  return { kind: "scoped", key: "arns", value };
}

export function unscopable(reason: string): Resource {
  return { kind: "unscopable", reason };
}

/** `arn:<partition>:<service>:<region>:<account>:<rest>` of one's own account. */
export function ownArn(
  input: Pick<Input, "place" | "account">,
  service: string,
  rest: string,
): Resource {
  const { place, account } = input;
  return account === undefined
    ? unscopable(NO_ACCOUNT)
    : arn(`arn:${place.partition}:${service}:${place.region}:${account}:${rest}`);
}

/** A reference that is an ARN or a name, by patterns of what may follow the account. */
interface Reference {
  readonly service: string;
  /** Of an ARN, after the account. */
  readonly rest: RegExp;
  /** Of a bare name. */
  readonly name: RegExp;
  /** A bare name, as what would follow the account. */
  readonly restOf: (name: string) => string;
}

const ARN = /^arn:(aws|aws-cn|aws-us-gov):([a-z0-9-]+):([a-z0-9-]*):([0-9]{12}|):(.+)$/s;

/** The ARN that a reference stands for; unscopable where it is neither form. */
export function referenced(reference: Reference, value: Json | undefined, input: Input): Resource {
  if (typeof value !== "string")
    return unscopable(`${input.operation} does not say which resource`);
  if (value.startsWith("arn:")) {
    const [, partition, service, , , rest = ""] = ARN.exec(value) ?? [];
    if (
      partition === input.place.partition &&
      service === reference.service &&
      reference.rest.test(rest)
    )
      return arn(value);
  } else if (reference.name.test(value))
    return ownArn(input, reference.service, reference.restOf(value));
  return unscopable(`${input.operation} names its resource in a form that is not understood`);
}

/** An ARN of any service and account, as it stands. */
export function anyArn(value: Json | undefined, input: Input): Resource {
  const [, partition] = typeof value === "string" ? (ARN.exec(value) ?? []) : [];
  return typeof value === "string" && partition === input.place.partition
    ? arn(value)
    : unscopable(`${input.operation} names something by what is not an ARN`);
}

/** All that a list or a map's keys name; unscopable where there is none. */
export function each(
  values: readonly Json[] | undefined,
  one: (value: Json) => Resource,
): readonly Resource[] {
  return values === undefined || values.length === 0
    ? [unscopable("the request does not list its resources")]
    : values.map(one);
}

export function list(value: Json | undefined): readonly Json[] | undefined {
  return Array.isArray(value) ? (value as readonly Json[]) : undefined;
}

/** The fields' resources, one for each field named; every field must be there. */
export function fieldsOf(
  reference: Reference,
  names: readonly string[],
  input: Input,
): readonly Resource[] {
  const fields = input.fields();
  if (fields === undefined)
    return [unscopable("the body is not understood: send plain JSON without repeated keys")];
  return names.map((name) => referenced(reference, fields[name], input));
}

/** One of several fields that name the same thing: exactly one may be there. */
export function oneOf(
  reference: Reference,
  names: readonly string[],
  input: Input,
): readonly Resource[] {
  const present = names.filter((name) => input.fields()?.[name] !== undefined);
  return present.length > 1
    ? [unscopable(`${present.join(" and ")} at once`)]
    : fieldsOf(reference, [present[0] ?? (names[0] as string)], input);
}

export function member(value: Json | undefined, name: string): Json | undefined {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export type { Reference };
