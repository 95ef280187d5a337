/**
 * Which operation a request is, of services made for the purpose: one that speaks every protocol,
 * others beside it at its host, and why a request that could be read in two of them is refused.
 */
import { describe, expect, test } from "vitest";
import { request } from "../testing.ts";
import { callOf } from "./protocols.ts";
import { Service } from "./service-table.ts";

const HOST = "https://all.example";
const JSON_TYPE = { "content-type": "application/x-amz-json-1.1" };
const FORM = { "content-type": "Application/X-WWW-Form-Urlencoded ; charset=utf-8" };
const CBOR = { "smithy-protocol": "rpc-v2-cbor" };
const target = (name: string): Record<string, string> => ({ ...JSON_TYPE, "x-amz-target": name });

const all = new Service({
  id: "all",
  iam: "all",
  sign: "all",
  hosts: "all",
  target: "Com.All_1",
  query: "1",
  rpc: "Get Put=PutThis+PutThat Shared",
  rest: [
    "GET /things ListThings",
    "GET /things/{Id} GetThing",
    "GET /things/special GetSpecial",
    "GET /things/{Path+}/tail GetTail",
    "GET /things/{Path+} GetDeep",
    "GET /things/{Id}?versions ListVersions",
    "GET /things/{Id}?versions&mode=full ListAll",
    "DELETE /things/{Id} DeleteThing",
    "GET /shared ReadShared",
  ].join("\n"),
});
/** Another API of the same service, as far as IAM sees. */
const alike = new Service({
  id: "alike",
  iam: "all",
  sign: "all",
  hosts: "all",
  target: "Com.More.Alike",
  query: "1",
  rpc: "Get Other",
  rest: "GET /shared ReadShared\nGET /things/{Name} GetThing",
});
const otherIam = new Service({
  id: "iam",
  iam: "other",
  sign: "all",
  hosts: "all",
  query: "1",
  rpc: "Shared",
  rest: "GET /shared ReadShared",
});
const otherName = new Service({
  id: "name",
  iam: "all",
  sign: "other",
  hosts: "all",
  query: "1",
  rpc: "Shared",
  rest: "GET /shared ReadShared",
});
const restOnly = new Service({
  id: "rest",
  iam: "rest",
  sign: "rest",
  hosts: "all",
  rest: "GET /things ListThings\nPOST /things AddThing",
});

type Sent = Parameters<typeof request>[1];

/** The IAM actions and labels of a call, or why there is none. */
function read(line: string, sent: Sent = {}, services: readonly Service[] = [all]): unknown {
  const [method, path] = line.split(" ");
  const call = callOf(request(`${method} ${HOST}${path}`, sent), services);
  if (call.kind !== "call") return call.reason;
  const labels = Object.entries(call.labels).map(([name, value]) => `${name}=${value}`);
  return [...call.operation.actions, ...labels].join(" ");
}

describe("JSON", () => {
  test.each([
    ["Com.All_1.Get", "all:Get"],
    ["Com.All_1.Put", "all:PutThis all:PutThat"],
  ])("%s", (name, expected) => {
    expect(read("POST /", { headers: target(name), body: "{}" }, [all, alike])).toBe(expected);
  });

  test("only the service that the target names is asked", () => {
    const line = ["POST /", { headers: target("Com.More.Alike.Put"), body: "{}" }] as const;
    expect(read(...line, [all, alike])).toBe("Put is not a known operation of all.example");
    const shared = { headers: target("Com.All_1.Shared"), body: "{}" };
    expect(read("POST /", shared, [all, otherIam, otherName])).toBe("all:Shared");
  });

  test.each(["Get", "Com.All_1.", "Com.All_1.Get ", "Com.All_1.Get/x", " Com.All_1.Get", ".Get"])(
    "the target %j names nothing",
    (name) => {
      expect(read("POST /", { headers: target(name), body: "{}" })).toContain(
        "is not a known operation",
      );
    },
  );

  test.each([
    ["GET /", {}],
    ["POST /x", {}],
    ["POST /?a=b", {}],
  ])("belongs elsewhere than %s", (line) => {
    expect(read(line, { headers: target("Com.All_1.Get") })).toBe(
      "x-amz-target belongs on POST / without a query",
    );
  });

  test.each(["text/x-amz-json-1.0", "xapplication/x-amz-json-1.0", "application/x-amz-json-1.02"])(
    "the type %s is another",
    (type) => {
      const headers = { "x-amz-target": "Com.All_1.Get", "content-type": type };
      expect(read("POST /", { headers })).toContain("belongs to content-type");
    },
  );

  test.each([
    ["POST /service/Com.All_1/operation/Put", {}],
    ["POST /", FORM],
    ["POST /?Action=Put", {}],
    ["POST /?aCTION=Put", {}],
  ])("two places name the operation: %s %j", (line, headers) => {
    expect(read(line, { headers: { ...target("Com.All_1.Get"), ...headers } })).toContain(
      "named in two places",
    );
  });
});

describe("CBOR", () => {
  test.each([
    ["POST /service/Com.All_1/operation/Get", "all:Get"],
    ["POST /service/All_1/operation/Put", "all:PutThis all:PutThat"],
  ])("%s", (line, expected) => {
    expect(read(line, { headers: CBOR, body: "x" }, [all, alike])).toBe(expected);
  });

  test("only the service that the path names is asked", () => {
    const sent = { headers: CBOR, body: "x" };
    const asked = [all, alike, otherIam];
    expect(read("POST /service/Alike/operation/Put", sent, asked)).toContain(
      "is not a known operation",
    );
    expect(read("POST /service/All_1/operation/Shared", sent, asked)).toBe("all:Shared");
    expect(read("POST /service/1/operation/Get", sent, asked)).toContain(
      "is not a known operation",
    );
    expect(read("POST /service/More/operation/Other", sent, asked)).toContain(
      "is not a known operation",
    );
    expect(read("POST /service/Alike/operation/Other", sent, asked)).toBe("all:Other");
    expect(read("POST /service/Com/operation/Get", sent, asked)).toContain(
      "is not a known operation",
    );
  });

  test.each(["GET /service/All_1/operation/Get", "POST /service/All_1/operation/Get?a=b"])(
    "belongs elsewhere than %s",
    (line) => {
      expect(read(line, { headers: CBOR })).toBe("rpc-v2-cbor belongs on POST without a query");
    },
  );

  test.each([
    ["POST /service/All_1/operation/Get", {}],
    ["POST /service/All_1/operation/Get", { "smithy-protocol": "rpc-v2-json" }],
    ["POST /x/service/All_1/operation/Get", CBOR],
    ["POST /service/All_1/operation/Get/x", CBOR],
    ["POST /", CBOR],
  ])("is not %s with %j", (line, headers) => {
    expect(read(line, { headers, body: "x" })).toContain("is not a known operation");
  });
});

describe("query", () => {
  test.each<[string, Sent, string]>([
    ["POST /", { headers: FORM, body: "Action=Get&A=b" }, "all:Get"],
    ["GET /?Action=Put", {}, "all:PutThis all:PutThat"],
    ["GET /?A=b&Action=Get", { headers: { "content-length": "0" }, body: "" }, "all:Get"],
    [
      "POST /111122223333/q.fifo",
      { headers: FORM, body: "Action=Get&QueueUrl=https%3A%2F%2Fx%2F111122223333%2Fq.fifo" },
      "all:Get",
    ],
  ])("%s %j", (line, sent, expected) => {
    expect(read(line, sent)).toBe(expected);
  });

  test.each<[string, Sent, string]>([
    ["GET /?Action=Get", { headers: FORM, body: "Action=Put" }, "A form belongs on POST"],
    ["POST /?A=b", { headers: FORM, body: "Action=Get" }, "in the query and in the body"],
    ["POST /", { headers: FORM }, "The body was not read"],
    [
      "POST /",
      { headers: { ...FORM, "content-encoding": "gzip" }, body: "Action=Get" },
      "The form is compressed",
    ],
    ["POST /", { headers: FORM, body: "Action=Get;B=c" }, "The form can be read"],
    ["POST /?Action=Get", {}, "belongs on GET without a body"],
    ["GET /?Action=Get", { body: "x" }, "belongs on GET without a body"],
    ["GET /?Action=Get", { headers: { "content-length": "1" } }, "belongs on GET without a body"],
    [
      "GET /?Action=Get",
      { headers: { "transfer-encoding": "chunked" } },
      "belongs on GET without a body",
    ],
    ["GET /?Action=Get&action=Put", {}, "The parameter action stands twice"],
    ["GET /?action=Get", {}, "The parameter Action is missing"],
    ["POST /", { headers: FORM, body: "A=b" }, "The parameter Action is missing"],
    ["GET /?Action=Nothing", {}, "Nothing is not a known operation"],
    ["GET /?Action=constructor", {}, "constructor is not a known operation"],
    ["GET /x?Action=Get", {}, "belongs on the path /"],
    ["GET /1111222233334/q?Action=Get", {}, "belongs on the path /"],
    ["GET /x/111122223333/q?Action=Get", {}, "belongs on the path /"],
    ["GET /111122223333/q/x?Action=Get", {}, "belongs on the path /"],
    ["GET /111122223333/q?Action=Get", {}, "name different queues"],
    [
      "GET /111122223333/q?Action=Get&QueueUrl=https%3A%2F%2Fx%2F111122223333%2Fr",
      {},
      "name different queues",
    ],
    [
      "GET /111122223333/q?Action=Get&QueueUrl=x-https%3A%2F%2Fx%2F111122223333%2Fq",
      {},
      "name different queues",
    ],
  ])("refused: %s %j", (line, sent, reason) => {
    expect(read(line, sent)).toContain(reason);
  });

  test("services that share a host must agree on what the operation needs", () => {
    const shared = "GET /?Action=Shared";
    expect(read("GET /?Action=Get", {}, [all, alike])).toBe("all:Get");
    for (const other of [otherIam, otherName]) {
      const reason = "Shared is an operation of several services of all.example";
      expect(read(shared, {}, [all, other])).toBe(reason);
      expect(read(shared, {}, [all, alike, other])).toBe(reason);
    }
  });

  test("is not read where no service at the host speaks it", () => {
    expect(read("GET /things?Action=Get", {}, [restOnly])).toBe("rest:ListThings");
    expect(read("GET /?Action=Get", {}, [restOnly])).toContain("is not a known operation");
    expect(read("GET /?Action=Get", {}, [restOnly, all])).toBe("all:Get");
    expect(read("POST /things", { headers: FORM, body: "Action=Get" }, [restOnly])).toBe(
      "rest:AddThing",
    );
  });

  test("a service that speaks JSON only is not asked", () => {
    const jsonOnly = new Service({
      id: "json",
      iam: "json",
      sign: "json",
      hosts: "all",
      target: "Json",
      rpc: "Only Get",
    });
    expect(read("GET /?Action=Only", {}, [all, jsonOnly])).toContain("is not a known operation");
    expect(read("GET /?Action=Get", {}, [all, jsonOnly])).toBe("all:Get");
  });

  test("a parameter of another name does not make it this protocol", () => {
    expect(read("GET /things?Actions=Get")).toBe("all:ListThings");
  });
});

describe("REST", () => {
  test.each([
    ["GET /things", "all:ListThings"],
    ["GET /things/a", "all:GetThing Id=a"],
    ["DELETE /things/a", "all:DeleteThing Id=a"],
    ["GET /things/special", "all:GetSpecial"],
    ["GET /things/a%2Fb", "all:GetThing Id=a/b"],
    ["GET /things/a/b", "all:GetDeep Path=a/b"],
    ["GET /things/a/tail", "all:GetTail Path=a"],
    ["GET /things/a/b/c/tail", "all:GetTail Path=a/b/c"],
    ["GET /things/tail", "all:GetThing Id=tail"],
  ])("%s", (line, expected) => {
    expect(read(line)).toBe(expected);
  });

  test.each([
    ["GET /things/a?versions", "all:ListVersions Id=a"],
    ["GET /things/a?versions=1&other=2", "all:ListVersions Id=a"],
    ["GET /things/a?versions&mode=full", "all:ListAll Id=a"],
    ["GET /things/a?versions&mode=other", "all:ListVersions Id=a"],
    ["GET /things/a?mode=full", "all:GetThing Id=a"],
    // Twice, it is not the one that the operation asks for.
    ["GET /things/a?versions&versions", "all:GetThing Id=a"],
  ])("who asks for more parameters is meant: %s", (line, expected) => {
    expect(read(line)).toBe(expected);
  });

  test.each(["PUT /things/a", "GET /", "GET /other", "DELETE /things", "DELETE /things/a/b"])(
    "%s is nothing",
    (line) => {
      expect(read(line)).toContain("is not a known operation of all.example");
    },
  );

  test("services that share a host must agree on what the operation needs", () => {
    expect(read("GET /shared", {}, [all, alike])).toBe("all:ReadShared");
    expect(read("GET /things/a", {}, [all, alike])).toBe("all:GetThing Id=a");
    for (const other of [otherIam, otherName])
      expect(read("GET /shared", {}, [all, alike, other])).toContain("is several operations of");
  });

  test.each(["/things//a", "/things/../a", "/things/a;b", "/things/%61"])(
    "the path %s can be read in two ways",
    (path) => {
      expect(read(`GET ${path}`)).toBe("The path can be read in more than one way");
    },
  );
});

test.each([
  ["Application/Vnd.Amazon.EventStream ; x=y", "Streams of signed events cannot be signed again"],
  ["text/plain", "all:ListThings"],
])("a body of type %s", (type, expected) => {
  expect(read("GET /things", { headers: { "content-type": type } })).toBe(expected);
});

test.each(["a=b;c=d", "a=b+c", "a=%zz"])("the query %s can be read in two ways", (query) => {
  expect(read(`GET /things?${query}`)).toBe("The query can be read in more than one way");
});
