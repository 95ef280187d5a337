/**
 * Recall and false positives of the sanitiser, on generated secrets of every kind, in every place
 * where they are found, and on harmless texts that look like them. The tests print the figures.
 */
import { createHash, generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { redact } from "./redact.ts";

/** Random numbers that are the same in each run (Mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const random = randomNumbers(15);
const upTo = (count: number): number => Math.floor(random() * count);
const pick = <T>(list: readonly T[]): T => list[upTo(list.length)] as T;
const many = <T>(count: number, make: (n: number) => T): T[] =>
  Array.from({ length: count }, (_, n) => make(n));
const DIGITS = "0123456789";
const LOWER = "abcdefghijklmnopqrstuvwxyz";
const UPPER = LOWER.toUpperCase();
const of = (alphabet: string, length: number): string =>
  many(length, () => alphabet[upTo(alphabet.length)]).join("");
const alnum = (length: number): string => of(DIGITS + LOWER + UPPER, length);
const hex = (length: number): string => of("0123456789abcdef", length);
const digits = (length: number): string => of(DIGITS, length);
const bytes = (length: number): Buffer => Buffer.from(many(length, () => upTo(256)));

function luhn(start: string, length: number): string {
  const body = start + digits(length - start.length - 1);
  const sum = Array.from(body)
    .toReversed()
    .map((digit, index) => (index % 2 === 0 ? Number(digit) * 2 : Number(digit)))
    .reduce((total, value) => total + (value > 9 ? value - 9 : value), 0);
  return `${body}${(10 - (sum % 10)) % 10}`;
}
const grouped = (number: string, lengths: readonly number[], separator: string): string => {
  let at = 0;
  return lengths.map((length) => number.slice(at, (at += length))).join(separator);
};

const WORDS = (
  "the agent reads a page and writes its summary into the report of this week while another " +
  "process waits for an answer from the server in case that the limit was reached before noon"
).split(" ");
const prose = (count: number): string => many(count, () => pick(WORDS)).join(" ");
const capital = (word: string): string => word[0]?.toUpperCase() + word.slice(1);

const b64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const jwt = (): string =>
  [
    b64url({ alg: pick(["HS256", "RS256", "ES256"]), typ: "JWT" }),
    b64url({
      sub: digits(10),
      name: `${pick(WORDS)} ${pick(WORDS)}`,
      iat: 1_700_000_000 + upTo(1e8),
    }),
    bytes(pick([32, 64, 256])).toString("base64url"),
  ].join(".");

function pem(): string {
  const type = pick(["ec", "ed25519"] as const);
  const { privateKey } =
    type === "ec"
      ? generateKeyPairSync("ec", { namedCurve: "P-384" })
      : generateKeyPairSync("ed25519");
  return (privateKey.export({ type: "pkcs8", format: "pem" }) as string).trim();
}

/** Keys as their vendors make them, with the length of what is random. */
const API_KEYS: Readonly<Record<string, () => string>> = {
  openai: () => `sk-proj-${alnum(74)}T3BlbkFJ${alnum(74)}`,
  "openai, older": () => `sk-${alnum(48)}`,
  anthropic: () => `sk-ant-api03-${of(`${LOWER}${UPPER}${DIGITS}-_`, 93)}AA`,
  google: () => `AIza${of(`${LOWER}${UPPER}${DIGITS}-_`, 35)}`,
  "google oauth": () => `ya29.${of(`${LOWER}${UPPER}${DIGITS}-_`, 120)}`,
  "google client": () => `GOCSPX-${of(`${LOWER}${UPPER}${DIGITS}-_`, 28)}`,
  aws: () => pick(["AKIA", "ASIA"]) + of(`${UPPER}234567`, 16),
  "aws secret": () => of(`${LOWER}${UPPER}${DIGITS}/+`, 40),
  github: () => pick(["ghp_", "gho_", "ghs_", "ghu_"]) + alnum(36),
  "github fine-grained": () => `github_pat_${alnum(22)}_${alnum(59)}`,
  gitlab: () => `glpat-${of(`${LOWER}${UPPER}${DIGITS}-_`, 20)}`,
  slack: () => `xoxb-${digits(12)}-${digits(13)}-${alnum(24)}`,
  "slack user": () => `xoxp-${digits(12)}-${digits(12)}-${digits(12)}-${hex(32)}`,
  stripe: () => pick(["sk_live_", "sk_test_", "rk_live_"]) + alnum(24),
  "stripe webhook": () => `whsec_${alnum(32)}`,
  twilio: () => `SK${hex(32)}`,
  sendgrid: () => `SG.${alnum(22)}.${alnum(43)}`,
  mailgun: () => `key-${hex(32)}`,
  npm: () => `npm_${alnum(36)}`,
  pypi: () => `pypi-AgEIcHlwaS5vcmc${alnum(100)}`,
  huggingface: () => `hf_${of(LOWER + UPPER, 34)}`,
  replicate: () => `r8_${alnum(37)}`,
  groq: () => `gsk_${alnum(52)}`,
  xai: () => `xai-${alnum(80)}`,
  perplexity: () => `pplx-${alnum(48)}`,
  databricks: () => `dapi${hex(32)}`,
  digitalocean: () => `dop_v1_${hex(64)}`,
  vault: () => `hvs.${of(`${LOWER}${UPPER}${DIGITS}-_`, 90)}`,
  discord: () => `${Buffer.from(`1${digits(17)}`).toString("base64url")}.${alnum(6)}.${alnum(38)}`,
  telegram: () => `AA${of(`${LOWER}${UPPER}${DIGITS}-_`, 33)}`,
  shopify: () => `shpat_${hex(32)}`,
  linear: () => `lin_api_${alnum(40)}`,
  notion: () => `ntn_${alnum(46)}`,
  docker: () => `dckr_pat_${of(`${LOWER}${UPPER}${DIGITS}-_`, 27)}`,
  azure: () => bytes(64).toString("base64"),
  cloudflare: () => of(`${LOWER}${UPPER}${DIGITS}-_`, 40),
  svc: () => pick(["svc_", "svcw_"]) + alnum(43),
};

const SECRETS: Readonly<Record<string, () => string>> = {
  email: () =>
    `${pick(WORDS)}${pick([".", "_", "+", "-", ""])}${pick(WORDS)}${upTo(100)}@` +
    [
      `${pick(["mail.", "", "eu.corp."])}${pick(WORDS)}-${upTo(9)}`,
      pick(["com", "org", "co.uk", "io", "museum"]),
    ].join("."),
  phone: () =>
    pick([
      () => `+${1 + upTo(99)} ${1 + upTo(999)} ${digits(7)}`,
      () => `+49 ${100 + upTo(900)} ${digits(4)} ${digits(4)}`,
      () => `+1${2 + upTo(8)}${digits(9)}`,
      () => `+1 (${2 + upTo(8)}${digits(2)}) ${digits(3)}-${digits(4)}`,
      () => `(${2 + upTo(8)}${digits(2)}) ${digits(3)}-${digits(4)}`,
      () => `${2 + upTo(8)}${digits(2)}-${digits(3)}-${digits(4)}`,
      () => `${2 + upTo(8)}${digits(2)}.${digits(3)}.${digits(4)}`,
      () => `0${1 + upTo(9)}${digits(2)} ${digits(7)}`,
      () => `0${1 + upTo(9)}${digits(2)}/${digits(8)}`,
      () => `0${1 + upTo(9)} ${digits(2)} ${digits(2)} ${digits(2)} ${digits(2)}`,
      () => `0049 ${100 + upTo(900)} ${digits(7)}`,
    ])(),
  card: () =>
    pick([
      () => luhn(pick(["4", "51", "55", "2221", "6011"]), 16),
      () => luhn(pick(["34", "37"]), 15),
      () => grouped(luhn("4", 16), [4, 4, 4, 4], " "),
      () => grouped(luhn("53", 16), [4, 4, 4, 4], "-"),
      () => grouped(luhn("37", 15), [4, 6, 5], " "),
      () => grouped(luhn("36", 14), [4, 6, 4], " "),
      () => luhn("4", 19),
    ])(),
  jwt,
  hex: () =>
    pick([hex, (length: number) => hex(length).toUpperCase()])(pick([32, 40, 64, 96, 128])),
  base64: () => bytes(30 + upTo(200)).toString(pick(["base64", "base64url"])),
};

const at = (text: string, share: number): number => Math.floor(text.length * share);

const PLACES: Readonly<Record<string, (secret: string) => string>> = {
  alone: (secret) => secret,
  prose: (secret) => `${prose(6)} ${secret}, ${prose(5)}.`,
  sentence: (secret) => `${prose(4)} ${secret}...`,
  json: (secret) => JSON.stringify({ [pick(WORDS)]: secret, n: upTo(9), list: [secret] }),
  "json in json": (secret) =>
    JSON.stringify({ text: JSON.stringify({ note: `${prose(3)}:\n${secret}\n${prose(2)}` }) }),
  "json with escapes": (secret) => JSON.stringify({ text: `${prose(2)}\n${secret}\t${prose(2)}` }),
  url: (secret) =>
    `https://api.example.com/v1?${pick(WORDS)}=${encodeURIComponent(secret)}&page=${upTo(9)}`,
  path: (secret) => `https://example.com/${pick(WORDS)}/${encodeURIComponent(secret)}/run`,
  form: (secret) => new URLSearchParams({ to: secret, q: prose(2) }).toString(),
  assignment: (secret) => `export ${pick(WORDS).toUpperCase()}_VALUE="${secret}"`,
  yaml: (secret) => `${pick(WORDS)}: ${secret}\n${pick(WORDS)}: ${prose(2)}`,
  header: (secret) => `Authorization: Bearer ${secret}\r\nAccept: */*`,
  list: (secret) => `${secret} ${secret}\n${secret};${secret}`,
  "go's json": (secret) => `{"u":"a=${secret}\\u0026b=1","k\\u003d${secret}":0}`,
};

/** Splits of a secret by the end of a line. */
const SPLITS: Readonly<Record<string, (secret: string) => string>> = {
  "in the middle": (secret) => splitAt(secret, at(secret, 0.5), "\n"),
  "near its end": (secret) => splitAt(secret, Math.max(secret.length - 8, at(secret, 0.6)), "\r\n"),
  "in JSON": (secret) => JSON.stringify({ text: splitAt(secret, at(secret, 0.5), "\n") }),
  "quoted-printable": (secret) => splitAt(secret, at(secret, 0.5), "=\r\n"),
};
const splitAt = (secret: string, index: number, lineEnd: string): string =>
  `${prose(3)}\n${secret.slice(0, index)}${lineEnd}${secret.slice(index)}\n${prose(3)}`;

/** Whether a part of a secret that is worth something is left: 8 characters in a row. */
const LEFT = 8;
function isLeft(redacted: string, secret: string): boolean {
  for (let start = 0; start + LEFT <= secret.length; start += 1) {
    if (redacted.includes(secret.slice(start, start + LEFT))) return true;
  }
  return false;
}

const PER_CELL = 12;

interface Rate {
  readonly found: number;
  readonly total: number;
}

function recall(
  make: () => string,
  places: Readonly<Record<string, (secret: string) => string>>,
): Rate & { readonly missed: ReadonlySet<string> } {
  const missed = new Set<string>();
  let found = 0;
  let total = 0;
  for (const [name, place] of Object.entries(places)) {
    for (const secret of many(PER_CELL, make)) {
      const text = place(secret);
      total += 1;
      if (isLeft(redact(text), secret)) missed.add(name);
      else found += 1;
    }
  }
  return { found, total, missed };
}

const show = (name: string, { found, total }: Rate, more = ""): void =>
  console.log(`${name}: ${found}/${total} = ${((100 * found) / total).toFixed(1)} % ${more}`);

describe("recall", () => {
  test.each(Object.keys(SECRETS))("%s", (kind) => {
    const rate = recall(SECRETS[kind] as () => string, PLACES);
    show(`recall of ${kind}`, rate, [...rate.missed].join());
    expect(rate.found / rate.total).toBeGreaterThanOrEqual(0.99);
  });

  test("API keys", () => {
    let [found, total] = [0, 0];
    for (const [vendor, make] of Object.entries(API_KEYS)) {
      const rate = recall(make, PLACES);
      if (rate.found < rate.total)
        show(`recall of keys of ${vendor}`, rate, [...rate.missed].join());
      expect(rate.found / rate.total, vendor).toBeGreaterThanOrEqual(0.98);
      found += rate.found;
      total += rate.total;
    }
    show("recall of API keys", { found, total });
    expect(found / total).toBeGreaterThanOrEqual(0.99);
  });

  test("keys in PEM", () => {
    for (const [name, place] of Object.entries(PLACES)) {
      // A space in a URL may be written as a plus sign.
      if (name === "form" || name === "url" || name === "path") continue;
      const secret = pem();
      const body = secret.split("\n").slice(1, -1).join("");
      expect(isLeft(redact(place(secret)), body), name).toBe(false);
    }
  });

  // Of an email only the part with the at sign is found, and of a number only a card's.
  test.each([
    ["jwt", 0.95],
    ["hex", 0.95],
    ["base64", 0.95],
    ["card", 0.9],
    ["email", 0.5],
  ] as const)("%s, split by the end of a line", (kind, least) => {
    const rate = recall(SECRETS[kind] as () => string, SPLITS);
    show(`recall of split ${kind}`, rate, [...rate.missed].join());
    expect(rate.found / rate.total).toBeGreaterThanOrEqual(least);
  });

  test("API keys, split by the end of a line", () => {
    let [found, total] = [0, 0];
    for (const [vendor, make] of Object.entries(API_KEYS)) {
      const rate = recall(make, SPLITS);
      if (rate.found < rate.total)
        show(`recall of split keys of ${vendor}`, rate, [...rate.missed].join());
      found += rate.found;
      total += rate.total;
    }
    show("recall of split API keys", { found, total });
    expect(found / total).toBeGreaterThanOrEqual(0.97);
  });

  test.each([64, 76])("blobs wrapped in lines of %d", (width) => {
    for (const secret of many(20, () => bytes(100 + upTo(900)).toString("base64"))) {
      const lines = secret.match(new RegExp(`.{1,${width}}`, "g")) ?? [];
      for (const text of [
        lines.join("\n"),
        JSON.stringify(lines.join("\r\n")),
        lines.join("\n  "),
      ]) {
        expect(isLeft(redact(text), secret)).toBe(false);
      }
    }
  });
});

const uuid = (): string => [8, 4, 4, 4, 12].map((length) => hex(length)).join("-");
const two = (number: number): string => String(number).padStart(2, "0");
const date = (): string => `20${two(upTo(30))}-${two(1 + upTo(12))}-${two(1 + upTo(28))}`;
const name = (): string => pick(WORDS);

const HARMLESS: Readonly<Record<string, () => string>> = {
  uuid,
  "request id": () => `${pick(["req", "msg", "call", "toolu"])}_${alnum(24)}`,
  version: () => `v${upTo(20)}.${upTo(99)}.${upTo(999)}-${pick(["beta", "rc"])}.${upTo(9)}`,
  "package and version": () => `@${name()}/${name()}-${name()}@${upTo(9)}.${upTo(20)}.${upTo(9)}`,
  date: () =>
    pick([date(), `${date()}T${two(upTo(24))}:${two(upTo(60))}:${two(upTo(60))}.${digits(3)}Z`]),
  "dates in a row": () => many(4, date).join(" "),
  "german date": () =>
    [
      `${two(1 + upTo(28))}.${two(1 + upTo(12))}.20${two(upTo(30))}`,
      `${two(upTo(24))}:${two(upTo(60))}`,
    ].join(" "),
  address: () => `${10 + upTo(200)}.${upTo(256)}.${upTo(256)}.${upTo(256)}:${1_000 + upTo(9_000)}`,
  "ipv6 address": () => many(8, () => hex(4)).join(":"),
  amount: () => `${1 + upTo(999)},${digits(3)},${digits(3)}.${digits(2)} USD`,
  "amount with spaces": () => `${1 + upTo(999)} ${digits(3)} ${digits(3)} kg`,
  number: () => `${1 + upTo(9)}${digits(upTo(11))}`,
  decimal: () => String(random()),
  "row of numbers": () => many(6, () => String(upTo(500))).join(" "),
  "time in nanoseconds": () => `17${digits(17)}`,
  coordinates: () => `${upTo(90)}.${digits(4)}, ${upTo(180)}.${digits(4)}`,
  "short commit": () => `commit ${hex(pick([7, 8, 10, 12]))}`,
  "commit subject": () => `${capital(prose(7))} (#${upTo(9_999)})`,
  path: () =>
    `/${many(7, () => pick([name(), `${name()}-${name()}`, `${name()}_${upTo(9)}`])).join("/")}.ts`,
  "path with capitals": () =>
    [
      `/Users/${capital(name())}`,
      ...many(5, () => capital(name()) + capital(name())),
      `v${upTo(9)}`,
    ].join("/"),
  url: () =>
    `https://${name()}.example.com/${many(5, name).join("/")}?${name()}=${name()}` +
    `&page=${upTo(99)}#L${upTo(99)}`,
  "snake case": () => many(8, name).join("_"),
  "kebab case": () => many(8, name).join("-"),
  "camel case": () => many(8, () => capital(name())).join(""),
  constant: () => many(7, () => name().toUpperCase()).join("_"),
  identifier: () => `${name()}${many(5, () => capital(name())).join("")}V${upTo(9)}`,
  prose: () => prose(30),
  heading: () => many(6, () => capital(name())).join(" "),
  code: () =>
    `const ${name()}${upTo(99)} = ${name()}(${upTo(99)}, "${name()}") + ${name()}[${upTo(9)}];`,
  "names like keys": () =>
    pick(["sk-", "npm_", "hf_", "svc_", "glpat-", "secret_"]) + many(6, name).join("-"),
  mention: () => `@${name()} and ${name()}@localhost, ${name()} @ ${name()}`,
  "key and value": () => many(4, () => `${name()}=${name()}`).join("&"),
  "hexadecimal colour": () => `#${hex(6)} #${hex(8)}`,
  "lines of words": () => many(10, () => `${name()}${capital(name())}`).join("\n"),
  "lines of paths": () => many(5, () => `src/${name()}/${name()}-${name()}.test.ts`).join("\n"),
};

describe("false positives", () => {
  test("of harmless texts", () => {
    let [found, total] = [0, 0];
    for (const [kind, make] of Object.entries(HARMLESS)) {
      const texts = many(200, make);
      const changed = texts.filter((text) => redact(text) !== text);
      if (changed.length > 0) {
        show(
          `false positives of ${kind}`,
          { found: changed.length, total: 200 },
          redact(changed[0] as string),
        );
      }
      expect(
        changed.length / 200,
        `${kind}: ${changed[0]} -> ${redact(changed[0] ?? "")}`,
      ).toBeLessThanOrEqual(0.02);
      found += changed.length;
      total += texts.length;
    }
    show("false positives", { found, total });
    expect(found / total).toBeLessThanOrEqual(0.002);
  });

  test("a hash of a commit is long hexadecimal, and is redacted", () => {
    expect(redact(`commit ${createHash("sha1").update("x").digest("hex")}`)).toBe(
      "commit [REDACTED:hex]",
    );
  });
});
