/**
 * Reads a JSON object field by field and tracks unread fields, so that a translation never loses a
 * field silently. A `null` counts as absent, as with all three vendors.
 */
import { BadRequestError } from "./dialect.ts";
import type { Leftover } from "./model.ts";

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `a.b[0]` from its steps; the root has the empty path. */
export function join(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  return path === "" ? key : `${path}.${key}`;
}

export class Fields {
  readonly path: string;
  readonly #object: JsonObject;
  readonly #unread: Set<string>;
  /** Gemini's JSON may be written in camelCase or snake_case (protobuf JSON accepts both). */
  readonly #snake: boolean;

  constructor(value: unknown, path: string, options: { readonly snake?: boolean } = {}) {
    if (!isObject(value))
      throw new BadRequestError(
        `${path === "" ? "the body" : path} must be a JSON object`,
        path || undefined,
      );
    this.path = path;
    this.#object = value;
    this.#unread = new Set(Object.keys(value));
    this.#snake = options.snake ?? false;
  }

  at(key: string): string {
    return join(this.path, key);
  }

  /** Throws: the field does not have the type that the dialect defines. */
  fail(key: string, expected: string): never {
    throw new BadRequestError(`${this.at(key)} must be ${expected}`, this.at(key));
  }

  has(key: string): boolean {
    return this.#find(key) !== undefined;
  }

  raw(key: string): unknown {
    const name = this.#find(key);
    if (name === undefined) return undefined;
    this.#unread.delete(name);
    return this.#object[name];
  }

  string(key: string): string | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "string") return value;
    return this.fail(key, "a string");
  }

  requiredString(key: string): string {
    return this.string(key) ?? this.fail(key, "a string");
  }

  number(key: string): number | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "number") return value;
    return this.fail(key, "a number");
  }

  boolean(key: string): boolean | undefined {
    const value = this.raw(key);
    if (value === undefined || typeof value === "boolean") return value;
    return this.fail(key, "a boolean");
  }

  array(key: string): readonly unknown[] | undefined {
    const value = this.raw(key);
    if (value === undefined || Array.isArray(value)) return value;
    return this.fail(key, "a list");
  }

  strings(key: string): readonly string[] | undefined {
    const value = this.array(key);
    if (value === undefined) return undefined;
    return value.map((item, index) => {
      if (typeof item === "string") return item;
      throw new BadRequestError(
        `${this.at(key)}[${index}] must be a string`,
        `${this.at(key)}[${index}]`,
      );
    });
  }

  object(key: string): JsonObject | undefined {
    const value = this.raw(key);
    if (value === undefined || isObject(value)) return value;
    return this.fail(key, "a JSON object");
  }

  /** Reads a nested object with the same strictness. */
  fields(key: string): Fields | undefined {
    const value = this.raw(key);
    return value === undefined
      ? undefined
      : new Fields(value, this.at(key), { snake: this.#snake });
  }

  oneOf<const T extends string>(key: string, values: readonly T[]): T | undefined {
    const value = this.string(key);
    if (value === undefined) return undefined;
    const found = values.find((candidate) => candidate === value);
    return found ?? this.fail(key, `one of ${values.join(", ")}`);
  }

  /** Each item of a list of objects. */
  each<T>(key: string, read: (item: Fields, index: number) => T): T[] {
    const items = this.array(key) ?? [];
    return items.map((item, index) =>
      read(new Fields(item, join(this.at(key), index), { snake: this.#snake }), index),
    );
  }

  /** Returns the value without marking it as read. */
  peek(key: string): unknown {
    const name = this.#find(key);
    return name === undefined ? undefined : this.#object[name];
  }

  /** Marks fields as known and without effect on any upstream. */
  ignore(...keys: readonly string[]): void {
    for (const key of keys) this.raw(key);
  }

  /**
   * Passes on the unread fields, except values that ask for nothing.
   *
   * @param essential names of the fields that change the meaning of the conversation, also with an
   * empty object as the value; `all` if every field does
   */
  rest(into: Leftover[], essential: ReadonlySet<string> | "all" = NONE): void {
    for (const key of this.#unread) {
      const value = this.#object[key];
      const isEssential = essential === "all" || essential.has(key);
      if (asksForNothing(value) && !(isEssential && isObject(value))) continue;
      into.push({ param: this.at(key), essential: isEssential });
    }
  }

  #find(key: string): string | undefined {
    if (isPresent(this.#object, key)) return key;
    if (!this.#snake) return undefined;
    const snake = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return isPresent(this.#object, snake) ? snake : undefined;
  }
}

const NONE: ReadonlySet<string> = new Set();

/** Returns whether a value is the same as none, whatever the field. */
function asksForNothing(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

function isPresent(object: JsonObject, key: string): boolean {
  return Object.hasOwn(object, key) && object[key] !== null && object[key] !== undefined;
}

/** Normalizes a member's name as tolerant servers do: case, `_` and `-` do not matter. */
export function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[_-]/g, "");
}

/** Returns a set of normalized names. */
export function folded(...names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map(fold));
}
