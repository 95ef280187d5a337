/**
 * JsonBody is a request's body: its bytes, the positions of its members, and its values on demand.
 * A body that is forwarded in its own dialect is never parsed completely: only the members that
 * affect decisions are.
 */
import { parseScanned } from "../../platform/json/parse.ts";
import {
  JsonError,
  type JsonMember,
  type JsonScan,
  type JsonSize,
  scanJson,
} from "../../platform/json/scan.ts";
import { BadRequestError, type BodyFields } from "../dialects/dialect.ts";

export class JsonBody implements BodyFields {
  readonly raw: Buffer;
  /** The members of the object, in order. */
  readonly members: readonly JsonMember[];
  readonly #scan: JsonScan;
  #value: Readonly<Record<string, unknown>> | undefined;

  private constructor(raw: Buffer, members: readonly JsonMember[], scan: JsonScan) {
    this.raw = raw;
    this.members = members;
    this.#scan = scan;
  }

  /** @throws BadRequestError if the bytes are not a JSON object, or are refused */
  static read(raw: Buffer): JsonBody {
    const scan = refusing(() => scanJson(raw));
    if (scan.members === undefined) {
      throw new BadRequestError("The request body must be a JSON object.");
    }
    return new JsonBody(raw, scan.members, scan);
  }

  get size(): JsonSize {
    return this.#scan.size;
  }

  /**
   * Returns the value of one member; undefined if there is none.
   * @throws BadRequestError if a string contains a control character
   */
  get(key: string): unknown {
    if (this.#value !== undefined) return this.#value[key];
    const member = this.member(key);
    if (member === undefined) return undefined;
    return refusing(() => parseScanned(this.raw, this.#scan, member.valueStart, member.valueEnd));
  }

  /**
   * The object, parsed on first use.
   * @throws BadRequestError if a string contains a control character
   */
  get value(): Readonly<Record<string, unknown>> {
    this.#value ??= refusing(() => parseScanned(this.raw, this.#scan)) as Record<string, unknown>;
    return this.#value;
  }

  /** Drops the parsed values, which take several times the bytes of a large body. */
  forgetValue(): void {
    this.#value = undefined;
  }

  member(key: string): JsonMember | undefined {
    return this.members.find((member) => member.key === key);
  }

  /** Returns a member's value as written. */
  text({ valueStart, valueEnd }: JsonMember): string {
    return this.raw.toString("utf8", valueStart, valueEnd);
  }
}

function refusing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new BadRequestError(`The request body is not valid JSON: ${error.message}.`);
  }
}
