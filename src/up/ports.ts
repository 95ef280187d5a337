/** Checks that the ports are free before anything starts. */
import net, { type AddressInfo } from "node:net";
import { StartError } from "../host/errors.ts";

/** @param flag that sets the port, for the error */
export async function assertPortFree(address: string, port: number, flag: string): Promise<void> {
  const server = net.createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") {
        reject(
          new StartError(
            `Port ${port} on ${address} is taken. Stop what uses it, or choose another ` +
              `with ${flag}.`,
          ),
        );
      } else if (error.code === "EACCES") {
        reject(
          new StartError(
            `Port ${port} may not be opened by this user. Choose one above 1023 with ${flag}.`,
          ),
        );
      } else {
        reject(
          new StartError(
            `${address}:${port} cannot be listened on: ${error.message}. Change --address ` +
              `or ${flag}.`,
          ),
        );
      }
    });
    server.listen(port, address, resolve);
  });
  await new Promise((resolve) => server.close(resolve));
}

/** Returns a port of 127.0.0.1 that nothing listens on at present. */
export async function freeLoopbackPort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
