/**
 * AWS as clients see it: S3, DynamoDB and STS in memory, behind Signature Version 4. The signature
 * is verified by the specification, from the received bytes, without our own signer.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
import type { AwsAnswer } from "./aws-answer.ts";
import type http2 from "node:http2";
import { answerDynamo } from "./aws-dynamo.ts";
import { S3 } from "./aws-s3.ts";
import { AwsFault, verify, type AwsKey } from "./aws-verify.ts";
import type { Received } from "./services.ts";

export class AwsServer {
  readonly s3 = new S3();
  readonly #key: AwsKey;
  readonly #items = new Map<string, unknown>();

  constructor(key: AwsKey) {
    this.#key = key;
  }

  serve(request: Received, response: http2.Http2ServerResponse): void {
    const { status, headers = {}, body = "" } = this.#answer(request);
    response.writeHead(status, { "content-length": String(Buffer.byteLength(body)), ...headers });
    response.end(request.method === "HEAD" ? "" : body);
  }

  #answer(request: Received): AwsAnswer {
    const service = /(?:^|\.)s3(?:\.us-east-1)?\.amazonaws\.com$/.test(request.host)
      ? "s3"
      : (request.host.split(".")[0] ?? "");
    try {
      const content = verify(request, service, this.#key, Date.now());
      if (service === "s3") return this.s3.answer(request, content);
      if (service === "dynamodb")
        return answerDynamo(request, content.toString("utf8"), this.#items);
      if (service === "sts") return callerIdentity(content.toString("utf8"), this.#key);
      throw new AwsFault(400, "UnknownService", request.host);
    } catch (error) {
      if (!(error instanceof AwsFault)) throw error;
      const { status, code, message } = error;
      if (service === "dynamodb")
        return {
          status,
          headers: { "content-type": "application/x-amz-json-1.0" },
          body: JSON.stringify({ __type: code, message }),
        };
      const fault = `<Error><Code>${code}</Code><Message>${message}</Message></Error>`;
      return {
        status,
        headers: { "content-type": "application/xml" },
        body: service === "s3" ? fault : `<ErrorResponse>${fault}</ErrorResponse>`,
      };
    }
  }
}

/** The query protocol: a form in, XML out. */
function callerIdentity(form: string, { accessKeyId }: AwsKey): AwsAnswer {
  const action = new URLSearchParams(form).get("Action");
  if (action !== "GetCallerIdentity") throw new AwsFault(400, "InvalidAction", action ?? "");
  const result =
    `<Arn>arn:aws:iam::111122223333:user/${accessKeyId}</Arn><UserId>AIDA</` +
    "UserId><Account>111122223333</Account>";
  const body =
    "<GetCallerIdentityResponse " +
    `xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult>${result}</` +
    "GetCallerIdentityResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></" +
    "GetCallerIdentityResponse>";
  return { status: 200, headers: { "content-type": "text/xml" }, body };
}
