/**
 * ARNs of the resources that a request touches. Only operations listed here, with all of their
 * fields that name a resource, can be scoped, so that no unexamined field can name one.
 * https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
 */
import type { ServiceResource } from "../contract.ts";
import { isJsonObject, type StrictJson } from "../strict-json.ts";
import type { EndpointPlace } from "./endpoint.ts";

/** Parameters of an operation, in any protocol. */
export interface Input {
  readonly operation: string;
  readonly place: EndpointPlace;
  /** Account of names that do not contain one; undefined if not configured. */
  readonly account: string | undefined;
  /** Labels of the path. */
  readonly labels: Readonly<Record<string, string>>;
  /** Returns each value of a parameter of the query. */
  readonly query: (name: string) => readonly string[];
  /** Whether there is a body, or a form in the query. */
  readonly hasBody: boolean;
  /** JSON's members or a form's parameters; undefined if the body could not be parsed. */
  readonly fields: () => Readonly<Record<string, StrictJson>> | undefined;
}

const NO_ACCOUNT = "the ARN needs the account: set config.accountId on the Provider";

export function arn(value: string): ServiceResource {
  return { kind: "scoped", key: "arns", value };
}

export function unscopable(reason: string): ServiceResource {
  return { kind: "unscopable", reason };
}

/** Builds `arn:<partition>:<service>:<region>:<account>:<rest>` in the configured account. */
export function ownArn(
  input: Pick<Input, "place" | "account">,
  service: string,
  rest: string,
): ServiceResource {
  const { place, account } = input;
  return account === undefined
    ? unscopable(NO_ACCOUNT)
    : arn(`arn:${place.partition}:${service}:${place.region}:${account}:${rest}`);
}

/** A reference that is an ARN or a name, with patterns for each form. */
interface Reference {
  readonly service: string;
  /** Pattern for the part of an ARN after the account. */
  readonly rest: RegExp;
  /** Pattern for a bare name. */
  readonly name: RegExp;
  /** Converts a bare name to the part of the ARN after the account. */
  readonly restOf: (name: string) => string;
}

const ARN = /^arn:(aws|aws-cn|aws-us-gov):([a-z0-9-]+):([a-z0-9-]*):([0-9]{12}|):(.+)$/s;

/** Returns the ARN of a reference; unscopable if it has neither form. */
export function referenced(
  reference: Reference,
  value: StrictJson | undefined,
  input: Input,
): ServiceResource {
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

/** Accepts an ARN of any service and account unchanged. */
export function anyArn(value: StrictJson | undefined, input: Input): ServiceResource {
  const [, partition] = typeof value === "string" ? (ARN.exec(value) ?? []) : [];
  return typeof value === "string" && partition === input.place.partition
    ? arn(value)
    : unscopable(`${input.operation} names something by what is not an ARN`);
}

/** Returns all resources named by a list or a map's keys; unscopable if there is none. */
export function each(
  values: readonly StrictJson[] | undefined,
  one: (value: StrictJson) => ServiceResource,
): readonly ServiceResource[] {
  return values === undefined || values.length === 0
    ? [unscopable("the request does not list its resources")]
    : values.map(one);
}

export function list(value: StrictJson | undefined): readonly StrictJson[] | undefined {
  return Array.isArray(value) ? (value as readonly StrictJson[]) : undefined;
}

/** Returns one resource for each field; every field must be present. */
export function fieldsOf(
  reference: Reference,
  names: readonly string[],
  input: Input,
): readonly ServiceResource[] {
  const fields = input.fields();
  if (fields === undefined)
    return [unscopable("the body is not understood: send plain JSON without repeated keys")];
  return names.map((name) => referenced(reference, fields[name], input));
}

/** Reads one of several fields with the same meaning: exactly one may be present. */
export function oneOf(
  reference: Reference,
  names: readonly string[],
  input: Input,
): readonly ServiceResource[] {
  const present = names.filter((name) => input.fields()?.[name] !== undefined);
  return present.length > 1
    ? [unscopable(`${present.join(" and ")} at once`)]
    : fieldsOf(reference, [present[0] ?? (names[0] as string)], input);
}

export function member(value: StrictJson | undefined, name: string): StrictJson | undefined {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

export type { Reference };
