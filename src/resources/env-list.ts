/** Environment variables of an Agent or a Session: `spec.env`. */
import * as z from "zod";
import {
  isReservedEnvName,
  RESERVED_ENV_NAMES,
  RESERVED_ENV_PREFIX,
} from "./agent-environment-names.ts";
import { keyedList } from "./keyed-list.ts";
import { ENV_NAME } from "./metadata.ts";
import { withRules } from "./rule.ts";

const envSchema = withRules(
  z.strictObject({
    name: z
      .string()
      .max(256)
      .regex(ENV_NAME, "must be letters, digits and '_', and not begin with a digit")
      .describe("Name of the variable."),
    value: z
      .string()
      .max(32_768)
      .describe("Its value, which is no credential: those belong to Providers."),
  }),
  [
    {
      test: ({ name }) => !isReservedEnvName(name),
      cel:
        `!self.name.startsWith('${RESERVED_ENV_PREFIX}') && ` +
        `!(self.name in [${RESERVED_ENV_NAMES.map((name) => `'${name}'`).join(", ")}])`,
      field: "name",
      message: "must not be a variable that svc sets, or that loads code into programs; rename it",
    },
  ],
);

export const envListSchema = keyedList(envSchema, "name", 256);
