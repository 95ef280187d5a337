/**
 * The binding pipeline: from a request to its credential. `judge.ts` has the checks; then come, in
 * order, the audit record, the credential, and the address of the real endpoint. The record is
 * always written. Whatever follows it requires a {@link ServicePermit}; if it fails, a second
 * record states that the call was not sent.
 */
import { clientText } from "../platform/client-text.ts";
import { type Injection, InjectionError } from "../providers/contract.ts";
import { judge } from "./judge.ts";
import { record } from "./record.ts";
import { notSentFields, recordType } from "./service-call.ts";
import type { StepServices } from "./step-services.ts";
import type {
  ServiceArrival,
  Denied,
  JudgedCall,
  ServicePermit,
  ServiceRefusal,
} from "./verdict.ts";

export type ServiceOutcome = DeniedCall | ForwardedCall;

export interface DeniedCall extends JudgedCall {
  readonly verdict: Denied;
  /** Whether the request has a record of its own, and a log line. */
  readonly listed: boolean;
}

export interface ForwardedCall extends JudgedCall {
  readonly verdict: ServicePermit;
  readonly injection: Injection;
  /** Address of the endpoint: `192.0.2.1:443`; empty if the service runs in the sidecar. */
  readonly upstream: string;
}

export async function decide(
  arrival: ServiceArrival,
  services: StepServices,
): Promise<ServiceOutcome> {
  const verdict = judge(arrival.request, arrival.snapshot);
  const recorded = await record({ arrival, verdict }, services);
  if (recorded.verdict.kind === "denied") {
    return { arrival, verdict: recorded.verdict, listed: recorded.listed };
  }
  const permit = recorded.verdict;
  const prepared = await prepare(permit, arrival, services).catch((error: unknown) => {
    recordNotSent({ arrival, verdict: permit }, DEFECT, services);
    throw error;
  });
  if (!isRefusal(prepared)) return { arrival, verdict: permit, ...prepared };
  recordNotSent({ arrival, verdict: permit }, prepared, services);
  const denied: Denied = { ...permit, kind: "denied", refusal: prepared, others: [] };
  return { arrival, verdict: denied, listed: true };
}

/** The answer of Envoy's configuration to a defect of this service. */
const DEFECT = { status: 503, code: "defect" };

/** Injects the credential, and looks up the endpoint. */
async function prepare(
  permit: ServicePermit,
  arrival: ServiceArrival,
  services: StepServices,
): Promise<Pick<ForwardedCall, "injection" | "upstream"> | ServiceRefusal> {
  const injection = await injectCredentials(permit, arrival, services);
  if (isRefusal(injection)) return injection;
  if (permit.binding.instance.isLocal === true) return { injection, upstream: "" };
  const upstream = await services.resolve(arrival.request.host);
  if (upstream !== undefined) return { injection, upstream };
  const message = `DNS has no address for ${arrival.request.host}.`;
  return { status: 502, code: "host_not_found", message };
}

/** Records that an allowed call ended here; nobody waits for the record. */
function recordNotSent(
  call: JudgedCall,
  refusal: Pick<ServiceRefusal, "code"> & { readonly status: number },
  { audit, clock }: StepServices,
): void {
  const durationMs = Math.max(0, Math.round(clock.monotonic() - call.arrival.startedAt));
  audit?.append({
    type: recordType(call.verdict),
    fields: notSentFields(call, refusal, durationMs),
  });
}

/** Removes the agent's own credentials in every mode, and injects the real one. */
async function injectCredentials(
  { binding }: ServicePermit,
  { request }: ServiceArrival,
  { log }: StepServices,
): Promise<Injection | ServiceRefusal> {
  try {
    return await binding.instance.injectCredentials(request);
  } catch (error) {
    if (!(error instanceof InjectionError)) throw error;
    log.warn(
      { binding: binding.name, reason: clientText(error.message) },
      "no credential to inject",
    );
    return { status: error.status, code: "credential_unavailable", message: error.message };
  }
}

function isRefusal(result: object): result is ServiceRefusal {
  return "code" in result;
}
