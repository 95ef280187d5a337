/**
 * The sidecar's DNS under `svc run`: an aws Provider without `hosts`, whose hosts are patterns, as
 * AWS's own clients and the resolvers of several languages use it.
 */
import { execFile } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { AwsServer } from "../support/aws-server.ts";
import { ROOT } from "../support/build.ts";
import { Machine } from "../support/clients/machine.ts";
import { until } from "../support/wait.ts";

const KEY = {
  accessKeyId: "AKIAREALREALREALREAL",
  secretAccessKey: "the/real+secret/of+these/tests0123456789",
  region: "us-east-1",
};
const CLIENT_ENV = {
  AWS_ACCESS_KEY_ID: "AKIADUMMYDUMMYDUMMYD",
  AWS_SECRET_ACCESS_KEY: "of-no-worth",
  AWS_DEFAULT_REGION: KEY.region,
  AWS_EC2_METADATA_DISABLED: "true",
};
const BOUND = "reports.s3.us-east-1.amazonaws.com";
const UNBOUND = [
  "example.com",
  "amazonaws.com",
  `${BOUND}.evil.example`,
  "s3.amazonaws.com.evil.example",
  "xamazonaws.com",
  "c2VjcmV0.attacker.example",
];

const server = new AwsServer(KEY);
const programs = mkdtempSync(path.join(os.tmpdir(), "svc-resolvers-"));
let machine: Machine;

beforeAll(async () => {
  chmodSync(programs, 0o755);
  const run = promisify(execFile);
  const source = (name: string): string => path.join(ROOT, "e2e/support/clients", name);
  const program = (name: string): string => path.join(programs, name);
  const compiling = Promise.all([
    run("musl-gcc", ["-static", "-o", program("musl"), source("resolve.c")]),
    run("go", ["build", "-o", program("go"), source("resolve.go")], {
      env: { ...process.env, CGO_ENABLED: "0", GOTOOLCHAIN: "local", GOFLAGS: "-mod=mod" },
    }),
    run("javac", ["-d", programs, source("Resolve.java")]),
  ]);
  machine = await Machine.start({
    hosts: ["*.amazonaws.com", "example.com"],
    resources: [
      {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "aws" },
        stringData: { accessKeyId: KEY.accessKeyId, secretAccessKey: KEY.secretAccessKey },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Provider",
        metadata: { name: "aws" },
        spec: {
          type: "aws",
          auth: { type: "access-key", secretRef: "aws" },
          config: { accountId: "111122223333" },
          policy: { allow: ["s3:*"] },
          scope: { arns: ["arn:aws:s3:::reports", "arn:aws:s3:::reports/*"] },
        },
      },
      {
        apiVersion: "svc.io/v1",
        kind: "Agent",
        metadata: { name: "analyst" },
        spec: { models: [], providers: ["aws"] },
      },
    ],
    shared: { python: path.join(ROOT, ".venv/clients"), programs },
  });
  machine.outside.handler = (request, response) => server.serve(request, response);
  for (const name of ["2026/a.csv", "2026/b.csv"])
    server.s3.objects.set(`reports/${name}`, {
      content: Buffer.from(name),
      type: "text/csv",
      encoding: undefined,
      metadata: {},
    });
  await compiling;
}, 300_000);

afterAll(async () => {
  await machine?.stop();
  rmSync(programs, { recursive: true, force: true });
});

beforeEach(() => {
  machine.outside.requests.length = 0;
  machine.outside.asked.length = 0;
});

async function sh(script: string, before = ""): Promise<string> {
  const env = { ...CLIENT_ENV, PYTHONPATH: `${machine.dir}/python` };
  const { stdout, stderr } = await machine.sh(script, { agent: "analyst", env, before });
  return stdout === "" ? stderr : stdout;
}

describe("a bucket is listed by its name", () => {
  test("by boto3", async () => {
    const program =
      "import boto3; print([each['Key'] for each in " +
      "boto3.client('s3').list_objects_v2(Bucket='reports')['Contents']])";
    expect(await sh(`/usr/bin/python3 -c "${program}"`)).toBe("['2026/a.csv', '2026/b.csv']\n");
    expect(machine.outside.requests.map(({ host }) => host)).toEqual(["reports.s3.amazonaws.com"]);
  });

  test("by the AWS CLI", async () => {
    const aws = "/usr/bin/python3 -m awscli";
    const query = "--query 'Contents[].Key' --output text";
    expect(await sh(`${aws} s3api list-objects-v2 --bucket reports ${query}`)).toBe(
      "2026/a.csv\t2026/b.csv\n",
    );
    expect(await sh(`${aws} s3api list-objects-v2 --bucket payroll`)).toContain(
      "arn:aws:s3:::payroll is outside the scope of aws.",
    );
  });
});

describe("dig", () => {
  const dig = async (...args: readonly string[]): Promise<string> => sh(`dig ${args.join(" ")}`);

  test.each(["+notcp", "+tcp", "+noedns", "+edns=0 +bufsize=512 +dnssec +nsid", "+norecurse"])(
    "%s: a bound name has the sidecar's address, and nothing else",
    async (options) => {
      expect(await dig(options, "+short", BOUND, "A")).toBe("127.0.0.1\n");
      const others = ["AAAA", "HTTPS", "SVCB", "CNAME", "MX", "TXT", "NS", "TYPE65280"];
      const said = await dig(options, ...others.map((type) => `${BOUND} ${type}`));
      expect(said.match(/status: \w+/g)).toEqual(others.map(() => "status: NOERROR"));
      expect(said.match(/ANSWER: \d+/g)).toEqual(others.map(() => "ANSWER: 0"));
    },
  );

  test("everything else does not exist, and nobody outside is asked", async () => {
    const names = [...UNBOUND, "localhost.localdomain", ".", "kubernetes.default.svc", "a.b.c.d"];
    for (const transport of ["+notcp", "+tcp"]) {
      const said = await dig(transport, ...names);
      expect(said.match(/status: \w+/g)).toEqual(names.map(() => "status: NXDOMAIN"));
    }
    expect(await dig("-x", "192.0.2.1")).toContain("status: NXDOMAIN");
    expect(machine.outside.asked).toEqual([]);
  });

  test("the gateway has its name", async () => {
    expect(await dig("+short", "svc-gateway")).toBe("127.0.0.1\n");
    expect(await sh("getent hosts svc-gateway")).toBe("127.0.0.1       svc-gateway\n");
  });

  test("other opcodes, classes and versions are refused", async () => {
    expect(await dig("+opcode=NOTIFY", BOUND)).toContain("status: NOTIMP");
    expect(await dig("+opcode=UPDATE", BOUND)).toContain("status: NOTIMP");
    expect(await dig("-c", "CH", "version.bind", "TXT")).toContain("status: REFUSED");
    expect(await dig("+edns=1", "+noednsneg", BOUND)).toContain("status: BADVERS");
  });

  test("no server is reached but the sidecar's", async () => {
    expect(await dig("+tries=1", "+time=1", "@192.0.2.53", BOUND)).toContain("network unreachable");
    expect(await dig("+short", "@127.0.0.53", BOUND)).toBe("127.0.0.1\n");
  });
});

describe("look-ups by", () => {
  const RESOLVERS: readonly (readonly [string, () => string])[] = [
    ["musl", () => `${machine.dir}/programs/musl`],
    ["Go", () => `${machine.dir}/programs/go`],
    ["Java", () => `java -XX:TieredStopAtLevel=1 -cp ${machine.dir}/programs Resolve`],
    ["Node's dns.lookup", () => `${machine.node} ${machine.client("resolve.mjs")} lookup`],
    ["Node's dns.resolve4", () => `${machine.node} ${machine.client("resolve.mjs")} resolve`],
  ];

  test.each(RESOLVERS)("%s", async (_name, command) => {
    const names = [BOUND, BOUND.toUpperCase(), `${BOUND}.`, ...UNBOUND];
    const said = await sh(`${command()} ${names.join(" ")} 2>/dev/null`);
    expect(said.trimEnd().split("\n")).toEqual([
      ...names.slice(0, 3).map((name) => `${name} 127.0.0.1`),
      ...UNBOUND.map((name) => `${name} not found`),
    ]);
    expect(machine.outside.asked).toEqual([]);
  });

  test("glibc", async () => {
    const said = await sh(
      `getent ahosts ${BOUND}; ` + UNBOUND.map((name) => `getent hosts ${name}; echo $?`).join(";"),
    );
    const lines = said.trimEnd().split("\n");
    expect(lines.slice(0, 3).map((line) => line.split(/ +/).slice(0, 2).join(" "))).toEqual([
      "127.0.0.1 STREAM",
      "127.0.0.1 DGRAM",
      "127.0.0.1 RAW",
    ]);
    // Of programs that set AI_ADDRCONFIG.
    expect(await sh(`getent ahostsv4 ${BOUND} | head -n 1`)).toMatch(/^127\.0\.0\.1 +STREAM /);
    // Key not found.
    expect(lines.slice(3)).toEqual(UNBOUND.map(() => "2"));
  });
});

test("where the machine's resolv.conf is a link into /run, as systemd-resolved has it", async () => {
  const before = `text=$(cat /etc/resolv.conf)
    mount -t tmpfs tmpfs /mnt
    cp -a /etc /mnt/etc
    mount --bind /mnt/etc /etc
    mount -t tmpfs tmpfs /run
    mkdir -p /run/systemd/resolve
    echo "$text" > /run/systemd/resolve/stub-resolv.conf
    ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf`;
  const said = await sh(`cat /etc/resolv.conf; dig +short ${BOUND}; ls -A /run`, before);
  expect(said).toBe(
    "nameserver 127.0.0.1\noptions timeout:1 attempts:2\n127.0.0.1\nsvc\nsystemd\n",
  );
});

/** Ids of processes whose command line fits. */
function processes(fits: (line: string) => boolean): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return fits(readFileSync(`/proc/${pid}/cmdline`, "utf8"));
      } catch {
        return false;
      }
    })
    .map(Number);
}

test("a sidecar that dies is back, with its sockets in the agent's namespace", async () => {
  const flag = path.join(machine.dir, "restarted");
  const script = `while [ ! -e ${flag} ]; do sleep 0.05; done
    until dig +tries=1 +time=1 +short ${BOUND}; do sleep 0.05; done`;
  const ran = sh(script);
  const agent = (line: string): boolean => line.startsWith(`sh\0-c\0${script}`);
  await until(() => processes(agent).length > 0, { what: "the agent" });
  const service = (line: string): boolean => line.includes('"workload":"default/analyst"');
  const [first = 0] = processes(service);
  process.kill(first, "SIGKILL");
  await until(() => processes(service).some((pid) => pid !== first), { what: "another service" });
  writeFileSync(flag, "");
  expect(await ran).toContain("127.0.0.1\n");
});
