import path from "node:path";
import { expect, test } from "vitest";
import { ProtoRegistry } from "../protobuf/registry.ts";
import { decodeSecretRequest, encodeSecretResponse } from "./wire.ts";

const protos = ProtoRegistry.load(path.join(import.meta.dirname, "../../gen/envoy.binpb"));
const TYPE = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";

test("a request is read as Envoy's own definitions have it", () => {
  const request = {
    node: { id: "n", cluster: "c" },
    typeUrl: TYPE,
    resourceNamesSubscribe: ["api.github.com", "x".repeat(300)],
    resourceNamesUnsubscribe: ["old.example"],
    initialResourceVersions: { a: "1" },
    responseNonce: "7",
  };
  const bytes = protos.encode("envoy.service.discovery.v3.DeltaDiscoveryRequest", request);
  expect(decodeSecretRequest(Buffer.from(bytes))).toEqual({
    subscribe: ["api.github.com", "x".repeat(300)],
    unsubscribe: ["old.example"],
  });
  expect(() => decodeSecretRequest(Buffer.from(bytes).subarray(0, -1))).toThrow("beyond the end");
});

test("a response is what Envoy's own definitions make of it", () => {
  const encoded = encodeSecretResponse({
    nonce: "3",
    secrets: [
      {
        name: "api.github.com",
        version: "17",
        certificateChainPem: "chain".repeat(100),
        privateKeyPem: "key",
      },
    ],
    removed: ["evil.com"],
  });
  expect(protos.decodeToJson("envoy.service.discovery.v3.DeltaDiscoveryResponse", encoded)).toEqual(
    {
      systemVersionInfo: "3",
      typeUrl: TYPE,
      nonce: "3",
      removedResources: ["evil.com"],
      resources: [
        {
          name: "api.github.com",
          version: "17",
          resource: {
            "@type": TYPE,
            name: "api.github.com",
            tlsCertificate: {
              certificateChain: { inlineString: "chain".repeat(100) },
              privateKey: { inlineString: "key" },
            },
          },
        },
      ],
    },
  );
});
