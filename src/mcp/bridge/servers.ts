import http from "node:http";
import type { BridgeContext } from "./options.ts";
export class ServerBridge {
  constructor(_context: BridgeContext, _egressSocket: string) {}
  createServer(): http.Server {
    return http.createServer();
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
}
