import { expect, test } from "vitest";
import { dispatch, field, Reader, walk } from "./reader.ts";
import { bytesField, textField, varintField } from "./writer.ts";

const reader = (buffer: Buffer): Reader => new Reader(buffer, 0, buffer.length);

test.each([0, 1, 127, 128, 16_383, 16_384, 2 ** 31, 2 ** 32 + 5, 2 ** 53 - 1])(
  "the varint %d is read as it was written, in a field of any number",
  (value) => {
    for (const number of [1, 15, 16, 2_047, 2_048]) {
      const read: number[][] = [];
      walk(reader(varintField(number, value)), (tag, _, found) => read.push([tag, found]));
      expect(read).toEqual([[field(number, 0), value]]);
    }
  },
);

test("texts and messages are read as they were written; other fields are skipped", () => {
  const message = bytesField(
    3,
    Buffer.concat([
      textField(1, "gr\u00fc\u00df"),
      varintField(2, 9),
      textField(20, "y".repeat(300)),
    ]),
  );
  const texts: string[] = [];
  dispatch(reader(Buffer.concat([varintField(1, 1), message])), {
    [field(3, 2)]: (inner) =>
      walk(inner, (tag, part) => {
        if ((tag & 7) === 2) texts.push(part.buffer.toString("utf8", part.at, part.end));
      }),
  });
  expect(texts).toEqual(["gr\u00fc\u00df", "y".repeat(300)]);
});
