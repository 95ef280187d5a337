/** The state of an installation and its objects. */
import type { AuditState } from "../../audit/sink.ts";
import type { AuditStatus, GatewayStatus } from "../../gateway/status.ts";
import { inParallel } from "../../sources/folder/scan.ts";
import type { StatusReport } from "../status.ts";
import { componentFaults, missingKinds, readComponents } from "./installation.ts";
import { askPod, GATEWAY_PORTS, gatewayPods, type Pod, whyUnanswered } from "./pods.ts";
import type { ClusterSession } from "./session.ts";
import { addressOf, JUDGED_KINDS, stateOf } from "./views.ts";

/** The status that a gateway's pod reports. */
export interface GatewayAnswer {
  readonly pod: Pod;
  /** undefined if it does not answer. */
  readonly status: GatewayStatus | undefined;
  readonly problem: string | undefined;
}

/** @throws ApiError */
export async function readStatus(session: ClusterSession): Promise<StatusReport> {
  const { client, systemNamespace } = session;
  const missing = await missingKinds(session);
  const [components, answers, lists] = await Promise.all([
    readComponents(session),
    askGateways(session),
    Promise.all(
      JUDGED_KINDS.filter((kind) => !missing.includes(kind)).map(async (kind) => {
        const { items } = await client.list(addressOf(kind));
        return items.map((object) => stateOf(kind, object));
      }),
    ),
  ]);
  const reasons = [
    ...missing.map((kind) => `the cluster does not serve the kind ${kind}`),
    ...componentFaults(components, systemNamespace),
    ...answers.flatMap(({ pod, status }) =>
      status?.reason === undefined ? [] : [`Pod ${pod.name}: ${status.reason}`],
    ),
  ];
  const statuses = answers.flatMap(({ status }) => status ?? []);
  return {
    ready: reasons.length === 0,
    reason: reasons.length === 0 ? undefined : reasons.join("; "),
    objects: lists.flat(),
    problems: [
      ...new Set([
        ...statuses.flatMap(({ problems }) => problems),
        ...answers.flatMap(({ pod, problem }) =>
          problem === undefined ? [] : [`Pod ${pod.name}: ${problem}`],
        ),
      ]),
    ],
    envoys: statuses.flatMap(({ envoys }) => envoys),
    audit: worstOf(statuses.flatMap(({ audit }) => audit ?? [])),
  };
}

/** @throws ApiError */
export async function askGateways(session: ClusterSession): Promise<readonly GatewayAnswer[]> {
  const pods = await gatewayPods(session);
  return inParallel(
    pods.filter(({ running }) => running),
    async (pod): Promise<GatewayAnswer> => {
      try {
        const status = (await askPod(
          session,
          pod,
          GATEWAY_PORTS.admin,
          "/status",
        )) as GatewayStatus;
        return { pod, status, problem: undefined };
      } catch (error) {
        return { pod, status: undefined, problem: whyUnanswered(error) };
      }
    },
  );
}

const SEVERITY: readonly AuditState[] = ["ok", "low", "full", "failing"];

/** The worst state, the least free space, and the sums of what is counted. */
function worstOf(audits: readonly AuditStatus[]): AuditStatus | undefined {
  const [first, ...others] = audits;
  if (first === undefined) return undefined;
  return others.reduce(
    (a, b) => ({
      state: SEVERITY.indexOf(b.state) > SEVERITY.indexOf(a.state) ? b.state : a.state,
      freeBytes: combined(a.freeBytes, b.freeBytes, Math.min),
      chainsBytes: combined(a.chainsBytes, b.chainsBytes, (x, y) => x + y),
      refusalsLeftOut: {
        rate: a.refusalsLeftOut.rate + b.refusalsLeftOut.rate,
        space: a.refusalsLeftOut.space + b.refusalsLeftOut.space,
        failure: a.refusalsLeftOut.failure + b.refusalsLeftOut.failure,
      },
    }),
    first,
  );
}

function combined(
  a: number | undefined,
  b: number | undefined,
  by: (a: number, b: number) => number,
): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : by(a, b);
}
