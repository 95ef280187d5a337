/**
 * Certificates and ended calls over our own transport, with a real gRPC client: Envoy's requests,
 * and invalid ones.
 */
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import * as grpc from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { StreamServer } from "../envoy/grpc/serve.ts";
import { CertificateAuthority } from "../interception/ca.ts";
import { FakeClock } from "../platform/testing.ts";
import { ProtoRegistry } from "../envoy/protobuf/registry.ts";
import { serveEndedCalls } from "./access-log.ts";
import type { EndedCall, EnvoyRefusal } from "./authorizer.ts";
import { SecretService } from "../envoy/sds/server.ts";
import { eventually } from "../../e2e/support/wait.ts";

const protos = ProtoRegistry.load(path.join(import.meta.dirname, "../gen/envoy.binpb"));
const same = (buffer: Buffer): Buffer => buffer;
/** A field that ends after the message. */
const BROKEN = Buffer.from([0x1a, 0x7f]);

let dir: string;
let socket: string;
let server: StreamServer;
let client: grpc.Client;
let defects: unknown[];

beforeEach(() => {
  dir = mkdtempSync(path.join(os.tmpdir(), "svc-control-"));
  socket = path.join(dir, "s.sock");
  defects = [];
  client = new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure());
});

afterEach(async () => {
  client.close();
  await server.close();
  rmSync(dir, { recursive: true });
});

const onDefect = (error: unknown): void => void defects.push(error);

describe("certificates", () => {
  let clock: FakeClock;
  let secrets: SecretService;
  let authority: CertificateAuthority;

  beforeEach(async () => {
    clock = new FakeClock();
    authority = new CertificateAuthority({
      clock,
      random: (bytes) => randomBytes(bytes),
      names: { hosts: ["api.github.com"], patterns: ["*.example.org"] },
    });
    secrets = new SecretService({ authority, clock, checkMs: 60_000, onDefect });
    server = await secrets.serve(socket);
  });

  afterEach(() => {
    secrets.close();
    authority.close();
  });

  interface Response {
    readonly nonce: string;
    readonly resources?: readonly {
      readonly name: string;
      readonly resource: {
        readonly tlsCertificate: { readonly certificateChain: { readonly inlineString: string } };
      };
    }[];
    readonly removedResources?: readonly string[];
  }

  class Asker {
    readonly responses: Response[] = [];
    status: grpc.status | undefined;
    readonly stream = client.makeBidiStreamRequest(
      "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets",
      same,
      same,
    );

    constructor() {
      this.stream.on("data", (bytes: Buffer) =>
        this.responses.push(
          protos.decodeToJson(
            "envoy.service.discovery.v3.DeltaDiscoveryResponse",
            bytes,
          ) as unknown as Response,
        ),
      );
      this.stream.on("error", () => undefined);
      this.stream.on("status", ({ code }) => (this.status = code));
    }

    ask(...names: readonly string[]): void {
      this.stream.write(
        Buffer.from(
          protos.encode("envoy.service.discovery.v3.DeltaDiscoveryRequest", {
            resourceNamesSubscribe: [...names],
          }),
        ),
      );
    }

    async heard(count: number): Promise<readonly Response[]> {
      await eventually(() => expect(this.responses).toHaveLength(count));
      return this.responses;
    }
  }

  test("a bound name gets one, another none; all are sent again when the authority changes", async () => {
    const asker = new Asker();
    asker.ask("api.github.com", "evil.example");
    const [first] = await asker.heard(1);
    expect(first?.resources?.map(({ name }) => name)).toEqual(["api.github.com"]);
    expect(first?.resources?.[0]?.resource.tlsCertificate.certificateChain.inlineString).toContain(
      "BEGIN CERTIFICATE",
    );
    expect(first?.removedResources).toEqual(["evil.example"]);
    asker.ask("a.example.org");
    expect((await asker.heard(2))[1]?.resources?.map(({ name }) => name)).toEqual([
      "a.example.org",
    ]);
    secrets.refresh(true);
    const third = (await asker.heard(3))[2];
    expect(third?.resources?.map(({ name }) => name).toSorted()).toEqual([
      "a.example.org",
      "api.github.com",
    ]);
    expect(new Set(asker.responses.map(({ nonce }) => nonce)).size).toBe(3);
    asker.stream.end();
    await eventually(() => expect(asker.status).toBe(grpc.status.OK));
    // The peer has already disconnected.
    secrets.refresh(true);
    expect(server.streamCount()).toBe(0);
  });

  test("what is no question ends its stream alone", async () => {
    const [broken, sound] = [new Asker(), new Asker()];
    broken.stream.write(BROKEN);
    await eventually(() => expect(broken.status).toBe(grpc.status.INTERNAL));
    expect(defects).toHaveLength(1);
    sound.ask("api.github.com");
    await sound.heard(1);
    sound.stream.end();
  });
});

describe("ended calls", () => {
  let ended: EndedCall[];
  let refused: EnvoyRefusal[];

  beforeEach(async () => {
    [ended, refused] = [[], []];
    server = await serveEndedCalls({
      path: socket,
      onEnded: (call) => ended.push(call),
      onRefused: (refusal) => refused.push(refusal),
      onDefect,
    });
  });

  const entry = (call: string | undefined, responseFlags = {}, status = 200): object => ({
    commonProperties: {
      ...(call !== undefined && {
        metadata: { filterMetadata: { "envoy.filters.http.ext_authz": { call } } },
      }),
      responseFlags,
    },
    request: { requestHeadersBytes: 10, requestBodyBytes: 20 },
    response: { responseCode: status, responseHeadersBytes: 30, responseBodyBytes: 40 },
  });

  const report = (...calls: readonly (string | undefined)[]): Buffer =>
    Buffer.from(
      protos.encode("envoy.service.accesslog.v3.StreamAccessLogsMessage", {
        httpLogs: { logEntry: calls.map((call) => entry(call)) },
      } as never),
    );

  test("requests that Envoy refused itself are told apart from those that were denied or left", async () => {
    const flags = { downstreamProtocolError: true };
    const entries = [
      entry(undefined, { unauthorizedDetails: { reason: "EXTERNAL_SERVICE" } }, 403),
      entry(undefined, { downstreamConnectionTermination: true }, 0),
      entry(undefined, flags, 400),
      entry(undefined, {}, 404),
      entry("one", flags),
    ];
    const stream = client.makeClientStreamRequest(
      "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs",
      same,
      same,
      () => undefined,
    );
    stream.write(
      Buffer.from(
        protos.encode("envoy.service.accesslog.v3.StreamAccessLogsMessage", {
          httpLogs: { logEntry: entries },
        } as never),
      ),
    );
    await eventually(() => expect(ended.map(({ id }) => id)).toEqual(["one"]));
    expect(refused).toMatchObject([
      { status: 400, flags: ["downstreamProtocolError"] },
      { status: 404, flags: [] },
    ]);
    stream.end();
  });

  test("are told by their ids, those that left; a report that cannot be read is no end of the stream", async () => {
    let status: grpc.status | undefined;
    const stream = client.makeClientStreamRequest(
      "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs",
      same,
      same,
      () => undefined,
    );
    stream.on("status", ({ code }) => (status = code));
    stream.write(report("one", undefined, "two"));
    stream.write(BROKEN);
    stream.write(report("three"));
    await eventually(() => expect(ended.map(({ id }) => id)).toEqual(["one", "two", "three"]));
    expect(ended[0]).toMatchObject({ status: 200 });
    expect(defects).toHaveLength(1);
    stream.end();
    await eventually(() => expect(status).toBeDefined());
  });
});
