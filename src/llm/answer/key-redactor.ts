/**
 * KeyRedactor removes the keys of a call from its answers: a provider, or a proxy in front of it,
 * may echo the refused request including the key.
 *
 * Errors (bodies, events of streams, our own descriptions of an answer) are redacted of every key,
 * and of text that looks like a key. Ordinary answers are redacted only of keys of 16 characters or
 * more: shorter ones are placeholders, such as `EMPTY`, and may be words of the answer.
 */
import type { Secret } from "../../platform/secret.ts";
import { redactSecrets } from "../dialects/redact.ts";

const REDACTED = "[redacted]";

/** Minimum length of keys that are searched for in errors. */
const SHORTEST_KEY = 4;
/** Minimum length of keys that are searched for in ordinary answers. */
const SHORTEST_IN_ANSWERS = 16;

/** The written forms of keys. */
type Forms = readonly string[];

/** Keys live as long as their policy. */
const formsOfKeys = new WeakMap<Secret, Forms>();

function formsOf(secret: Secret): Forms {
  const known = formsOfKeys.get(secret);
  if (known !== undefined) return known;
  const key = secret.reveal();
  const json = JSON.stringify(key).slice(1, -1);
  const base64 = Buffer.from(key).toString("base64").replaceAll("=", "");
  const all = [
    key,
    json,
    json.replaceAll("/", "\\/"),
    encodeURIComponent(key),
    base64,
    base64.replaceAll("+", "-").replaceAll("/", "_"),
  ];
  const forms = [...new Set(all)];
  formsOfKeys.set(secret, forms);
  return forms;
}

export class KeyRedactor {
  readonly #forms: Forms;
  /** ASCII. */
  readonly #inAnswers: Forms;

  /** @param keys undefined for providers without a key */
  constructor(keys: readonly (Secret | undefined)[]) {
    const known = [...new Set(keys)].filter((key) => key !== undefined);
    const longer = (than: number): Forms =>
      known
        .filter((key) => key.reveal().length >= than)
        .flatMap(formsOf)
        // Sorted before keys that are a part of it.
        .sort((a, b) => b.length - a.length);
    this.#forms = longer(SHORTEST_KEY);
    this.#inAnswers = longer(SHORTEST_IN_ANSWERS);
  }

  /** Redacts an error message. */
  text(text: string): string {
    let out = text;
    for (const form of this.#forms) out = out.replaceAll(form, REDACTED);
    return redactSecrets(out);
  }

  /** Redacts an error in JSON, in which any character may be escaped. */
  json(text: string): string {
    const out = this.text(text);
    if (!out.includes("\\")) return out;
    let plain: string;
    try {
      plain = JSON.stringify(JSON.parse(out));
    } catch {
      return out;
    }
    const cleaned = this.text(plain);
    return cleaned === plain ? out : cleaned;
  }

  /** Redacts an error body; returns the same Buffer if it contains no key. */
  body(body: Buffer): Buffer {
    const text = body.toString("utf8");
    const out = this.json(text);
    return out === text ? body : Buffer.from(out);
  }

  /**
   * Redacts whole events of a stream that include an error; returns the same Buffer if there is no
   * key.
   */
  events(block: Buffer): Buffer {
    const text = block.toString("utf8");
    const out = text
      .split(/(\r\n|\n|\r)/)
      .map((line) =>
        line.startsWith("data:") ? `data:${this.json(line.slice(5))}` : this.text(line),
      )
      .join("");
    return out === text ? block : Buffer.from(out);
  }

  /**
   * Redacts an ordinary answer, or a part of one; returns the same Buffer if it contains no key.
   */
  answer(bytes: Buffer): Buffer {
    const found = this.#inAnswers.filter((form) => bytes.includes(form, 0, "latin1"));
    if (found.length === 0) return bytes;
    let out = bytes.toString("latin1");
    for (const form of found) out = out.replaceAll(form, REDACTED);
    return Buffer.from(out, "latin1");
  }
}
