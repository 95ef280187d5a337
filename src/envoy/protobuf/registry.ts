/**
 * Envoy's messages by reflection over the descriptor set that `make generate` makes: resources
 * are written as plain JSON (as in Envoy's YAML, `@type` included) and become protobuf here. An
 * unknown field or type is an error.
 */
import { readFileSync } from "node:fs";
import {
  createFileRegistry,
  fromBinary,
  fromJson,
  type DescMessage,
  type JsonValue,
  type Message,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const TYPE_PREFIX = "type.googleapis.com/";

export class ProtoRegistry {
  readonly #registry: ReturnType<typeof createFileRegistry>;

  constructor(descriptorSet: Uint8Array) {
    this.#registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet));
  }

  static load(path: string): ProtoRegistry {
    return new ProtoRegistry(readFileSync(path));
  }

  #message(typeUrl: string): DescMessage {
    const name = typeUrl.startsWith(TYPE_PREFIX) ? typeUrl.slice(TYPE_PREFIX.length) : typeUrl;
    const message = this.#registry.getMessage(name);
    if (message === undefined)
      throw new Error(`no message ${name} in the descriptor set: see proto/roots.txt`);
    return message;
  }

  /** @throws Error that names the field if the JSON does not match the message. */
  encode(typeUrl: string, json: JsonValue): Uint8Array {
    const message = this.#message(typeUrl);
    return toBinary(message, fromJson(message, json, { registry: this.#registry }));
  }

  decode(typeUrl: string, bytes: Uint8Array): Message {
    return fromBinary(this.#message(typeUrl), bytes);
  }

  decodeToJson(typeUrl: string, bytes: Uint8Array): JsonValue {
    const message = this.#message(typeUrl);
    return toJson(message, fromBinary(message, bytes), { registry: this.#registry });
  }
}
