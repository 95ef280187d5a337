/** The objects that `svc status` is asked about, and what keeps them from being ready. */
import { CliError } from "./errors.ts";
import { type KindName, kindNamed } from "./kinds.ts";
import type { ObjectState, StatusReport } from "./status.ts";

export interface Wanted {
  /** undefined: all, or the default one for named objects. */
  readonly namespace: string | undefined;
  /** Empty: all. */
  readonly objects: readonly WantedObject[];
}

interface WantedObject {
  readonly kind: KindName;
  readonly name: string;
}

/** @param text `<kind>/<name>` @throws CliError, a usage error */
export function wantedObject(text: string): WantedObject {
  const [kind = "", name = "", ...more] = text.split("/");
  if (name === "" || more.length > 0)
    throw CliError.usage(`'${text}' is not <kind>/<name>, as in agent/hello`);
  return { kind: kindNamed(kind), name };
}

/** Returns whether a command was asked about an object. */
export function isWanted({ namespace, objects }: Wanted): (object: ObjectState) => boolean {
  return (object) =>
    objects.length === 0
      ? namespace === undefined || object.namespace === namespace
      : objects.some((one) => isSame(one, namespace, object));
}

/** Returns the named objects that do not exist, one line each. */
export function missingObjects(
  status: Pick<StatusReport, "objects">,
  { namespace, objects }: Wanted,
): readonly string[] {
  return objects
    .filter((one) => !status.objects.some((object) => isSame(one, namespace, object)))
    .map(
      ({ kind, name }) =>
        `${kind.singular}/${name} does not exist in namespace ${namespace ?? "default"}`,
    );
}

/** Returns what is not ready and why, one line each. An object that is skipped is no fault. */
export function unready(status: StatusReport, wanted: Wanted): readonly string[] {
  return [
    ...(status.ready ? [] : [status.reason ?? "the gateway"]),
    ...missingObjects(status, wanted),
    ...status.objects
      .filter(isWanted(wanted))
      .filter(({ ready, reason }) => !ready && reason !== "Skipped")
      .map(
        ({ kind, namespace, name, reason, message }) =>
          `${kind} ${namespace}/${name}: ${reason}${message === "" ? "" : `: ${message}`}`,
      ),
  ];
}

function isSame(wanted: WantedObject, namespace = "default", object: ObjectState): boolean {
  return (
    object.kind === wanted.kind.kind &&
    object.name === wanted.name &&
    object.namespace === namespace
  );
}
