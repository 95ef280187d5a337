/** Secrets and personal data of every kind that records replace, made anew for each run. */
import { createHmac, generateKeyPairSync, randomBytes, randomInt } from "node:crypto";

export const SECRET_KINDS = [
  "email",
  "phone",
  "api-key",
  "card",
  "jwt",
  "pem",
  "hex",
  "base64",
] as const;

export type SecretKind = (typeof SECRET_KINDS)[number];

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const letters = (count: number, of = ALPHABET): string =>
  Array.from({ length: count }, () => of[randomInt(of.length)]).join("");
const digits = (count: number): string => letters(count, "0123456789");
const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A number of a payment card, with its check digit. */
function card(prefix: string, length: number): string {
  const body = prefix + digits(length - prefix.length - 1);
  let sum = 0;
  for (const [index, digit] of Array.from(body).toReversed().entries()) {
    const value = Number(digit) * (index % 2 === 0 ? 2 : 1);
    sum += value > 9 ? value - 9 : value;
  }
  return body + String((10 - (sum % 10)) % 10);
}

function jwt(): string {
  const content = `${encoded({ alg: "HS256", typ: "JWT" })}.${encoded({ sub: letters(12) })}`;
  return `${content}.${createHmac("sha256", letters(9)).update(content).digest("base64url")}`;
}

function pem(): string {
  const { privateKey } = generateKeyPairSync("ed25519");
  return (privateKey.export({ type: "pkcs8", format: "pem" }) as string).trim();
}

function rsa(): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 1024 });
  return (privateKey.export({ type: "pkcs1", format: "pem" }) as string).trim();
}

export const SECRETS: Readonly<Record<SecretKind, () => readonly string[]>> = {
  email: () => [
    `${letters(8).toLowerCase()}@example.com`,
    `${letters(5)}.${letters(6)}+${letters(4)}@mail.example.co.uk`,
  ],
  phone: () => [
    `+49 170 ${digits(7)}`,
    `+1${digits(10).replace(/^[01]/, "2")}`,
    `(555) ${digits(3)}-${digits(4)}`,
  ],
  "api-key": () => [
    `sk-proj-${letters(48)}`,
    `sk-ant-api03-${letters(80)}-AA`,
    `ghp_${letters(36)}`,
    `AKIA${letters(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")}`,
    `AIza${letters(35)}`,
    `xoxb-${digits(12)}-${digits(12)}-${letters(24)}`,
    `svc_${letters(43)}`,
  ],
  card: () => [card("4", 16), card("5500", 16), card("37", 15)],
  jwt: () => [jwt()],
  pem: () => [pem(), rsa()],
  hex: () => [randomBytes(16).toString("hex"), randomBytes(32).toString("hex").toUpperCase()],
  base64: () => [randomBytes(48).toString("base64"), randomBytes(60).toString("base64url")],
};

/** Returns the parts of a secret that must not be anywhere: of a key in PEM, each of its lines. */
export function partsOfSecret(secret: string): readonly string[] {
  return secret.startsWith("-----")
    ? secret.split("\n").filter((line) => !line.startsWith("-----"))
    : [secret];
}

/** Places of a secret in a text. */
export const SURROUNDINGS: Readonly<Record<string, (secret: string) => string>> = {
  prose: (secret) => `Use ${secret} and tell nobody.`,
  "end of a sentence": (secret) => `It is ${secret}.`,
  JSON: (secret) => JSON.stringify({ user: "a", value: secret, list: [secret] }),
  "JSON in JSON": (secret) => JSON.stringify({ body: JSON.stringify({ value: secret }) }),
  URL: (secret) => `https://example.com/hook?value=${secret}&ok=1`,
  header: (secret) => `Authorization: Bearer ${secret}\r\nAccept: */*`,
  variable: (secret) => `export VALUE="${secret}"`,
  lines: (secret) => `first\n${secret}\nlast`,
  "Windows lines": (secret) => `first\r\n${secret.replaceAll("\n", "\r\n")}\r\nlast`,
};
