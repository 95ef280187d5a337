/**
 * Operations whose body may name something in another repository: the body is read, and evaluated
 * by every name in it. Bodies are parsed as JSON, whatever their content type is, as GitHub does.
 */
import type { BodyRule, ServiceResource, ServiceRequest } from "../contract.ts";
import { isJsonObject, jsonMembers, type StrictJson, parseStrictJson } from "../strict-json.ts";
import { repositoryResource, unscopable } from "./repository.ts";

type JsonObject = { readonly [key: string]: StrictJson };

interface Repository {
  readonly owner: string;
  readonly name: string;
}

interface BodyJudge {
  /**
   * Members that affect the decision. None of them may be in the query, or beside the JSON in a
   * form.
   */
  readonly members: readonly string[];
  /** Returns resources besides the repository of the path. */
  readonly judge: (body: JsonObject, repository: Repository) => readonly ServiceResource[];
}

const isSet = (value: StrictJson | undefined): boolean => (value ?? null) !== null;

/**
 * The head of a pull request is a branch of the repository itself, or of another one in its
 * network: `owner:branch`, and `head_repo` if one account has several of them.
 */
const pullRequestHead: BodyJudge = {
  members: ["head", "head_repo"],
  judge: ({ head, head_repo: name }, repository) => {
    if (typeof head !== "string") return [unscopable("The body does not name its head")];
    const colon = head.indexOf(":");
    const owner = colon < 0 ? repository.owner : head.slice(0, colon);
    const isOwn = owner.toLowerCase() === repository.owner.toLowerCase();
    if (!isSet(name))
      return isOwn
        ? []
        : [unscopable("The head is of another account, and which repository it is cannot be told")];
    const other = isOwn && typeof name === "string" ? repositoryResource(owner, name) : undefined;
    return [other ?? unscopable("`head_repo` is not the name of a repository of the same account")];
  },
};

const duplicateOf: BodyJudge = {
  members: ["duplicate_issue_id"],
  judge: (body) =>
    isSet(body["duplicate_issue_id"])
      ? [unscopable("`duplicate_issue_id` may be an issue of any repository")]
      : [],
};

const requiredWorkflows: BodyJudge = {
  members: ["rules"],
  judge: (body) => {
    for (const { key, value } of jsonMembers(body))
      if (/repository/i.test(key) && isSet(value))
        return [unscopable("The rules name a repository by its id")];
    return [];
  },
};

const privateFork: BodyJudge = {
  members: ["start_private_fork"],
  judge: (body) =>
    isSet(body["start_private_fork"]) && body["start_private_fork"] !== false
      ? [unscopable("`start_private_fork` makes a new, private repository")]
      : [],
};

/** By operation, with its method and path as {@link BodyRule} writes them. */
const OPERATIONS: Readonly<Record<string, BodyJudge & { readonly at: string }>> = {
  "issues/update": { ...duplicateOf, at: "PATCH /issues/{}" },
  "pulls/create": { ...pullRequestHead, at: "POST /pulls" },
  "repos/create-repo-ruleset": { ...requiredWorkflows, at: "POST /rulesets" },
  "repos/update-repo-ruleset": { ...requiredWorkflows, at: "PUT /rulesets/{}" },
  "security-advisories/create-private-vulnerability-report": {
    ...privateFork,
    at: "POST /security-advisories/reports",
  },
  "security-advisories/create-repository-advisory": {
    ...privateFork,
    at: "POST /security-advisories",
  },
};

export const JUDGED_BY_BODY: ReadonlySet<string> = new Set(Object.keys(OPERATIONS));

export function bodyRules(maxBytes: number): readonly BodyRule[] {
  const places = Object.values(OPERATIONS).map(({ at }) => at.split(" "));
  return [...new Set(places.map(([method = ""]) => method))].map((method) => ({
    hosts: [],
    methods: [method],
    paths: places
      .filter(([other]) => other === method)
      .flatMap(([, path = ""]) => [`/repos/{}/{}${path}`, `/api/v3/repos/{}/{}${path}`]),
    maxBytes,
  }));
}

/** Returns undefined for an operation that its path determines alone. */
export function bodyResources(
  operation: string,
  request: ServiceRequest,
  repository: Repository,
): readonly ServiceResource[] | undefined {
  if (!JUDGED_BY_BODY.has(operation)) return undefined;
  const { members, judge } = OPERATIONS[operation] as BodyJudge;
  const body = readBody(request);
  if (body === undefined)
    return [unscopable("The body may name another repository, and is not plain JSON")];
  const form = isDeclaredJson(request) ? "" : (request.body?.toString("latin1") ?? "");
  const elsewhere = [...names(request.query), ...names(form)];
  if (elsewhere.some((name) => members.includes(name)))
    return [
      unscopable(`${members.join(" and ")} must stand in the body, as JSON, and nowhere else`),
    ];
  return judge(body, repository);
}

function readBody({ body, headers }: ServiceRequest): JsonObject | undefined {
  if (body === undefined || headers.has("content-encoding")) return undefined;
  const parsed = parseStrictJson(body);
  return parsed.kind === "parsed" && isJsonObject(parsed.value) ? parsed.value : undefined;
}

/** `curl -d` declares a form, whatever the content is. */
function isDeclaredJson({ headers }: ServiceRequest): boolean {
  return /^\s*application\/(?:[\w.+-]+\+)?json\b/i.test(headers.get("content-type") ?? "");
}

/** Returns the names of parameters that a lenient parser may find. */
function names(text: string): readonly string[] {
  return [...new URLSearchParams(text.replaceAll(";", "&")).keys()].map((name) =>
    name.replace(/\[.*$/s, "").trim().toLowerCase(),
  );
}
