/** Inputs that are almost valid: values written as JSON, and damaged bytes. */
import * as fc from "fast-check";

/** Characters with a special meaning for some parser. */
const SIGNS = "{}[]\",:\\/ \t\r\n\u0000\u001b%&;=+?#@*.-_~<>()|^$`'!éß漢😀\ufeff\u202e".split("");

export const oddText = fc.string({ unit: fc.constantFrom(...SIGNS, "a", "1"), maxLength: 60 });

/** JSON texts of any shape, spaced in any way. */
export const jsonText: fc.Arbitrary<string> = fc
  .tuple(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, "\t", "\r\n "))
  .map(([value, space]) => JSON.stringify(value, null, space));

/** Damages bytes: cuts, doubles, moves, overwrites. */
export function damaged(bytes: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> {
  const damage = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    length: fc.nat({ max: 8 }),
    kind: fc.constantFrom("cut", "double", "insert", "overwrite", "end"),
    with: fc.oneof(
      fc.uint8Array({ maxLength: 4 }),
      oddText.map((text) => Buffer.from(text)),
    ),
  });
  return fc.tuple(bytes, fc.array(damage, { maxLength: 3 })).map(([whole, all]) =>
    all.reduce((buffer, { at, length, kind, with: put }) => {
      const from = Math.floor(at * buffer.length);
      const to = Math.min(buffer.length, from + length);
      const part = buffer.subarray(from, to);
      switch (kind) {
        case "cut":
          return Buffer.concat([buffer.subarray(0, from), buffer.subarray(to)]);
        case "double":
          return Buffer.concat([buffer.subarray(0, to), part, buffer.subarray(to)]);
        case "insert":
          return Buffer.concat([buffer.subarray(0, from), put, buffer.subarray(from)]);
        case "overwrite":
          return Buffer.concat([buffer.subarray(0, from), put, buffer.subarray(to)]);
        default:
          return buffer.subarray(0, from);
      }
    }, whole),
  );
}

/** The same bytes in chunks. */
export function chunked(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((from, index) => bytes.subarray(from, places[index] ?? bytes.length));
}

export const cuts = fc.array(fc.nat({ max: 1 << 20 }), { maxLength: 20 });

/** One of the samples, with members and items changed, left out, or of another type. */
export function near(samples: readonly unknown[]): fc.Arbitrary<unknown> {
  const change = fc.tuple(
    fc.nat(),
    fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant(undefined)),
  );
  return fc
    .tuple(fc.constantFrom(...samples), fc.array(change, { maxLength: 4 }))
    .map(([sample, changes]) => {
      const copy = structuredClone(sample);
      for (const [place, value] of changes) {
        const places = placesOf(copy);
        const found = places[place % Math.max(1, places.length)];
        if (found === undefined) continue;
        if (value === undefined && !Array.isArray(found.owner)) delete found.owner[found.key];
        else found.owner[found.key] = structuredClone(value);
      }
      return copy;
    });
}

interface Place {
  readonly owner: Record<string, unknown>;
  readonly key: string;
}

function placesOf(value: unknown): Place[] {
  if (typeof value !== "object" || value === null) return [];
  const owner = value as Record<string, unknown>;
  return Object.keys(owner).flatMap((key) => [{ owner, key }, ...placesOf(owner[key])]);
}
