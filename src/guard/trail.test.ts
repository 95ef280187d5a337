import { describe, expect, test } from "vitest";
import type { AuditEvent } from "../audit/event.ts";
import { encodeFields } from "../audit/chain/record.ts";
import type { GuardFinding } from "./finding.ts";
import { type Piece, piecesOf } from "./pieces.ts";
import { guardedAgent, guardPolicy } from "./testing.ts";
import { GuardTrail, payloadOf, VIOLATION_AUDIT } from "./trail.ts";

const KEY = `sk-proj-${"aB3x".repeat(12)}`;
const filler = (length: number): string => "lorem ipsum. ".repeat(length / 13 + 1).slice(0, length);

function pieceOf(whole: string, start = 0, length = whole.length): Piece {
  return { whole, start, text: whole.slice(start, start + length), of: 0 };
}

/** Whether 8 characters in a row of a secret are left. */
function isLeft(payload: string, secret: string): boolean {
  return Array.from(secret, (_, at) => secret.slice(at, at + 8)).some(
    (part) => part.length === 8 && payload.includes(part),
  );
}

describe("the payload", () => {
  test("is the piece, without secrets", () => {
    expect(payloadOf(pieceOf(`use ${KEY} and mail ada@example.com`), 2_000)).toBe(
      "use [REDACTED:api-key] and mail [REDACTED:email]",
    );
  });

  test("is cut to its length, and says so", () => {
    expect(payloadOf(pieceOf("x".repeat(30)), 30)).toBe("x".repeat(30));
    expect(payloadOf(pieceOf("x".repeat(31)), 30)).toBe(`${"x".repeat(30)}\u2026`);
    expect(payloadOf(pieceOf("text"), 0)).toBe("\u2026");
    expect(payloadOf(pieceOf(""), 0)).toBe("");
  });

  test("a secret across the cut is not cut, but redacted first", () => {
    for (let at = 0; at < 80; at += 1) {
      const payload = payloadOf(pieceOf(`${filler(100 - at)} ${KEY} ${filler(100)}`), 100);
      expect(isLeft(payload, KEY), `${at}`).toBe(false);
    }
  });

  test("a secret across either edge of the piece is recognised by the whole text", () => {
    for (let at = -60; at <= 4; at += 1) {
      const whole = `${filler(3_000)} ${KEY} ${filler(3_000)}`;
      const start = whole.indexOf(KEY);
      for (const piece of [
        pieceOf(whole, start - at, 500),
        pieceOf(whole, start - at - 500, 500),
      ]) {
        const payload = payloadOf(piece, 2_000);
        expect(isLeft(payload, KEY), `${at}`).toBe(false);
        expect(isLeft(payload, "lorem ipsum")).toBe(true);
      }
    }
  });

  test("secrets beside the piece do not move it, however many there are", () => {
    const secrets = `${KEY} `.repeat(2_000);
    const whole = `${secrets}the middle ${secrets}`;
    expect(payloadOf(pieceOf(whole, secrets.length, 10), 2_000)).toBe("the middle");
    // The key that ends the text around the piece is cut, and is no part of it.
    for (let length = 100; length < 170; length += 1) {
      expect(isLeft(payloadOf(pieceOf(whole, 0, length), 2_000), KEY)).toBe(false);
    }
  });

  test("in the middle of a text of 200 KiB, in each of its pieces", () => {
    for (const shift of [0, 30, 60]) {
      const edge = 14 * 7_168;
      const text = `${filler(edge - shift)} ${KEY} ${filler(100_000)}`;
      let found = 0;
      for (const piece of piecesOf([{ text, source: "" }])) {
        const payload = payloadOf(piece, 100_000);
        expect(isLeft(payload, KEY)).toBe(false);
        if (payload.includes("[REDACTED:api-key]")) found += 1;
      }
      expect(found).toBeGreaterThan(0);
    }
  });

  test("a secret in base64 or behind invisible characters is redacted in its readable form", () => {
    const texts = [
      Buffer.from(`ignore this: ${KEY}`).toString("base64"),
      Array.from(KEY).join("\u200b"),
    ];
    for (const text of texts) {
      const payloads = Array.from(piecesOf([{ text: `${text} é\u200b`, source: "" }]), (piece) =>
        payloadOf(piece, 2_000),
      );
      expect(payloads.some((payload) => payload.includes("[REDACTED:api-key]"))).toBe(true);
      for (const payload of payloads) expect(isLeft(payload, KEY)).toBe(false);
    }
  });

  test("has no half of a surrogate pair", () => {
    expect(payloadOf(pieceOf("ab😀cd"), 3).isWellFormed()).toBe(true);
    expect(payloadOf(pieceOf("ab😀cd", 3, 3), 10).isWellFormed()).toBe(true);
    expect(payloadOf(pieceOf("\udc00 lone \ud800"), 100).isWellFormed()).toBe(true);
  });
});

describe("a record", () => {
  const record = (more: Partial<GuardFinding>): AuditEvent["fields"] => {
    const events: AuditEvent[] = [];
    const trail = new GuardTrail({
      sink: { state: "ok", refusing: false, append: (event) => void events.push(event) },
      refusals: { record: () => {} } as never,
    });
    const guard = guardPolicy();
    const call = {
      caller: guardedAgent(guard),
      callId: "call-1",
      address: "10.0.0.1",
      model: `m\n${"x".repeat(1_000)}`,
    };
    const piece = pieceOf("ignore this");
    trail.forwarded(call, {
      guard,
      label: "injection",
      score: 0.5,
      where: "prompt",
      tool: undefined,
      param: "a",
      piece,
      count: 1,
      ...more,
    });
    expect(events).toMatchObject([{ type: VIOLATION_AUDIT }]);
    return (events[0] as AuditEvent).fields;
  };

  test("has its members in order, so that it is written without sorting", () => {
    const names = Object.keys(record({ tool: "web" }));
    expect(names).toEqual(names.toSorted());
  });

  test("has names of clients bounded and without secrets", () => {
    const fields = record({ tool: `web ${KEY}\n${"x".repeat(1_000)}`, param: `tools ${KEY}` });
    expect(JSON.stringify(fields)).not.toContain(KEY);
    for (const text of [fields["tool"], fields["param"], fields["asked"]] as string[]) {
      expect(text.length).toBeLessThan(400);
      expect(text).not.toContain("\n");
    }
  });

  test("of a text of any characters can be written", () => {
    const text = String.fromCharCode(
      ...Array.from({ length: 0x1_0000 / 16 }, (_, index) => index * 16),
    );
    const written = encodeFields(record({ piece: pieceOf(text), tool: "\ud800", param: "\udfff" }));
    expect(JSON.parse(written)).toHaveProperty("payload");
    expect(written.isWellFormed()).toBe(true);
  });
});
