import { expect, test } from "vitest";
import { agentEnvironment } from "../run/agent-environment.ts";
import { isReservedEnvName } from "./agent-environment-names.ts";

/** Variables of the user's account and of the terminal, which a pod's author may set. */
const FREE = ["PATH", "HOME", "USER", "LOGNAME", "SHELL"];

test("every variable by which svc mediates an agent's traffic is reserved", () => {
  const names = Object.keys(
    agentEnvironment({
      env: {},
      user: { name: "agent", uid: 1, gid: 1, home: "/home/agent" },
      extra: [],
      trustDir: "/trust",
      gatewayUrl: "http://gateway:8000",
      token: "t",
    }),
  );
  expect(names.filter((name) => !isReservedEnvName(name)).toSorted()).toEqual(FREE.toSorted());
});

test.each(["SVC_GATEWAY_URL", "LD_PRELOAD", "LD_AUDIT"])("%s is reserved", (name) =>
  expect(isReservedEnvName(name)).toBe(true),
);

test.each(["LD_LIBRARY_PATH", "svc_x", "NODE_ENV", "OPENAI_ORG_ID"])("%s is free", (name) =>
  expect(isReservedEnvName(name)).toBe(false),
);
