import { expect, test } from "vitest";
import { request } from "../testing.ts";
import { wordDenial } from "./denial.ts";

const DENIAL = {
  status: 403,
  code: "out_of_scope",
  message: "reports/<a>&\u001b is outside the scope of azure.",
  details: { binding: "azure" },
};

test("blob storage: XML, with the code in a header for HEAD", () => {
  const sent = request("GET https://reports.blob.core.windows.net/daily/x");
  const { headers, body } = wordDenial(sent, DENIAL);
  expect(headers).toContainEqual(["content-type", "application/xml"]);
  expect(headers).toContainEqual(["x-ms-error-code", "AuthorizationFailure"]);
  expect(body).toContain(
    "<Error><Code>AuthorizationFailure</Code><Message>reports/&lt;a&gt;&amp;  is outside the " +
      "scope of azure.</Message></Error>",
  );
});

test.each([
  [403, "AuthorizationFailure"],
  [413, "InvalidInput"],
  [502, "ServerBusy"],
])("%i elsewhere: JSON", (status, code) => {
  const sent = request("GET https://vault-1.vault.azure.net/secrets/db");
  const { body } = wordDenial(sent, { ...DENIAL, status });
  expect(JSON.parse(body)).toEqual({
    error: { code, message: DENIAL.message },
    code: "out_of_scope",
    message: DENIAL.message,
    binding: "azure",
    source: "svc",
  });
});
