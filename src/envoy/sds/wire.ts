/**
 * Encodes delta discovery of secrets by hand: these two messages are the only part of Envoy's API
 * that the sidecar uses here, and its descriptors need ten times the memory of all certificate
 * data. Field numbers are those of envoy/service/discovery/v3/discovery.proto,
 * envoy/extensions/transport_sockets/tls/v3/{secret,common}.proto, envoy/config/core/v3/base.proto
 * and google/protobuf/any.proto.
 */
import { field, Reader } from "../protobuf/reader.ts";
import { bytesField, textField } from "../protobuf/writer.ts";

const SECRET_TYPE = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

export interface SecretRequest {
  readonly subscribe: readonly string[];
  readonly unsubscribe: readonly string[];
}

/**
 * DeltaDiscoveryRequest: resource_names_subscribe = 3, resource_names_unsubscribe = 4. @throws
 * WireError
 */
export function decodeSecretRequest(buffer: Buffer): SecretRequest {
  const subscribe: string[] = [];
  const unsubscribe: string[] = [];
  const reader = new Reader(buffer, 0, buffer.length);
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    const names = tag === field(3, 2) ? subscribe : tag === field(4, 2) ? unsubscribe : undefined;
    if (names === undefined) reader.skip(tag);
    else names.push(buffer.toString("utf8", reader.span(), reader.at));
  }
  return { subscribe, unsubscribe };
}

export interface NamedSecret {
  readonly name: string;
  readonly version: string;
  readonly certificateChainPem: string;
  readonly privateKeyPem: string;
}

export interface SecretResponse {
  readonly nonce: string;
  readonly secrets: readonly NamedSecret[];
  /** Names for which no secret exists. */
  readonly removed: readonly string[];
}

/**
 * DeltaDiscoveryResponse: system_version_info = 1, resources = 2, type_url = 4, nonce = 5,
 * removed_resources = 6.
 */
export function encodeSecretResponse({ nonce, secrets, removed }: SecretResponse): Buffer {
  return Buffer.concat([
    textField(1, nonce),
    ...secrets.map((secret) => bytesField(2, resourceOf(secret))),
    textField(4, SECRET_TYPE),
    textField(5, nonce),
    ...removed.map((name) => textField(6, name)),
  ]);
}

/** Resource: version = 1, resource = 2 (Any: type_url = 1, value = 2), name = 3. */
function resourceOf(secret: NamedSecret): Buffer {
  const any = Buffer.concat([textField(1, SECRET_TYPE), bytesField(2, secretOf(secret))]);
  return Buffer.concat([
    textField(1, secret.version),
    bytesField(2, any),
    textField(3, secret.name),
  ]);
}

/**
 * Secret: name = 1, tls_certificate = 2; TlsCertificate: certificate_chain = 1, private_key = 2;
 * DataSource: inline_string = 3.
 */
function secretOf({ name, certificateChainPem, privateKeyPem }: NamedSecret): Buffer {
  const certificate = Buffer.concat([
    bytesField(1, textField(3, certificateChainPem)),
    bytesField(2, textField(3, privateKeyPem)),
  ]);
  return Buffer.concat([textField(1, name), bytesField(2, certificate)]);
}
