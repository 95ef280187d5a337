/**
 * The stages of an LLM request, in order. The first list runs when its headers have arrived, the
 * second when its body has.
 */
import { authorize } from "./authorize.ts";
import type { RequestContext } from "./context.ts";
import { enter } from "./enter.ts";
import { guard } from "./guard.ts";
import { type Arrival, identify } from "./identify.ts";
import { inspect } from "./inspect.ts";
import { Pipeline } from "./pipeline.ts";
import { prepare } from "./prepare.ts";
import { type BodyArrival, readBody } from "./read.ts";
import { reserve } from "./reserve.ts";
import { share } from "./share.ts";
import { size } from "./size.ts";

export const HEADER_STAGES = Pipeline.of<RequestContext, Arrival>()
  .stage("identify", identify)
  .stage("share", share)
  .stage("enter", enter);

export const BODY_STAGES = Pipeline.of<RequestContext, BodyArrival>()
  .stage("read", readBody)
  .stage("authorize", authorize)
  .stage("inspect", inspect)
  .stage("guard", guard)
  .stage("size", size)
  .stage("reserve", reserve)
  .stage("prepare", prepare);
