import { expect, test } from "vitest";
import { request } from "../testing.ts";
import { resolve } from "./resolve.ts";

test.each([
  ["GET /v1/shelves/poetry/books", "books:read", "poetry"],
  ["POST /v1/shelves/poetry/books", "books:write", "poetry"],
  ["GET /v1/shelves/poetry/books/1", "books:read", "poetry"],
  ["DELETE /v1/shelves/poetry/books/1", "books:write", "poetry"],
])("%s is %s on %s", (line, action, shelf) => {
  const [method = "", path = ""] = line.split(" ");
  expect(resolve(request(`${method} https://api.library.example${path}`))).toEqual({
    kind: "resolved",
    actions: [{ action, resources: [{ kind: "scoped", key: "projects", value: shelf }] }],
  });
});

test.each([
  "DELETE /v1/shelves/poetry/books",
  "PUT /v1/shelves/poetry/books/1",
  "GET /v1/shelves/Poetry/books",
  "GET /v1/shelves/a%2fb/books",
  "GET /v1/shelves/poetry/books/",
  "GET /v2/status",
])("%s is not understood", (line) => {
  const [method = "", path = ""] = line.split(" ");
  expect(resolve(request(`${method} https://api.library.example${path}`)).kind).toBe("unresolved");
});
