import { type ContractSample, request } from "../testing.ts";

export const sample: ContractSample = {
  auth: { "api-key": { secrets: { token: "library-key-0123456789" } } },
  requests: [
    { request: request("GET https://api.library.example/v1/status"), actions: ["status:read"] },
    {
      request: request("GET https://api.library.example/v1/shelves/poetry/books/12"),
      actions: ["books:read"],
    },
    {
      request: request("POST https://api.library.example/v1/shelves/poetry/books?notify=1"),
      actions: ["books:write"],
    },
  ],
};
