/**
 * One hostile caller, a process of its own: repeats one attack as fast as it can, until it is
 * stopped. Then prints the number of answers by status.
 *
 *   node bench/attacker.ts '{"kind":"large","port":8000,"key":"svcw_…","model":"m"}'
 */
import { readFileSync } from "node:fs";
import net from "node:net";
import os from "node:os";
import tls from "node:tls";
import { PATH, requestBody } from "./answers.ts";
import type { Attack, AttackJob } from "./attacks.ts";
import { AGENTS_TOKEN, HOST, restRequest } from "./service.ts";

const MIB = 1024 * 1024;

// The attacker shares a core with the tenant's client and the model. They come first, so that the
// figures show the gateway, not the competition of its clients for their own core.
os.setPriority(os.constants.priority.PRIORITY_LOW);

/** A caller that continues at once after a refusal is the worst case; it is limited to one core. */
const PAUSE_MS = 1;

const job = JSON.parse(process.argv[2] ?? "") as AttackJob;
const statuses: Record<string, number> = {};

function head(length: number, key = job.key): string {
  return (
    `POST ${PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n` +
    `content-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
  );
}

function request(body: string | Buffer, key = job.key): Buffer {
  return Buffer.concat([Buffer.from(head(Buffer.byteLength(body), key)), Buffer.from(body)]);
}

function connect(): net.Socket {
  const socket = net.connect({ port: job.port, host: "127.0.0.1", noDelay: true });
  socket.on("error", () => undefined);
  return socket;
}

/** Sends again after each answer; reconnects after a disconnect. */
function repeat(connections: number, next: () => Buffer, open = connect): void {
  const one = (): void => {
    const socket = open();
    socket.on("error", () => undefined);
    const send = (): void => {
      if (!socket.destroyed) socket.write(next());
    };
    socket.on("connect", send);
    socket.on("data", (data: Buffer) => {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(data.toString("latin1", 0, 12))?.[1];
      if (status === undefined) return;
      statuses[status] = (statuses[status] ?? 0) + 1;
      setTimeout(send, PAUSE_MS);
    });
    socket.on("close", () => setTimeout(one, PAUSE_MS));
  };
  for (let n = 0; n < connections; n++) one();
}

/** Opens the given number of connections and lets `use` act on each; reopens closed ones. */
function hold(connections: number, use: (socket: net.Socket) => void): void {
  const one = (): void => {
    const socket = connect();
    socket.on("connect", () => use(socket));
    socket.on("data", (data: Buffer) => {
      const status = /^HTTP\/1\.1 (\d{3})/.exec(data.toString("latin1", 0, 12))?.[1] ?? "?";
      statuses[status] = (statuses[status] ?? 0) + 1;
    });
    socket.on("close", () => setTimeout(one, 50));
  };
  for (let n = 0; n < connections; n++) one();
}

const small = (model = job.model): string => requestBody({ model, stream: false });

const ACTIONS: Readonly<Record<Attack, () => void>> = {
  large: () => {
    const body = request(requestBody({ model: job.model, stream: false, promptBytes: 31 * MIB }));
    repeat(8, () => body);
  },
  translated: () => {
    const body = request(
      requestBody({ model: job.foreignModel, stream: false, promptBytes: 8 * MIB }),
    );
    repeat(4, () => body);
  },
  deep: () => {
    const body = request("[".repeat(29 * MIB));
    repeat(8, () => body);
  },
  wide: () => {
    const values = request(`{"model":"${job.model}","x":[${"1,".repeat(390_000)}1]}`);
    const members = request(
      `{${Array.from({ length: 400_000 }, (_, n) => `"k${n}":1`).join()},"model":"${job.model}"}`,
    );
    let turn = 0;
    repeat(8, () => (turn++ % 2 === 0 ? values : members));
  },
  slow: () => {
    hold(2_000, (socket) => {
      socket.write(`POST ${PATH} HTTP/1.1\r\nhost: x\r\n`);
      const half = Math.random() < 0.5;
      if (half) socket.write(`authorization: Bearer ${job.key}\r\ncontent-length: 5000\r\n\r\n{`);
      const drip = setInterval(() => socket.write(half ? " " : "x-a: b\r\n"), 1_000);
      socket.on("close", () => clearInterval(drip));
    });
  },
  many: () => {
    const body = request(small());
    repeat(256, () => body);
  },
  unfinished: () => {
    hold(500, (socket) => {
      socket.write(head(31 * MIB));
      socket.write(Buffer.alloc(64 * 1024, "x"));
    });
  },
  refused: () => {
    const body = request(small(), job.limitedKey);
    repeat(128, () => body);
  },
  unknown: () => {
    let turn = 0;
    repeat(128, () => request(small(), `svcw_${turn++}`));
  },
  names: () => {
    let turn = 0;
    repeat(64, () => request(small(`bench/invented-${turn++}`)));
  },
  sidecar: () => {
    const ca = readFileSync(job.sidecar.caFile);
    const denied = Buffer.from(
      restRequest(AGENTS_TOKEN).replace("/repos/octo/hello", "/repos/others/secret"),
    );
    repeat(
      64,
      () => denied,
      () => {
        const { port } = job.sidecar;
        return tls.connect({ port, host: "127.0.0.1", servername: HOST, ca });
      },
    );
  },
  leaving: () => {
    hold(128, (socket) => {
      socket.write(request(small()));
      setTimeout(() => socket.resetAndDestroy(), 5);
    });
  },
};

ACTIONS[job.kind]();
process.once("SIGTERM", () => {
  process.stdout.write(`${JSON.stringify(statuses)}\n`, () => process.exit(0));
});
