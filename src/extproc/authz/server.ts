/** Serves Envoy's ext_authz: one unary call a request. */
import { callbackify } from "node:util";
import type * as grpc from "@grpc/grpc-js";
import { type AuthzReply, type AuthzRequest, decodeCheckRequest, encodeCheckResponse } from "./wire.ts";

/** gRPC status INTERNAL: the filter fails closed. */
const INTERNAL = 13;

/** @param onDefect a defect of ours; the request fails closed */
export function registerAuthorization(server: grpc.Server, check: (request: AuthzRequest) => Promise<AuthzReply>, onDefect: (error: unknown) => void): void {
  const same = (buffer: Buffer): Buffer => buffer;
  const answer = callbackify(async (request: Buffer): Promise<Buffer> => {
    try {
      return encodeCheckResponse(await check(decodeCheckRequest(request)));
    } catch (error) {
      onDefect(error);
      throw Object.assign(new Error("internal"), { code: INTERNAL });
    }
  });
  server.addService(
    {
      Check: {
        path: "/envoy.service.auth.v3.Authorization/Check",
        requestStream: false,
        responseStream: false,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      },
    },
    {
      Check: (call: grpc.ServerUnaryCall<Buffer, Buffer>, done: grpc.sendUnaryData<Buffer>) => {
        answer(call.request, (error, bytes) => done(error as unknown as Partial<grpc.StatusObject> | null, bytes));
      },
    },
  );
}
