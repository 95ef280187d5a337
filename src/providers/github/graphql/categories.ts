/**
 * Determines the action category of a GraphQL type or mutation: the same categories as REST's, so
 * that one policy covers both. Determined by name, by the first line that matches.
 */
import { typeNames } from "./schema.ts";

/** Types that describe a repository, as REST's `metadata` does. */
const METADATA =
  /^(?:Repository|RepositoryInfo|RepositoryTopic|Topic|Language|License|LicenseRule)$/;

const OF_TYPES: readonly (readonly [RegExp, string])[] = [
  // Wrappers without a meaning of their own.
  [/^(PageInfo|Node|UniformResourceLocatable|GitActor|Query|SearchResultItem|TextMatch)/, ""],
  [/^(Project|SortBy)/, "projects"],
  [
    /AuditEntry|^(AnnouncementBanner|Organization|IpAllowList|VerifiableDomain|MemberStatusable|ExternalIdentity)/,
    "orgs",
  ],
  [/^(Enterprise|OIDCProvider|MembersCan)/, "enterprise-admin"],
  [/^Team/, "teams"],
  [/^(Sponsor|StripeConnect)/, "sponsors"],
  [/^Package/, "packages"],
  [/^Gist/, "gists"],
  [/Migration/, "migrations"],
  [/Contribution/, "users"],
  [
    /^(User(?!ContentEdit)|Actor|Bot|Mannequin|App$|RepositoryOwner|ProfileOwner|ProfileItem|Follow|Starred|Stargazer|ReactingUser|Reactor|Assignee|Assignable|AssigneeConnection|SavedReply|SocialAccount|PublicKey|Claimable|PermissionSource|RepositoryCollaborator|RepositoryDiscussion(Comment)?Author$)/,
    "users",
  ],
  [/^(Marketplace)/, "marketplace"],
  [/^(Discussion|PinnedDiscussion)/, "discussions"],
  [/^(PullRequest|Review|RequestedReviewer|Suggested|AutoMerge|Merge)/, "pulls"],
  [/^DeployKey/, "deploy-keys"],
  [/^(Deployment|Environment|PinnedEnvironment)/, "deployments"],
  [/^Release/, "releases"],
  [/^(Check|Status|RequiredStatusCheck)/, "checks"],
  [/^Workflow/, "actions"],
  [/^(RepositoryVulnerabilityAlert|Dependabot)/, "dependabot"],
  [/^DependencyGraph/, "dependency-graph"],
  [/^(SecurityAdvisory|SecurityVulnerability|CVSS|Cvss|CWE|EPSS)/, "security-advisories"],
  [
    /^(BranchProtection|PushAllowance|BypassForcePush|BypassPullRequest|ReviewDismissalAllowance|RefUpdateRule)/,
    "branches",
  ],
  [/Event$/, "issues"],
  [
    /^(Issue|SubIssue|Label|Milestone|LinkedBranch|PinnedIssue|Comment|Closable|Closer|Lockable|Reacti|Reactable|Subscribable|Minimizable|Updatable|Deletable|Votable|UserContentEdit|Hovercard|Referenced|RenamedTitle|Assigned)/,
    "issues",
  ],
  [
    /^(Ref|Commit|Blob|Blame|Tree|Tag|GitObject|Comparison|Submodule|GitSignature|GpgSignature|SmimeSignature|SshSignature|UnknownSignature|Push)/,
    "contents",
  ],
];

const OF_MUTATIONS: readonly (readonly [RegExp, string])[] = [
  [/^(createCommitOnBranch|createRef|updateRefs?|deleteRef|mergeBranch)$/, "contents"],
  [/Enterprise/, "enterprise-admin"],
  [/Sponsor|Patreon/, "sponsors"],
  [/Migrat/, "migrations"],
  [/Project/, "projects"],
  [/Team/, "teams"],
  [/Discussion/, "discussions"],
  [/PullRequest|Review|FileAsViewed/, "pulls"],
  [/Check(Run|Suite)/, "checks"],
  [/Deployment|Environment/, "deployments"],
  [/BranchProtection/, "branches"],
  [/VulnerabilityAlert/, "dependabot"],
  [/Package/, "packages"],
  [/InteractionLimit/, "interactions"],
  [/[fF]ollow|UserList|UserStatus|UserNamespace|Star$|AttributionInvitation/, "users"],
  [/IpAllowList|Organization|VerifiableDomain|NotificationRestriction/, "orgs"],
  [/Repository|Topic|OutsideCollaborator/, "repos"],
  [
    /Issue|Label|Milestone|Comment|Reaction|Assignable|Lockable|Upvote|LinkedBranch|Subscription$/,
    "issues",
  ],
];

/** Additional effects of a mutation, as with REST. */
const EFFECTS: readonly (readonly [RegExp, string])[] = [
  [
    /^(mergePullRequest|enablePullRequestAutoMerge|enqueuePullRequest|updatePullRequestBranch|revertPullRequest|createLinkedBranch|deleteLinkedBranch|createDeployment)$/,
    "contents",
  ],
  [/^(approveDeployments|rejectDeployments)$/, "actions"],
];

/** Returns `""` if the type has no meaning of its own. */
export function categoryOfType(type: string): string {
  return BY_TYPE.get(type) ?? decideCategory(type);
}

function decideCategory(type: string): string {
  const bare = type.replace(/(Connection|Edge|Payload)$/, "");
  if (METADATA.test(bare)) return "metadata";
  return OF_TYPES.find(([pattern]) => pattern.test(bare))?.[1] ?? "repos";
}

/** Determined once for each type. */
const BY_TYPE: ReadonlyMap<string, string> = new Map(
  typeNames().map((type) => [type, decideCategory(type)]),
);

/** Returns at least one category, or undefined for an unknown mutation. */
export function categoriesOfMutation(name: string): readonly string[] | undefined {
  const category = OF_MUTATIONS.find(([pattern]) => pattern.test(name))?.[1];
  if (category === undefined) return undefined;
  return [
    category,
    ...EFFECTS.filter(([pattern]) => pattern.test(name)).map(([, effect]) => effect),
  ];
}
