/**
 * Denials in AWS's own error formats, by the protocol of the request: an SDK shows the message only
 * of an error that it can parse. https://smithy.io/2.0/aws/protocols/
 * https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
 */
import type { Denial, ServiceRequest, WordedDenial } from "../contract.ts";
import { escapeXml } from "../xml-text.ts";
import { endpointOf } from "./endpoint.ts";

/**
 * Services that respond in XML, besides S3 and those with the query protocol; by the first label of
 * their host.
 */
const REST_XML: ReadonlySet<string> = new Set(["cloudfront", "route53"]);

export function wordDenial(request: ServiceRequest, denial: Denial): WordedDenial | undefined {
  // The region does not matter here.
  const kind = endpointOf(request.host, "us-east-1")?.kind;
  const error = `<Code>${codeOf(denial)}</Code><Message>${escapeXml(denial.message)}</Message>`;
  if (kind === "s3" || kind === "s3-access-point") return xml(`<Error>${error}</Error>`);
  const first = request.host.split(".")[0] ?? "";
  const isForm =
    (request.headers.get("content-type") ?? "").startsWith("application/x-www-form-urlencoded") ||
    /(?:^|&)Action=/.test(request.query);
  if (isForm && first === "ec2")
    return xml(`<Response><Errors><Error>${error}</Error></Errors></Response>`);
  if (isForm || REST_XML.has(first) || /(?:^|\.)s3-control\./.test(request.host))
    return xml(`<ErrorResponse><Error><Type>Sender</Type>${error}</Error></ErrorResponse>`);
  const { code, message, details } = denial;
  return {
    headers: [
      [
        "content-type",
        request.headers.has("x-amz-target") ? "application/x-amz-json-1.0" : "application/json",
      ],
      ["x-amzn-errortype", `${codeOf(denial)}Exception`],
    ],
    body:
      JSON.stringify({
        __type: `${codeOf(denial)}Exception`,
        code,
        message,
        ...details,
        source: "svc",
      }) + "\n",
  };
}

/** SDKs retry errors that may be temporary, such as a token that is not available yet. */
function codeOf({ status }: Denial): string {
  if (status === 403) return "AccessDenied";
  return status >= 500 ? "ServiceUnavailable" : "InvalidRequest";
}

function xml(body: string): WordedDenial {
  return {
    headers: [["content-type", "application/xml"]],
    body: `<?xml version="1.0" encoding="UTF-8"?>\n${body}\n`,
  };
}
