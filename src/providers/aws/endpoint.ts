/**
 * Determines the AWS service and region of a host. Only hosts that are certainly AWS's own API are
 * accepted: amazonaws.com also contains load balancers, machines and web sites of customers.
 * https://docs.aws.amazon.com/general/latest/gr/rande.html
 */
import { servicesByHost, servicesByPrefix, type Service } from "./service-table.ts";

export type Partition = "aws" | "aws-cn" | "aws-us-gov";

export interface EndpointPlace {
  readonly region: string;
  readonly partition: Partition;
}

/** Hosts whose IAM action follows from the method alone. */
export type MethodService = "apigateway" | "execute-api" | "es" | "aoss" | "lambda-url";

export type AwsEndpoint =
  /** If `bucket` is undefined, it is the path's first segment. */
  | (EndpointPlace & { readonly kind: "s3"; readonly bucket: string | undefined })
  | (EndpointPlace & {
      readonly kind: "s3-access-point";
      readonly name: string;
      readonly account: string;
    })
  | (EndpointPlace & { readonly kind: "service"; readonly services: readonly Service[] })
  | (EndpointPlace & {
      readonly kind: "method";
      readonly service: MethodService;
      readonly signingName: string;
    });

const REGION = "[a-z]{2}(?:-[a-z]+)+-[0-9]{1,2}";
const DOMAIN = "amazonaws\\.com(?:\\.cn)?";
const BUCKET = "[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]";

const s3Host = new RegExp(
  `^(?:(?<bucket>${BUCKET})\\.)?s3(?:-fips)?(?:\\.dualstack)?(?:[.-` +
    `](?<region>${REGION}))?\\.(?<domain>${DOMAIN})$`,
);
const s3Accelerated = new RegExp(
  `^(?<bucket>${BUCKET})\\.s3-accelerate(?:\\.dualstack)?\\.(?<domain>amazonaws\\.com)$`,
);
const s3Private = new RegExp(
  `^(?:(?<bucket>${BUCKET})\\.)?bucket\\.vpce-[0-9a-z-]+\\.s3\\.(?<region>${REGION})\\.` +
    `vpce\\.(?<domain>${DOMAIN})$`,
);
const s3AccessPoint = new RegExp(
  "^(?<name>[a-z0-9][a-z0-9-]{1,48}[a-z0-9])-(?<account>[0-9]{12})\\.s3-accesspoint(?:-" +
    `fips)?(?:\\.dualstack)?\\.(?<region>${REGION})\\.(?<domain>${DOMAIN})$`,
);
/** DynamoDB, Kinesis and S3 Control also have hosts per account. */
const accountHost = new RegExp(
  "^(?:[0-9]{12}\\.)(?:(?<ddb>ddb)|(?<streams>streams-ddb)|(?:control|data)-" +
    "(?<kinesis>kinesis)|(?<control>s3-control))(?:-fips)?(?:\\.dualstack)?\\." +
    `(?<region>${REGION})\\.(?<domain>${DOMAIN}|api\\.aws)$`,
);
const privateHost = new RegExp(
  `^vpce-[0-9a-z-]+\\.(?<prefix>[a-z0-9.-]+)\\.(?<region>${REGION})\\.vpce\\.(?<domain>${DOMAIN})$`,
);
const regionalHost = new RegExp(
  `^(?<prefix>[a-z0-9.-]+)\\.(?<region>${REGION})\\.(?<domain>${DOMAIN}|api\\.aws)$`,
);
const methodHosts: readonly {
  readonly pattern: RegExp;
  readonly service: MethodService;
  readonly signingName: string;
}[] = [
  {
    pattern: new RegExp(`^apigateway(?:-fips)?\\.(?<region>${REGION})\\.(?<domain>${DOMAIN})$`),
    service: "apigateway",
    signingName: "apigateway",
  },
  {
    pattern: new RegExp(
      `^[a-z0-9]{10}\\.execute-api(?:-fips)?\\.(?<region>${REGION})\\.(?<domain>${DOMAIN})$`,
    ),
    service: "execute-api",
    signingName: "execute-api",
  },
  {
    pattern: new RegExp(
      `^(?:search|vpc)-[a-z0-9-]+\\.(?<region>${REGION})\\.es\\.(?<domain>${DOMAIN})$`,
    ),
    service: "es",
    signingName: "es",
  },
  {
    pattern: new RegExp(`^[a-z0-9]{3,40}\\.(?<region>${REGION})\\.aoss\\.(?<domain>${DOMAIN})$`),
    service: "aoss",
    signingName: "aoss",
  },
  {
    pattern: new RegExp(
      `^[a-z0-9]{20,40}\\.lambda-url\\.(?<region>${REGION})\\.(?<domain>on\\.aws)$`,
    ),
    service: "lambda-url",
    signingName: "lambda",
  },
];

/**
 * Valid for RE2 and JavaScript: hosts of S3's objects, whose bodies are not read. A request to a
 * host that it matches by mistake is evaluated without its body, and is then refused.
 */
export const S3_HOSTS =
  "([a-z0-9.-]+\\.)?s3(-fips|-accelerate)?(\\.dualstack)?([.-][a-z0-9-]+)?\\.amazonaws\\." +
  "com(\\.cn)?|[a-z0-9.-]+\\.s3-accesspoint[a-z0-9.-]*\\.amazonaws\\.com(\\.cn)?|[a-z0-9.-" +
  "]*bucket\\.vpce-[a-z0-9-]+\\.s3\\.[a-z0-9-]+\\.vpce\\.amazonaws\\.com(\\.cn)?";

/** @param fallbackRegion region of S3 hosts that do not name one */
export function endpointOf(host: string, fallbackRegion: string): AwsEndpoint | undefined {
  return s3(host, fallbackRegion) ?? methodEndpoint(host) ?? service(host);
}

function s3(host: string, fallbackRegion: string): AwsEndpoint | undefined {
  const match = s3Host.exec(host) ?? s3Accelerated.exec(host) ?? s3Private.exec(host);
  if (match !== null) {
    const { bucket, region = fallbackRegion, domain = "" } = match.groups ?? {};
    const at = placed(region, domain);
    return at === undefined || bucket?.includes("..") === true
      ? undefined
      : { kind: "s3", bucket, ...at };
  }
  const point = s3AccessPoint.exec(host)?.groups;
  if (point === undefined) return undefined;
  const at = placed(point["region"] ?? "", point["domain"] ?? "");
  return at === undefined
    ? undefined
    : {
        kind: "s3-access-point",
        name: point["name"] ?? "",
        account: point["account"] ?? "",
        ...at,
      };
}

function methodEndpoint(host: string): AwsEndpoint | undefined {
  for (const { pattern, service: name, signingName } of methodHosts) {
    const groups = pattern.exec(host)?.groups;
    if (groups === undefined) continue;
    const at = placed(groups["region"] ?? "", groups["domain"] ?? "");
    return at === undefined ? undefined : { kind: "method", service: name, signingName, ...at };
  }
  return undefined;
}

function service(host: string): AwsEndpoint | undefined {
  const known = servicesByHost(host);
  if (known !== undefined)
    return {
      kind: "service",
      services: known.services,
      region: known.region,
      partition: partitionOf(known.region),
    };
  const owned = accountHost.exec(host)?.groups;
  const groups = owned ?? privateHost.exec(host)?.groups ?? regionalHost.exec(host)?.groups;
  if (groups === undefined) return undefined;
  const services = servicesByPrefix(
    owned === undefined ? (groups["prefix"] ?? "") : ownedPrefix(owned),
  );
  const at = placed(groups["region"] ?? "", groups["domain"] ?? "");
  return services === undefined || at === undefined
    ? undefined
    : { kind: "service", services, ...at };
}

function ownedPrefix(groups: Readonly<Record<string, string | undefined>>): string {
  if (groups["ddb"] !== undefined) return "dynamodb";
  if (groups["streams"] !== undefined) return "streams.dynamodb";
  return groups["kinesis"] === undefined ? "s3-control" : "kinesis";
}

/** China's regions are under `.cn`, and no other regions are. */
function placed(region: string, domain: string): EndpointPlace | undefined {
  return region.startsWith("cn-") === domain.endsWith(".cn")
    ? { region, partition: partitionOf(region) }
    : undefined;
}

function partitionOf(region: string): Partition {
  if (region.startsWith("cn-")) return "aws-cn";
  return region.startsWith("us-gov-") ? "aws-us-gov" : "aws";
}
