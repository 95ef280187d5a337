/**
 * The outside as the sidecar sees it, a process of its own: one TLS server for every host, and a
 * DNS server that resolves every name to it. Prints `{"port": …, "dns": …}` when both listen.
 *
 *   node bench/outside.ts CERTIFICATE.pem KEY.pem
 */
import dgram from "node:dgram";
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import tls from "node:tls";
import packet from "dns-packet";
import { MessageReader } from "./http1.ts";
import { REAL_TOKEN, REFUSED, WHOLE } from "./service.ts";

const [certificate = "", key = ""] = process.argv.slice(2);

const server = tls.createServer(
  {
    cert: readFileSync(certificate),
    key: readFileSync(key),
    ALPNProtocols: ["http/1.1"],
    noDelay: true,
  },
  (socket) => {
    let authorized = false;
    const reader = new MessageReader({
      head(head) {
        authorized = head.includes(REAL_TOKEN);
      },
      body() {},
      end() {
        socket.write(authorized ? WHOLE : REFUSED);
      },
    });
    socket.on("data", (data: Buffer) => reader.push(data));
    // A proxy that disconnects is ignored.
    socket.on("error", () => socket.destroy());
  },
);

const dns = dgram.createSocket("udp4");
dns.on("message", (message, peer) => {
  const { id = 0, questions = [] } = packet.decode(message);
  const answers = questions
    .filter(({ type }) => type === "A")
    .map(({ name }) => ({ type: "A" as const, name, ttl: 60, data: "127.0.0.1" }));
  dns.send(
    packet.encode({
      type: "response",
      id,
      flags: packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE,
      questions,
      answers,
    }),
    peer.port,
    peer.address,
  );
});

dns.bind(0, "127.0.0.1", () => {
  server.listen(0, "127.0.0.1", () => {
    process.stdout.write(
      JSON.stringify({ port: (server.address() as AddressInfo).port, dns: dns.address().port }) +
        "\n",
    );
  });
});
