/**
 * Methods whose response or effect reaches another project than those that the request names.
 * locators.ts evaluates everything that a request names, also in its body, for every method; the
 * remaining methods are listed here, from a review of the list of methods (methods.json) API by
 * API. reach.test.ts fails if an API has methods that were not reviewed.
 */

const METRICS = "the answer holds metrics of every project that the project monitors";
const SHARED_NETWORK = "the answer is about networks that other projects share";
const SQL = "a query may read from any project";

const REACHES_FURTHER: readonly (readonly [action: RegExp, reason: string])[] = [
  [/^bigquery\.jobs\.(?:insert|query)$/, SQL],
  [
    /^bigqueryreservation\.locations\.search(?:All)?Assignments$/,
    "the answer is about reservations of other projects",
  ],
  [/^cloudkms\.keyHandles\.create$/, "the key is made in the project that keeps the folder's keys"],
  [
    /^compute\.projects\.(?:(?:get|list|enable|disable)Xpn(?:Host|Hosts|Resource|Resources))$/,
    SHARED_NETWORK,
  ],
  [/^compute\..*\.listUsable$|^container\.usableSubnetworks\.list$/, SHARED_NETWORK],
  [
    /^compute\.networks\.listPeeringRoutes$/,
    "the answer holds routes of the networks it peers with",
  ],
  [/^containeranalysis\.occurrences\.getNotes$/, "the note may be of the project that provides it"],
  [/^dataplex\.locations\.searchEntries$/, "it searches the whole organization"],
  [
    /^deploymentmanager\.deployments\.(?:insert|update|patch)$/,
    "a deployment's configuration names resources of any project",
  ],
  [/^monitoring\.(?:projects|metricsScopes)\./, "a metrics scope is about several projects"],
  [
    /^monitoring\.(?:timeSeries\.(?:list|query)|members\.list|metadata\.list|label\.values|v1\.[a-z_]+)$/,
    METRICS,
  ],
];

/** By path: the name of one action covers several methods. */
const PATHS_FURTHER: readonly (readonly [path: RegExp, reason: string])[] = [
  [
    /^v1\/projects\/[^/]+(?:\/locations\/[^/]+)?\/notes\/[^/]+\/occurrences$/,
    "a note's occurrences are of every project that uses it",
  ],
];

/** Returns undefined for methods that stay within the resources that they name. */
export function reachesFurther(action: string, segments: readonly string[]): string | undefined {
  const byAction = REACHES_FURTHER.find(([pattern]) => pattern.test(action))?.[1];
  if (byAction !== undefined) return byAction;
  const path = segments.join("/");
  return PATHS_FURTHER.find(([pattern]) => pattern.test(path))?.[1];
}
