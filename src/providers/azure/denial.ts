/**
 * Denials in the form of Azure's errors, whose code and message its SDKs show: XML at blob storage,
 * else JSON. A response to HEAD has only the header.
 * https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
 * https://github.com/microsoft/api-guidelines/blob/vNext/azure/Guidelines.md#handling-errors
 */
import type { Denial, ServiceRequest, WordedDenial } from "../contract.ts";
import { escapeXml } from "../xml-text.ts";
import { azureHost } from "./hosts.ts";

export function wordDenial(request: ServiceRequest, denial: Denial): WordedDenial {
  const { code, message, details } = denial;
  const name = codeOf(denial);
  if (azureHost(request.host)?.kind === "blob") {
    const error = `<Error><Code>${name}</Code><Message>${escapeXml(message)}</Message></Error>`;
    return {
      headers: [
        ["content-type", "application/xml"],
        ["x-ms-error-code", name],
      ],
      body: `<?xml version="1.0" encoding="utf-8"?>${error}\n`,
    };
  }
  const error = { code: name, message };
  return {
    headers: [
      ["content-type", "application/json"],
      ["x-ms-error-code", name],
    ],
    body: `${JSON.stringify({ error, code, message, ...details, source: "svc" })}\n`,
  };
}

/** One of Azure's common codes. SDKs retry by the status. */
function codeOf({ status }: Denial): string {
  if (status === 403) return "AuthorizationFailure";
  return status >= 500 ? "ServerBusy" : "InvalidInput";
}
