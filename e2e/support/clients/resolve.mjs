// Looks names up in both of Node's ways: the system's (dns.lookup), or its own DNS client (c-ares).
import dns from "node:dns/promises";

const [way, ...names] = process.argv.slice(2);
const ask = {
  lookup: async (name) => (await dns.lookup(name, { all: true })).map(({ address }) => address),
  resolve: (name) => dns.resolve4(name),
}[way];
for (const name of names) {
  const said = await ask(name).then(
    (addresses) => addresses.join(" "),
    (error) => (error.code === "ENOTFOUND" ? "not found" : String(error)),
  );
  console.log(`${name} ${said}`);
}
