/** CIDR blocks in resources and flags. */
import * as z from "zod";

/** A CIDR block such as `10.0.0.0/8` or `2001:db8::/32`. */
export const cidrSchema = z.union(
  [z.cidrv4(), z.cidrv6()],
  "must be a CIDR block such as 10.0.0.0/8",
);
