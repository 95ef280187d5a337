import { expect, test } from "vitest";
import { wordDenial } from "./denial.ts";

test.each([
  [403, "PERMISSION_DENIED", "forbidden"],
  [413, "INVALID_ARGUMENT", "invalid"],
  [503, "UNAVAILABLE", "backendError"],
])("a denial with %i in Google's form", (status, name, reason) => {
  const message = 'my-project/"<x> is outside the scope of gcp.';
  const { headers, body } = wordDenial({
    status,
    code: "out_of_scope",
    message,
    details: { binding: "gcp" },
  });
  expect(headers).toEqual([["content-type", "application/json; charset=UTF-8"]]);
  expect(JSON.parse(body)).toEqual({
    error: {
      code: status,
      message,
      status: name,
      errors: [{ message, domain: "global", reason }],
    },
    code: "out_of_scope",
    message,
    binding: "gcp",
    source: "svc",
  });
});
