/**
 * The binding pipeline: from a request to its credential. `judge.ts` has the checks; then come, in
 * order, the audit record, the credential, and the address of the real endpoint. The record is
 * always written. Whatever follows it requires a {@link ServicePermit}.
 */
import { clientText } from "../platform/client-text.ts";
import { type Injection, InjectionError } from "../providers/contract.ts";
import { judge } from "./judge.ts";
import { record } from "./record.ts";
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
  /** Address of the endpoint: `192.0.2.1:443`. */
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
  const denied = (refusal: ServiceRefusal): DeniedCall => ({
    arrival,
    verdict: { ...permit, kind: "denied", refusal, others: [] },
    listed: true,
  });
  const injection = await injectCredentials(permit, arrival, services);
  if (isRefusal(injection)) return denied(injection);
  const upstream = await services.resolve(arrival.request.host);
  if (upstream === undefined) {
    const message = `DNS has no address for ${arrival.request.host}.`;
    return denied({ status: 502, code: "host_not_found", message });
  }
  return { arrival, verdict: permit, injection, upstream };
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

function isRefusal(result: Injection | ServiceRefusal): result is ServiceRefusal {
  return "code" in result;
}
