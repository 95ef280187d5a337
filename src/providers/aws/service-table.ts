/**
 * The data of operations.json for each AWS service: its hosts, its protocols, and the IAM actions
 * of its operations. scripts/aws-operations.py generates the table from AWS's own service models.
 * Services are unpacked on first use.
 */
import table from "./operations.json" with { type: "json" };

interface Row {
  readonly id: string;
  readonly iam: string;
  readonly sign: string;
  readonly hosts: string;
  readonly whole?: Readonly<Record<string, string>>;
  readonly target?: string;
  readonly query?: string;
  readonly rpc?: string;
  readonly rest?: string;
}

export interface AwsOperation {
  /** Name in the API. */
  readonly name: string;
  /** IAM's names, e.g. `dynamodb:PutItem`; all are required. */
  readonly actions: readonly string[];
}

export type PathPart =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "label"; readonly name: string; readonly greedy: boolean };

export interface RestOperation extends AwsOperation {
  readonly method: string;
  readonly path: readonly PathPart[];
  /** Required parameters; with a value if it matters. */
  readonly query: readonly { readonly name: string; readonly value: string | undefined }[];
}

export class Service {
  readonly id: string;
  /** Name of the service in a signature. */
  readonly signingName: string;
  /** Prefix of `x-amz-target`, and of CBOR's paths; undefined if it supports neither. */
  readonly target: string | undefined;
  /** Whether it supports `Action=`. */
  readonly speaksQuery: boolean;
  readonly #row: Row;
  #rpc: ReadonlyMap<string, AwsOperation> | undefined;
  #rest: readonly RestOperation[] | undefined;

  constructor(row: Row) {
    this.id = row.id;
    this.signingName = row.sign;
    this.target = row.target;
    // Without reading it: long texts are unpacked when they are read.
    this.speaksQuery = "query" in row;
    this.#row = row;
  }

  /** Finds an operation named in a header, a form or CBOR's path. */
  rpc(name: string): AwsOperation | undefined {
    this.#rpc ??= new Map(
      (this.#row.rpc ?? "")
        .split(" ")
        .filter(Boolean)
        .map((text) => [this.#operation(text).name, this.#operation(text)]),
    );
    return this.#rpc.get(name);
  }

  /** Operations identified by method and path. */
  get rest(): readonly RestOperation[] {
    this.#rest ??= (this.#row.rest ?? "")
      .split("\n")
      .filter(Boolean)
      .map((line) => this.#restOperation(line));
    return this.#rest;
  }

  #operation(text: string): AwsOperation {
    const [name = "", actions = name] = text.split("=");
    return { name, actions: actions.split("+").map((action) => `${this.#row.iam}:${action}`) };
  }

  #restOperation(line: string): RestOperation {
    const [method = "", uri = "", text = ""] = line.split(" ");
    const [path = "", query = ""] = uri.split("?");
    return {
      ...this.#operation(text),
      method,
      path: path.split("/").filter(Boolean).map(pathPart),
      query: query
        .split("&")
        .filter(Boolean)
        .map((part) => {
          const [name = "", value] = part.split("=");
          return { name, value };
        }),
    };
  }
}

function pathPart(text: string): PathPart {
  const label = /^\{(\w+)(\+)?\}$/.exec(text);
  return label === null
    ? { kind: "literal", text }
    : { kind: "label", name: label[1] as string, greedy: label[2] !== undefined };
}

const rows: readonly Row[] = table.services;
const byPrefix = new Map<string, Service[]>();
const byHost = new Map<string, { readonly region: string; readonly services: Service[] }>();
for (const row of rows) {
  const service = new Service(row);
  for (const prefix of row.hosts.split(" "))
    byPrefix.set(prefix, [...(byPrefix.get(prefix) ?? []), service]);
  for (const [host, region] of Object.entries(row.whole ?? {})) {
    byHost.set(host, { region, services: [...(byHost.get(host)?.services ?? []), service] });
  }
}

/** Services at `<prefix>.<region>.amazonaws.com`. */
export function servicesByPrefix(prefix: string): readonly Service[] | undefined {
  return byPrefix.get(prefix);
}

/**
 * Services at a host that does not consist of a prefix and a region, with the region in their
 * signatures.
 */
export function servicesByHost(
  host: string,
): { readonly region: string; readonly services: readonly Service[] } | undefined {
  return byHost.get(host);
}
