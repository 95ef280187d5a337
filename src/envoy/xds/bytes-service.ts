/** Methods of a grpc-js server with raw messages, which are encoded and decoded elsewhere. */
import type * as grpc from "@grpc/grpc-js";

const same = (bytes: Buffer): Buffer => bytes;

/** A client-streaming method. @param responseStream whether the server streams too */
export function bytesMethod(
  path: string,
  responseStream: boolean,
): grpc.MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: true,
    responseStream,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  };
}

/** Adds Envoy's access log service to a server: `onMessage` gets each `StreamAccessLogsMessage`. */
export function addAccessLogService(server: grpc.Server, onMessage: (bytes: Buffer) => void): void {
  server.addService(
    {
      StreamAccessLogs: bytesMethod(
        "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs",
        false,
      ),
    },
    {
      StreamAccessLogs: (
        call: grpc.ServerReadableStream<Buffer, Buffer>,
        done: grpc.sendUnaryData<Buffer>,
      ) => {
        call.on("data", onMessage);
        call.on("error", () => undefined);
        call.on("end", () => done(null, Buffer.alloc(0)));
      },
    },
  );
}
