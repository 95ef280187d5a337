// Holds a network namespace of its own: who spawned it (unshare --net) gets sockets of it, on the
// ports of HTTPS and DNS.
import { execFileSync } from "node:child_process";
import dgram from "node:dgram";
import { once } from "node:events";
import net from "node:net";

const [address] = process.argv.slice(2);
execFileSync("ip", ["link", "set", "lo", "up"]);
const tls = net.createServer().listen(443, address);
const dns = dgram.createSocket("udp4").bind(53, address);
await Promise.all([once(tls, "listening"), once(dns, "listening")]);
process.send("tls", tls);
process.send("dns", dns);
// They are the other side's now; this one neither accepts nor reads.
await once(process, "message");
tls.close();
dns.close();
process.on("disconnect", () => process.exit(0));
