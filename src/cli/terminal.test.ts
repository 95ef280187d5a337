import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { askSecret, readAll } from "./terminal.ts";

test("all of standard input, whole characters though it comes in parts", async () => {
  const bytes = Buffer.from("schlüssel\n");
  expect(await readAll(Readable.from([bytes.subarray(0, 5), bytes.subarray(5)]))).toBe(
    "schlüssel\n",
  );
});

test("what is typed for a secret is answered and not shown", async () => {
  const input = new PassThrough();
  const said: string[] = [];
  const answer = askSecret("Key: ", input, (text) => void said.push(text));
  input.write("sk-tpyed\b\b\b\b\u007f");
  input.write("yped\r");
  await expect(answer).resolves.toMatch(/^sk-/);
  expect(said.join("")).toBe("Key: \n");
});

test.each([
  ["Ctrl+C", "sk-\u0003"],
  ["Ctrl+D", "\u0004"],
])("%s ends the question", async (_name, typed) => {
  const input = new PassThrough();
  const answer = askSecret("Key: ", input, () => undefined);
  input.write(typed);
  await expect(answer).rejects.toThrow("stopped: nothing was typed");
});

test("an input that ends does as well", async () => {
  const input = new PassThrough();
  const answer = askSecret("Key: ", input, () => undefined);
  input.end();
  await expect(answer).rejects.toThrow("stopped");
});
