import { expect, test } from "vitest";
import type { Cluster, HttpFilter } from "../../gen/messages.ts";
import { Extension, extension, newerExtension, typed } from "./extensions.ts";

test("settings carry the name of their message", () => {
  expect(extension(Extension.router, { suppressEnvoyHeaders: true })).toEqual({
    name: "envoy.filters.http.router",
    typedConfig: {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
      suppressEnvoyHeaders: true,
    },
  });
});

test("settings newer than our definitions are a TypedStruct", () => {
  expect(
    newerExtension(Extension.earlyHeaderMutation, {
      mutations: [{ removeOnMatch: { keyMatcher: { prefix: "x-svc-" } } }],
    }),
  ).toEqual({
    name: "envoy.http.early_header_mutation.header_mutation",
    typedConfig: {
      "@type": "type.googleapis.com/xds.type.v3.TypedStruct",
      typeUrl: `type.googleapis.com/${Extension.earlyHeaderMutation.message}`,
      value: { mutations: [{ removeOnMatch: { keyMatcher: { prefix: "x-svc-" } } }] },
    },
  });
});

/** Each line with a mistake must not compile: tsc checks that the error is there. */
test("a mistake in a resource does not compile", () => {
  const mistakes: readonly (Cluster | HttpFilter | object)[] = [
    // @ts-expect-error a misspelt field
    { name: "a", conectTimeout: "1s" } satisfies Cluster,
    // @ts-expect-error snake_case is not the JSON form
    { name: "a", connect_timeout: "1s" } satisfies Cluster,
    // @ts-expect-error no value of the enum
    { name: "a", type: "LOGICAL" } satisfies Cluster,
    // @ts-expect-error a duration is a string
    { name: "a", connectTimeout: 1 } satisfies Cluster,
    // @ts-expect-error a misspelt field of an extension's settings
    extension(Extension.router, { supressEnvoyHeaders: true }),
    extension(Extension.connectionManager, {
      // @ts-expect-error a misspelt field inside of the settings
      commonHttpProtocolOptions: { idleTimout: "1s" },
    }),
    newerExtension(Extension.earlyHeaderMutation, {
      // @ts-expect-error a misspelt field of a TypedStruct's value
      mutations: [{ removeOnMatches: { keyMatcher: { prefix: "x-svc-" } } }],
    }),
    // @ts-expect-error a field of another message
    typed("envoy.extensions.filters.http.router.v3.Router", { statPrefix: "a" }),
    // @ts-expect-error no such message
    typed("envoy.extensions.filters.http.router.v3.Ruoter", {}),
    {
      name: "a",
      // @ts-expect-error settings that nothing has checked
      typedConfig: { "@type": "type.googleapis.com/any", suppressEnvoyHeaders: true },
    } satisfies HttpFilter,
  ];
  expect(mistakes).toHaveLength(10);
});
