/**
 * KeyRedactor takes the keys that a call was sent with out of what comes back: a provider, or a proxy
 * in front of it, may quote the request that it refused, key and all.
 *
 * Errors (bodies, events of streams, our own words about an answer) are redacted of every key, and of
 * whatever looks like a key. Ordinary answers are redacted of keys of 16 characters or more alone:
 * shorter ones are placeholders, such as `EMPTY`, and may be words of the answer.
 */
import type { Secret } from "../platform/secret.ts";
import { redactSecrets } from "./dialects/redact.ts";

const REDACTED = "[redacted]";

/** Shorter ones are not looked for in errors. */
const SHORTEST_KEY = 4;
/** Shorter ones are not looked for in ordinary answers. */
const SHORTEST_IN_ANSWERS = 16;

/** The ways in which keys may be written. */
type Forms = readonly string[];

/** Keys live as long as the policy that they are in. */
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

  /** @param keys undefined where a provider wants none */
  constructor(keys: readonly (Secret | undefined)[]) {
    const known = [...new Set(keys)].filter((key) => key !== undefined);
    const longer = (than: number): Forms =>
      known
        .filter((key) => key.reveal().length >= than)
        .flatMap(formsOf)
        // Before one that is a part of it.
        .sort((a, b) => b.length - a.length);
    this.#forms = longer(SHORTEST_KEY);
    this.#inAnswers = longer(SHORTEST_IN_ANSWERS);
  }

  /** An error in words. */
  text(text: string): string {
    let out = text;
    for (const form of this.#forms) out = out.replaceAll(form, REDACTED);
    return redactSecrets(out);
  }

  /** An error as JSON, in which any character may be written as an escape. */
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

  /** An error body; the very same Buffer where there is no key in it. */
  body(body: Buffer): Buffer {
    const text = body.toString("utf8");
    const out = this.json(text);
    return out === text ? body : Buffer.from(out);
  }

  /** Whole events of a stream, an error among them; the very same Buffer where there is no key. */
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

  /** An ordinary answer, or a part of one; the very same Buffer where there is no key in it. */
  answer(bytes: Buffer): Buffer {
    const found = this.#inAnswers.filter((form) => bytes.includes(form, 0, "latin1"));
    if (found.length === 0) return bytes;
    let out = bytes.toString("latin1");
    for (const form of found) out = out.replaceAll(form, REDACTED);
    return Buffer.from(out, "latin1");
  }
}
