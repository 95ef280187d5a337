/**
 * `svc run` on the machine itself: as root, with real namespaces, rules and Envoy. The sidecar
 * service is replaced by one that answers for every bound host; its decisions are tested elsewhere.
 */
import { execFileSync } from "node:child_process";
import dgram from "node:dgram";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  HOSTS,
  type Ran,
  type RunStack,
  SECRET,
  startRunStack,
  TOKEN,
} from "../support/run-stack.ts";
import { until } from "../support/wait.ts";

let stack: RunStack;
let answer: RunStack["answer"];

beforeAll(async () => {
  if (process.getuid?.() !== 0) throw new Error("these tests make namespaces: run them as root");
  stack = await startRunStack();
  answer = structuredClone(stack.answer);
});

beforeEach(() => {
  stack.answer = structuredClone(answer);
});

afterEach(() => stack.killAll());

afterAll(() => stack.stop());

/** Runs a shell's script as the agent. */
const sh = (
  script: string,
  args: readonly string[] = [],
  options: Parameters<RunStack["run"]>[2] = {},
): Promise<Ran> => stack.run(args, ["sh", "-c", script], options);

/** Processes whose command line contains this, seen from outside. */
function processes(
  text: string,
  fits = (line: string, text: string) => line.includes(text),
): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid)
    .filter((pid) => {
      try {
        return fits(readFileSync(`/proc/${pid}/cmdline`, "utf8"), text);
      } catch {
        return false;
      }
    });
}

/** Those whose whole command line this is. */
const running = (command: string): number[] =>
  processes(command.replace(" ", "\0"), (line, text) => line === `${text}\0`);

/** Direct children of a process. */
function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    .split(" ")
    .filter((text) => text.trim() !== "")
    .map(Number);
}

/** The folder of a run, by the id of its process. */
function folderOf(pid: number | undefined): string | undefined {
  return readdirSync("/run").find((name) => {
    try {
      return (
        name.startsWith("svc-run-") &&
        readFileSync(`/run/${name}/owner`, "utf8").startsWith(`${pid} `)
      );
    } catch {
      return false;
    }
  });
}

describe("what it reaches", () => {
  test("the bound hosts, by the trust of its environment alone", async () => {
    const python =
      "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())";
    const node = "fetch(process.argv[1]).then((r) => r.text()).then(console.log)";
    const script =
      `curl -sS https://${HOSTS[0]}/ && /usr/bin/python3 -c '${python}' ` +
      `https://${HOSTS[1]}/x && ${process.execPath} -e '${node}' https://${HOSTS[0]}/y`;
    // The folder of this Node.js may be hidden from the agent, such as one in /tmp.
    const ran = await sh(script, ["--workdir", path.dirname(process.execPath)]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toBe(
      `intercepted ${HOSTS[0]}\nintercepted ${HOSTS[1]}\n\nintercepted ${HOSTS[0]}\n\n`,
    );
  });

  test("not without that trust", async () => {
    expect(
      (await sh(`env -u CURL_CA_BUNDLE -u SSL_CERT_FILE curl -sS https://${HOSTS[0]}/`)).stderr,
    ).toContain("certificate");
  });

  test("the gateway, on its own port, with the token and the address in the environment", async () => {
    const { stdout } = await sh(
      'curl -sS -H "Authorization: Bearer $OPENAI_API_KEY" "$OPENAI_BASE_URL/models"; echo ' +
        '"$ANTHROPIC_BASE_URL $ANTHROPIC_API_KEY $GOOGLE_GEMINI_BASE_URL $GEMINI_API_KEY"',
    );
    const url = `http://127.0.0.1:${stack.gatewayPort}`;
    expect(stdout).toBe(`gateway /v1/models Bearer ${TOKEN}\n${url} ${TOKEN} ${url} ${TOKEN}\n`);
  });

  describe("and nothing else", () => {
    let listener: net.Server;
    let datagrams: dgram.Socket;
    let port: number;
    let outside: string;
    let reached = 0;

    beforeAll(async () => {
      outside =
        Object.values(os.networkInterfaces())
          .flat()
          .find((each) => each !== undefined && !each.internal && each.family === "IPv4")
          ?.address ?? "127.0.0.2";
      listener = net.createServer((socket) => {
        reached++;
        socket.end("outside");
      });
      await new Promise<void>((resolve) => listener.listen(0, "::", resolve));
      port = (listener.address() as net.AddressInfo).port;
      datagrams = dgram.createSocket("udp4").on("message", () => reached++);
      await new Promise<void>((resolve) => datagrams.bind(0, resolve));
    });

    afterAll(async () => {
      datagrams.close();
      await new Promise((resolve) => listener.close(resolve));
    });

    const tries: [string, () => string][] = [
      ["this machine's own address", () => `curl -sS -m 2 http://${outside}:${port}/`],
      ["this machine's loopback address", () => `curl -sS -m 2 http://127.0.0.1:${port}/`],
      ["this machine's loopback address, IPv6", () => `curl -sS -m 2 "http://[::1]:${port}/"`],
      ["an address on the internet", () => "curl -sS -m 2 https://192.0.2.1/"],
      ["an address on the internet, IPv6", () => 'curl -sS -m 2 "https://[2001:db8::1]/"'],
      ["the cloud's metadata", () => "curl -sS -m 2 http://169.254.169.254/latest/meta-data/"],
      ["DNS by name", () => "getent hosts example.com"],
      [
        "DNS by a server of its choice",
        () =>
          "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_INET, " +
          `socket.SOCK_DGRAM); s.sendto(b"x" * 20, ("9.9.9.9", 53))'`,
      ],
      [
        "UDP to this machine",
        () =>
          "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_INET, " +
          `socket.SOCK_DGRAM); s.sendto(b"x", ("${outside}", ${datagrams.address().port}))'`,
      ],
      [
        "QUIC to a bound host",
        () =>
          "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_INET, " +
          `socket.SOCK_DGRAM); s.settimeout(2); s.connect(("127.0.0.1", 443)); ` +
          `s.send(b"x"); s.recv(1)'`,
      ],
      [
        "raw packets",
        () =>
          `/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)'`,
      ],
      ["an interface of its own", () => "ip link add d0 type dummy"],
      ["other rules", () => "nft flush ruleset"],
      [
        "another host's name at the sidecar",
        () => "curl -sS -m 2 --connect-to ::127.0.0.1:443 https://bank.example/",
      ],
      [
        "an abstract Unix socket",
        () =>
          "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); " +
          `s.connect("\\0svc-test-abstract")'`,
      ],
      [
        "svc up's socket",
        () =>
          `curl -sS --unix-socket ${stack.stateDir}/svc.sock http://x/agents/default/coder/sidecar`,
      ],
    ];

    test.each(tries)("%s", async (_name, script) => {
      const abstract = net.createServer(() => reached++);
      await new Promise<void>((resolve) => abstract.listen("\0svc-test-abstract", resolve));
      const ran = await sh(`${script()} && echo it went through`);
      await new Promise((resolve) => abstract.close(resolve));
      expect(ran.stdout).not.toContain("it went through");
      expect(ran.code).not.toBe(125);
      expect(reached).toBe(0);
    });

    test("also for one that makes itself root in namespaces of its own", async () => {
      const inside =
        `umount -l /run; umount -l ${stack.stateDir}; cat ${stack.stateDir}/workload.key; ` +
        `mount -t tmpfs t /etc; nft flush ruleset; curl -sS -m 2 http://${outside}:${port}/; ` +
        "ip link set lo down";
      const ran = await sh(
        `unshare --user --map-root-user --mount --net sh -c '${inside}'; unshare --user ` +
          `--map-root-user --mount sh -c '${inside}'; curl -sS https://${HOSTS[0]}/`,
      );
      expect(ran.stdout).toBe(`intercepted ${HOSTS[0]}\n`);
      expect(reached).toBe(0);
    });
  });
});

describe("what it is and sees", () => {
  test("a user without rights, and no way to any", async () => {
    const { stdout } = await sh(
      "id -u; id -g; id -G; grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs)' " +
        "/proc/self/status | tr -s '\\t' ' '",
    );
    expect(stdout).toBe(
      "65532\n65532\n65532\n" +
        ["Inh", "Prm", "Eff", "Bnd", "Amb"]
          .map((kind) => `Cap${kind}: 0000000000000000\n`)
          .join("") +
        "NoNewPrivs: 1\n",
    );
  });

  test.each([
    ["1234", "1234 1234"],
    ["1234:4321", "1234 4321"],
    ["nobody", "65534 65534"],
  ])("--user %s", async (user, ids) => {
    expect((await sh("echo $(id -u) $(id -g)", ["--user", user])).stdout).toBe(`${ids}\n`);
  });

  test.each([
    ["0", "must not run as root"],
    ["root", "must not run as root"],
    ["1000:0", "must not run as root"],
    ["no-such-user", "There is no user"],
    ["4294967295", "out of range"],
  ])("--user %s is refused", async (user, message) => {
    const ran = await sh("id", ["--user", user]);
    expect(ran).toMatchObject({ code: 125, stdout: "" });
    expect(ran.stderr).toContain(message);
  });

  test("itself alone in /proc", async () => {
    const { stdout } = await sh(
      "cat /proc/[0-9]*/comm | sort -u | tr '\\n' ' '; echo; cat /proc/1/environ || echo closed",
    );
    const [names = "", closed] = stdout.split("\n");
    expect(closed).toBe("closed");
    // That /proc only shows the command itself and the holder.
    expect(names.split(" ").filter((name) => name !== "")).toEqual(
      expect.arrayContaining(["cat", "sh", "sleep"]),
    );
    expect(
      names.split(" ").filter((name) => !["", "cat", "sh", "sleep", "sort", "tr"].includes(name)),
    ).toEqual([]);
  });

  test("no secret: not in its environment, not in a file, not in /proc, not in what is shared", async () => {
    const script = [
      "env",
      "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline",
      `cat ${stack.resources}/secret.yaml ${stack.stateDir}/workload.key`,
      "find /run /tmp /dev/shm /var/tmp -type f -exec cat {} + ; find /run /tmp /dev/shm /var/tmp",
      "cat /proc/self/mountinfo /etc/hosts /etc/resolv.conf",
    ].join("; ");
    const { stdout, stderr } = await sh(script, [], {
      env: { AWS_SECRET_ACCESS_KEY: SECRET, SSH_AUTH_SOCK: "/tmp/agent.1", OPENAI_API_KEY: SECRET },
    });
    expect(stdout).toContain("/run/svc/trust/ca-bundle.crt");
    expect(stdout).not.toMatch(/PRIVATE|AWS_SECRET|SSH_AUTH_SOCK/);
    for (const form of [
      SECRET,
      Buffer.from(SECRET, "base64").toString("utf8"),
      Buffer.from(SECRET).toString("base64"),
    ])
      expect(stdout + stderr).not.toContain(form);
  });

  test("no descriptor but its standard ones, whatever the caller had open", async () => {
    const ran = await sh("ls /proc/self/fd; cat <&5 <&200", [], {
      files: [5, 200].map((as) => ({ as, file: path.join(stack.stateDir, "workload.key") })),
    });
    expect(ran.stdout).toBe("0\n1\n2\n3\n");
  });

  test("the trust folder, which it cannot write; other folders of sockets are its own, and empty", async () => {
    const { stdout } = await sh(
      "ls -A /run/svc/trust; ls -A /tmp /run /dev/shm; true > /run/svc/trust/ca.crt || " +
        "echo read-only; true > /run/x || echo not its own; echo mine > /tmp/x && cat /tmp/x",
    );
    expect(stdout).toBe(
      "ca-bundle.crt\nca.crt\ntruststore.p12\n/dev/shm:\n\n/run:\nsvc\n\n/tmp:\nread-" +
        "only\nnot its own\nmine\n",
    );
  });

  test("what it is given: variables, input, and its folder, be it in /tmp", async () => {
    const dir = mkdtempSync(path.join(os.tmpdir(), "svc-test-"));
    try {
      execFileSync("chmod", ["755", dir]);
      writeFileSync(path.join(dir, "here"), "a file");
      const { child, ended } = stack.start(
        ["--env", "A=b=c d", "--env", "FROM_HERE", "--workdir", dir],
        ["sh", "-c", 'pwd; cat here; echo; echo "$A|$FROM_HERE"; cat; ls /tmp'],
        { env: { FROM_HERE: "from here" } },
      );
      child.stdin?.end("what was typed\n");
      expect((await ended).stdout).toBe(
        `${dir}\na file\nb=c d|from here\nwhat was typed\n${path.basename(dir)}\n`,
      );
    } finally {
      rmSync(dir, { recursive: true });
    }
  });

  test("not a state folder that lies in its working folder, nor a working folder in one that is hidden", async () => {
    const dir = path.dirname(stack.stateDir);
    const inside = await sh("pwd; ls -A; cat state/workload.key", [
      "--workdir",
      dir,
      "--hide",
      path.join(dir, "package/package.json"),
    ]);
    expect(inside.stdout).toBe(`${dir}\npackage\nresources\nstate\n`);
    expect(inside.stderr).toContain("ermission denied");
    expect(
      (await sh(`ls -A ${stack.stateDir} ${stack.resources} || true; ls -ld ${stack.resources}`))
        .stdout,
    ).toMatch(/^d--------- \d+ root root/);
    const hidden = await sh("pwd", ["--workdir", stack.stateDir]);
    expect(hidden).toMatchObject({ code: 125, stdout: "" });
    expect(hidden.stderr).toContain("contains secrets");
  });
});

describe("its caller's environment does not become root's", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync("/var/lib/svc-test-env-");
    chmodSync(folder, 0o1777);
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Names of the variables of a process. */
  const variables = (pid: number): string[] =>
    readFileSync(`/proc/${pid}/environ`, "utf8")
      .split("\0")
      .filter((entry) => entry !== "")
      .map((entry) => entry.split("=")[0] as string);

  test("programs are those of fixed places, whatever is on the PATH", async () => {
    const marker = path.join(folder, "ran");
    const names = [
      ["envoy", "setpriv", "nsenter", "unshare", "mount", "umount", "ip", "env", "sleep", "sh"],
      ["nft", "iptables", "iptables-restore", "ip6tables", "ip6tables-restore", "node", "mkdir"],
    ].flat();
    for (const name of names)
      writeFileSync(path.join(folder, name), `#!/bin/sh\necho ${name} >> ${marker}\n`, {
        mode: 0o755,
      });
    const ran = await stack.run([], ["/usr/bin/id", "-u"], {
      env: {
        PATH: `${folder}:${process.env["PATH"]}`,
        ENVOY_PATH: path.join(folder, "envoy"),
        SVC_CA_FILE: path.join(folder, "no-ca"),
      },
    });
    expect(existsSync(marker) ? readFileSync(marker, "utf8") : "").toBe("");
    expect(ran).toMatchObject({ code: 0, stdout: "65532\n", stderr: "" });
  });

  test("Envoy is named by an option, which must be an absolute path", async () => {
    const envoy = path.join(folder, "my-envoy");
    const real = path.resolve(import.meta.dirname, "../../.venv/bin/envoy");
    writeFileSync(envoy, `#!/bin/sh\necho ran >> ${folder}/ran\nexec ${real} "$@"\n`, {
      mode: 0o755,
    });
    expect((await sh("echo up", ["--envoy", envoy])).stdout).toBe("up\n");
    expect(readFileSync(path.join(folder, "ran"), "utf8")).toBe("ran\n");
    const relative = await sh("echo up", ["--envoy", "my-envoy"], { cwd: folder });
    expect(relative).toMatchObject({ code: 125, stdout: "" });
    expect(relative.stderr).toContain("absolute path");
  });

  test("what is set for the command is set for nothing that still has rights", async () => {
    // The loader writes a file for each program that it starts, as that program's user.
    const args = [`LD_DEBUG=files`, `LD_DEBUG_OUTPUT=${folder}/out`].flatMap((set) => [
      "--env",
      set,
    ]);
    const ran = await sh("/usr/bin/id -u", args);
    expect(ran).toMatchObject({ code: 0, stdout: "65532\n" });
    const owners = readdirSync(folder).map((name) => statSync(path.join(folder, name)).uid);
    expect(owners.length).toBeGreaterThan(0);
    expect(new Set(owners)).toEqual(new Set([65_532]));
  });

  test("variables that steer the loader, Node.js or TLS reach no process with rights", async () => {
    const bad = {
      LD_LIBRARY_PATH: "/nowhere",
      GLIBC_TUNABLES: "glibc.malloc.check=0",
      NODE_OPTIONS: "--no-deprecation",
      NODE_EXTRA_CA_CERTS: "/nowhere",
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
      SSL_CERT_FILE: "/nowhere",
      SSL_CERT_DIR: "/nowhere",
      OPENSSL_CONF: "/dev/null",
      HTTPS_PROXY: "http://nowhere",
      RES_OPTIONS: "attempts:1",
      BASH_ENV: "/nowhere",
      IFS: ":",
      OPENAI_API_KEY: SECRET,
    };
    const { child, said, ended } = stack.start([], ["/bin/sh", "-c", "echo up; read line"], {
      env: bad,
    });
    await said("up");
    const run = folderOf(child.pid) ?? "none";
    const found = processes(run);
    expect(found.length).toBeGreaterThan(2);
    const descendants = [...found, ...childrenOf(child.pid ?? 0)];
    const names = new Set(descendants.flatMap(variables));
    for (const name of Object.keys(bad)) expect([name, names.has(name)]).toEqual([name, false]);
    child.stdin?.end("\n");
    expect((await ended).code).toBe(0);
  });

  test("no variable of the command is lost or changed on its way, whatever is in it", async () => {
    const values = { A: "1=2\n3 'x' \"y\" $HOME `id` \\", IFS: ":", E: "", UTF: "ü…🙂" };
    const { stdout } = await stack.run(
      Object.entries(values).flatMap(([name, value]) => ["--env", `${name}=${value}`]),
      ["/usr/bin/env", "-0"],
    );
    const seen = new Map(
      stdout.split("\0").map((entry) => {
        const at = entry.indexOf("=");
        return [entry.slice(0, at), entry.slice(at + 1)];
      }),
    );
    for (const [name, value] of Object.entries(values)) expect(seen.get(name)).toBe(value);
    expect([...seen.keys()].filter((name) => name.startsWith("SVC_"))).toEqual([]);
  });
});

describe("how it ends", () => {
  test.each([
    ["exit 0", 0],
    ["exit 7", 7],
    ["exit 255", 255],
    ["kill -TERM $$", 143],
    ["kill -KILL $$", 137],
    ["kill -INT $$", 130],
    ["exec /no/such/program", 127],
    ["exec /etc/passwd", 126],
  ])("%s", async (script, code) => {
    expect((await sh(script)).code).toBe(code);
  });

  test("a command that there is not, and one that is none", async () => {
    expect((await stack.run([], ["/no/such/program"])).code).toBe(127);
    expect((await stack.run([], ["/etc/passwd"])).code).toBe(126);
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const)(
    "%s is passed on, once",
    async (signal) => {
      const name = signal.slice(3);
      const { child, said, ended } = stack.start(
        [],
        [
          "sh",
          "-c",
          `trap 'echo got; n=$((n+1))' ${name}; echo up; while [ -z "$n" ]; do sleep 0.05; ` +
            "done; exit 4$n",
        ],
      );
      await said("up");
      child.kill(signal);
      expect(await ended).toMatchObject({ code: 41, stdout: "up\ngot\n", stderr: "" });
    },
  );

  test("a signal that ends the command says nothing on its own", async () => {
    const { child, said, ended } = stack.start([], ["sh", "-c", "echo up; exec sleep 1000"]);
    await said("up");
    child.kill("SIGTERM");
    expect(await ended).toMatchObject({ code: 143, signal: null, stdout: "up\n", stderr: "" });
  });

  test("nothing is left, not even what the command left running", async () => {
    const mark = `sleep 31${process.pid}`;
    const { child, said, ended } = stack.start(
      [],
      ["sh", "-c", `setsid ${mark} & ${mark} & echo up; read line; exit 3`],
    );
    await said("up");
    const folder = folderOf(child.pid) ?? "none";
    await until(() => running(mark).length === 2, { what: "both of them" });
    expect(processes(folder).length).toBeGreaterThan(2);
    child.stdin?.end("\n");
    expect((await ended).code).toBe(3);
    expect([...running(mark), ...processes(folder)]).toEqual([]);
    expect(folderOf(child.pid)).toBeUndefined();
  });

  test("by SIGKILL: the kernel ends all of it, and the next run removes the folder", async () => {
    const mark = `sleep 32${process.pid}`;
    const { child, said, ended } = stack.start(
      [],
      ["sh", "-c", `setsid ${mark} & echo up; trap '' TERM INT HUP; ${mark}`],
    );
    await said("up");
    const folder = folderOf(child.pid) ?? "none";
    await until(() => running(mark).length === 2, { what: "both of them" });
    expect(processes(folder).length).toBeGreaterThan(2);
    child.kill("SIGKILL");
    await ended;
    await until(() => running(mark).length + processes(folder).length === 0, {
      what: "the end of all processes",
    });
    expect(folderOf(child.pid)).toBe(folder);
    await sh("true");
    expect(folderOf(child.pid)).toBeUndefined();
  });

  test("two runs side by side do not see each other", async () => {
    const first = stack.start([], ["sh", "-c", "echo mine > /tmp/x; echo up; read line"]);
    await first.said("up");
    const second = await sh(
      `ls /tmp; curl -sS https://${HOSTS[0]}/; kill -9 -1; cat /proc/[0-9]*/comm | grep -c read`,
    );
    expect(second.stdout).toContain("intercepted");
    expect(second.stdout).not.toContain("x\n");
    first.child.stdin?.end("\n");
    expect((await first.ended).code).toBe(0);
  });

  test("zombies are reaped, whoever left them", async () => {
    expect(
      (
        await sh(
          "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; sleep 0.3; grep -l '^State:.Z' " +
            "/proc/[0-9]*/status; echo none",
        )
      ).stdout,
    ).toBe("none\n");
  });
});

describe("what it cannot do, it says", () => {
  test.each<[string, { status: number; body: unknown }, string]>([
    [
      "an Agent that there is not",
      { status: 404, body: { error: "Agent default/coder: there is none" } },
      "svc: Agent default/coder: there is none\n",
    ],
    [
      "an answer of another version",
      { status: 200, body: { secrets: { A: SECRET, B: 1 } } },
      "is not valid (specs, secrets.B, gateway, token, hosts)",
    ],
    ["no answer", { status: 404, body: {} }, "refused the data for the agent"],
    [
      "a secret that is none",
      { status: 200, body: { ...answerBody(), secrets: { LD_PRELOAD: SECRET } } },
      'names a secret "LD_PRELOAD", which no Provider',
    ],
    [
      "a host that is none",
      { status: 200, body: { ...answerBody(), hosts: ["x\n10.0.0.1 bank.example"] } },
      "is not a host name",
    ],
  ])("%s", async (_name, given, message) => {
    stack.answer = given;
    const ran = await sh("echo ran");
    expect(ran.stdout).toBe("");
    expect(ran.code).not.toBe(0);
    expect(ran.stderr).toContain(message);
    expect(ran.stderr).not.toContain(SECRET);
    expect(folderOf(ran.pid)).toBeUndefined();
  });

  test("no root", async () => {
    const ran = await sh("id", [], { uid: 65_532 });
    expect(ran.stderr).toMatch(/needs root|cannot be|EACCES|permission denied/i);
    expect(ran.code).not.toBe(0);
  });

  test("a folder that its user may not enter", async () => {
    const ran = await sh("pwd", ["--workdir", "/root"]);
    expect([ran.code, ran.stdout]).toEqual([125, ""]);
    expect(ran.stderr).toContain("/root");
  });

  test("a sidecar that does not start", async () => {
    stack.answer = { status: 200, body: { ...answerBody(), specs: { hosts: ["not a host"] } } };
    const ran = await sh("echo ran");
    expect([ran.code, ran.stdout]).toEqual([125, ""]);
    expect(ran.stderr).toContain("The sidecar did not become ready");
    expect(folderOf(ran.pid)).toBeUndefined();
  });
});

function answerBody(): object {
  return {
    specs: { hosts: HOSTS },
    secrets: {},
    gateway: { address: "127.0.0.1", port: 9 },
    token: TOKEN,
    hosts: HOSTS,
  };
}
