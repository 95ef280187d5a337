import { describe, expect, test } from "vitest";
import { parseEnvironment } from "./environment.ts";

describe("variables on the standard input", () => {
  test("are looked up by name", () => {
    const env = parseEnvironment('{"A":"1","EMPTY":""}');
    expect([env["A"], env["EMPTY"], env["NO"]]).toEqual(["1", "", undefined]);
  });

  test.each(["toString", "constructor", "hasOwnProperty"])("%s is not there by itself", (name) => {
    expect(parseEnvironment("{}")[name]).toBeUndefined();
  });

  test.each(["", "secret", "[]", "null", '{"A":1}', '{"A":{"secret":"x"}}'])(
    "%j is refused, and not shown",
    (text) => {
      expect(() => parseEnvironment(text)).toThrow(/^The standard input must be a JSON object/);
      expect(() => parseEnvironment(text)).not.toThrow("secret");
    },
  );
});
