/**
 * The reach of each REST operation on a repository. Every operation whose path names a repository
 * is in exactly one of these tables, after a review of its parameters, body and response in
 * GitHub's OpenAPI description. An unlisted operation (which GitHub added later) is out of every
 * scope, and rest-reach.test.ts fails until it is classified.
 *
 * Two things do not count as reach: text that mentions another repository, and objects that a
 * network of forks shares, which every repository of the network returns by their hash.
 */

/**
 * Operations whose effect and response stay within the repository, by the first part of their id.
 */
const WITHIN_BY_CATEGORY: Readonly<Record<string, string>> = {
  actions: `
    list-artifacts-for-repo get-artifact delete-artifact download-artifact
    get-actions-cache-retention-limit-for-repository
    set-actions-cache-retention-limit-for-repository
    get-actions-cache-storage-limit-for-repository
    set-actions-cache-storage-limit-for-repository get-actions-cache-usage
    get-actions-cache-list delete-actions-cache-by-key delete-actions-cache-by-id
    list-concurrency-groups-for-repository get-concurrency-group-for-repository
    get-job-for-workflow-run download-job-logs-for-workflow-run re-run-job-for-workflow-run
    get-custom-oidc-sub-claim-for-repo set-custom-oidc-sub-claim-for-repo
    list-repo-organization-secrets list-repo-organization-variables
    get-github-actions-permissions-repository set-github-actions-permissions-repository
    get-workflow-access-to-repository set-workflow-access-to-repository
    get-artifact-and-log-retention-settings-repository
    set-artifact-and-log-retention-settings-repository
    get-fork-pr-contributor-approval-permissions-repository
    set-fork-pr-contributor-approval-permissions-repository
    get-private-repo-fork-pr-workflows-settings-repository
    set-private-repo-fork-pr-workflows-settings-repository get-allowed-actions-repository
    set-allowed-actions-repository get-github-actions-default-workflow-permissions-repository
    set-github-actions-default-workflow-permissions-repository
    list-self-hosted-runners-for-repo list-runner-applications-for-repo
    get-self-hosted-runner-for-repo delete-self-hosted-runner-from-repo
    list-labels-for-self-hosted-runner-for-repo
    add-custom-labels-to-self-hosted-runner-for-repo
    set-custom-labels-for-self-hosted-runner-for-repo
    remove-all-custom-labels-from-self-hosted-runner-for-repo
    remove-custom-label-from-self-hosted-runner-for-repo delete-workflow-run
    get-reviews-for-run approve-workflow-run list-workflow-run-artifacts
    list-jobs-for-workflow-run-attempt download-workflow-run-attempt-logs cancel-workflow-run
    list-concurrency-groups-for-workflow-run review-custom-gates-for-run
    force-cancel-workflow-run list-jobs-for-workflow-run download-workflow-run-logs
    delete-workflow-run-logs get-pending-deployments-for-run
    review-pending-deployments-for-run re-run-workflow re-run-workflow-failed-jobs
    get-workflow-run-usage list-repo-secrets get-repo-public-key get-repo-secret
    create-or-update-repo-secret delete-repo-secret list-repo-variables create-repo-variable
    get-repo-variable update-repo-variable delete-repo-variable list-repo-workflows
    get-workflow disable-workflow create-workflow-dispatch enable-workflow get-workflow-usage
    list-environment-secrets get-environment-public-key get-environment-secret
    create-or-update-environment-secret delete-environment-secret list-environment-variables
    create-environment-variable get-environment-variable update-environment-variable
    delete-environment-variable`,
  activity: `
    list-repo-notifications-for-authenticated-user mark-repo-notifications-as-read
    list-stargazers-for-repo get-stargazer-count-for-repo list-watchers-for-repo
    get-repo-subscription set-repo-subscription delete-repo-subscription
    check-repo-is-starred-by-authenticated-user star-repo-for-authenticated-user
    unstar-repo-for-authenticated-user`,
  "agent-tasks": `
    list-tasks-for-repo create-task-in-repo get-task-by-repo-and-id`,
  agents: `
    list-repo-organization-secrets list-repo-organization-variables list-repo-secrets
    get-repo-public-key get-repo-secret create-or-update-repo-secret delete-repo-secret
    list-repo-variables create-repo-variable get-repo-variable update-repo-variable
    delete-repo-variable`,
  apps: `
    get-repo-installation`,
  checks: `
    create get update list-annotations rerequest-run create-suite set-suites-preferences
    get-suite list-for-suite rerequest-suite list-for-ref list-suites-for-ref`,
  "code-quality": `
    list-findings-for-repo get-finding get-setup update-setup`,
  "code-scanning": `
    list-alerts-for-repo get-autofix create-autofix commit-autofix list-alert-instances
    list-recent-analyses get-analysis delete-analysis list-codeql-databases
    get-codeql-database delete-codeql-database get-default-setup update-default-setup
    upload-sarif get-sarif`,
  "code-security": `
    get-configuration-for-repository`,
  codespaces: `
    list-in-repository-for-authenticated-user
    list-devcontainers-in-repository-for-authenticated-user
    repo-machines-for-authenticated-user pre-flight-with-repo-for-authenticated-user
    check-permissions-for-devcontainer list-repo-secrets get-repo-public-key get-repo-secret
    create-or-update-repo-secret delete-repo-secret`,
  copilot: `
    get-copilot-cloud-agent-configuration`,
  dependabot: `
    list-alerts-for-repo get-alert update-alert list-repo-secrets get-repo-public-key
    get-repo-secret create-or-update-repo-secret delete-repo-secret`,
  "dependency-graph": `
    diff-range export-sbom fetch-sbom-report generate-sbom-report create-repository-snapshot`,
  git: `
    create-blob get-blob create-commit get-commit list-matching-refs get-ref create-ref
    update-ref delete-ref create-tag get-tag create-tree get-tree`,
  interactions: `
    get-restrictions-for-repo set-restrictions-for-repo remove-restrictions-for-repo
    get-pull-request-bypass-list-for-repo set-pull-request-bypass-list-for-repo
    remove-pull-request-bypass-list-for-repo get-pull-request-creation-cap-for-repo
    update-pull-request-creation-cap-for-repo`,
  issues: `
    list-assignees check-user-can-be-assigned list-for-repo create list-comments-for-repo
    get-comment update-comment delete-comment pin-comment unpin-comment get add-assignees
    remove-assignees check-user-can-be-assigned-to-issue list-comments create-comment
    list-issue-field-values-for-issue add-issue-field-values set-issue-field-values
    delete-issue-field-value list-labels-on-issue add-labels set-labels remove-all-labels
    remove-label lock unlock list-suggestions approve-suggestion dismiss-suggestion
    list-labels-for-repo create-label get-label update-label delete-label list-milestones
    create-milestone get-milestone update-milestone delete-milestone list-labels-for-milestone`,
  licenses: `
    get-for-repo`,
  migrations: `
    get-import-status cancel-import get-commit-authors map-commit-author get-large-files
    set-lfs-preference`,
  "pull-request-stacks": `
    list create get add unstack`,
  pulls: `
    list-review-comments-for-repo get-review-comment update-review-comment
    delete-review-comment list-review-comments create-review-comment
    create-reply-for-review-comment list-commits list-files check-if-merged merge merge-async
    get-merge-async-result list-requested-reviewers list-reviews create-review get-review
    update-review delete-pending-review list-comments-for-review dismiss-review submit-review`,
  reactions: `
    list-for-commit-comment create-for-commit-comment delete-for-commit-comment
    list-for-issue-comment create-for-issue-comment delete-for-issue-comment list-for-issue
    create-for-issue delete-for-issue list-for-pull-request-review-comment
    create-for-pull-request-review-comment delete-for-pull-request-comment list-for-release
    create-for-release delete-for-release`,
  repos: `
    delete list-activities create-attestation list-attestations list-autolinks create-autolink
    get-autolink delete-autolink check-automated-security-fixes
    enable-automated-security-fixes disable-automated-security-fixes list-branches get-branch
    get-branch-protection update-branch-protection delete-branch-protection
    get-admin-branch-protection set-admin-branch-protection delete-admin-branch-protection
    get-pull-request-review-protection update-pull-request-review-protection
    delete-pull-request-review-protection get-commit-signature-protection
    create-commit-signature-protection delete-commit-signature-protection
    get-status-checks-protection update-status-check-protection remove-status-check-protection
    get-all-status-check-contexts add-status-check-contexts set-status-check-contexts
    remove-status-check-contexts get-access-restrictions delete-access-restrictions
    get-apps-with-access-to-protected-branch add-app-access-restrictions
    set-app-access-restrictions remove-app-access-restrictions
    get-teams-with-access-to-protected-branch add-team-access-restrictions
    set-team-access-restrictions remove-team-access-restrictions
    get-users-with-access-to-protected-branch add-user-access-restrictions
    set-user-access-restrictions remove-user-access-restrictions rename-branch
    codeowners-errors list-collaborators check-collaborator add-collaborator
    remove-collaborator get-collaborator-permission-level list-commit-comments-for-repo
    get-commit-comment update-commit-comment delete-commit-comment list-commits
    list-branches-for-head-commit list-comments-for-commit create-commit-comment get-commit
    get-combined-status-for-ref list-commit-statuses-for-ref get-community-profile-metrics
    compare-commits-with-basehead get-content create-or-update-file-contents delete-file
    list-contributors list-deployments create-deployment get-deployment delete-deployment
    list-deployment-statuses create-deployment-status get-deployment-status
    create-dispatch-event get-all-environments get-environment create-or-update-environment
    delete-an-environment list-deployment-branch-policies create-deployment-branch-policy
    get-deployment-branch-policy update-deployment-branch-policy
    delete-deployment-branch-policy get-all-deployment-protection-rules
    create-deployment-protection-rule list-custom-deployment-rule-integrations
    get-custom-deployment-protection-rule disable-deployment-protection-rule
    get-hash-algorithm list-webhooks create-webhook get-webhook update-webhook delete-webhook
    get-webhook-config-for-repo update-webhook-config-for-repo list-webhook-deliveries
    get-webhook-delivery redeliver-webhook-delivery ping-webhook test-push-webhook
    check-immutable-releases enable-immutable-releases disable-immutable-releases
    list-invitations update-invitation delete-invitation list-issue-types list-deploy-keys
    create-deploy-key get-deploy-key delete-deploy-key list-languages merge get-pages
    create-pages-site update-information-about-pages-site delete-pages-site list-pages-builds
    request-pages-build get-latest-pages-build get-pages-build create-pages-deployment
    get-pages-deployment cancel-pages-deployment get-pages-health-check
    check-private-vulnerability-reporting enable-private-vulnerability-reporting
    disable-private-vulnerability-reporting custom-properties-for-repos-get-repository-values
    custom-properties-for-repos-create-or-update-repository-values get-readme
    get-readme-in-directory list-releases create-release get-release-asset
    update-release-asset delete-release-asset generate-release-notes get-latest-release
    get-release-by-tag get-release update-release delete-release list-release-assets
    upload-release-asset get-branch-rules get-repo-rule-suites
    get-repo-rule-suite delete-repo-ruleset get-repo-ruleset-history
    get-repo-ruleset-version get-code-frequency-stats get-commit-activity-stats
    get-contributors-stats get-participation-stats get-punch-card-stats create-commit-status
    list-tags download-tarball-archive list-teams get-all-topics replace-all-topics get-clones
    get-top-paths get-top-referrers get-views check-vulnerability-alerts
    enable-vulnerability-alerts disable-vulnerability-alerts download-zipball-archive`,
  "secret-scanning": `
    list-alerts-for-repo get-alert update-alert list-locations-for-alert
    list-repo-custom-patterns bulk-create-repo-custom-patterns
    bulk-delete-repo-custom-patterns update-repo-custom-pattern create-push-protection-bypass
    get-scan-history`,
  "security-advisories": `
    create-repository-advisory-cve-request`,
};

function ids(byCategory: Readonly<Record<string, string>>): ReadonlySet<string> {
  return new Set(
    Object.entries(byCategory).flatMap(([category, names]) =>
      names
        .split(/\s+/)
        .filter(Boolean)
        .map((name) => `${category}/${name}`),
    ),
  );
}

export const WITHIN = ids(WITHIN_BY_CATEGORY);

/**
 * Operations whose response also describes linked repositories by design (the repository that was
 * forked, the fork of a pull request or a workflow run, the organization's rules for this
 * repository): their name, owner, description and settings, and never their content. Without them
 * no repository and no pull request could be read within a scope.
 */
export const DESCRIBES_LINKED = ids({
  actions: `
    list-workflow-runs-for-repo get-workflow-run get-workflow-run-attempt list-workflow-runs`,
  "code-scanning": "get-alert update-alert",
  pulls: "list get update request-reviewers remove-requested-reviewers",
  repos: "get get-repo-ruleset get-repo-rulesets",
  "security-advisories": `
    list-repository-advisories get-repository-advisory update-repository-advisory`,
});

const EVENTS = "Events tell of commits, issues and projects of other repositories";
const SUB_ISSUES = "A sub-issue or its parent may be of any repository";
const DEPENDENCIES = "An issue that blocks, or is blocked, may be of any repository";
const VARIANT_ANALYSES = "A variant analysis is about the repositories that its body names";
const IMPORTS = "The body names a repository to import, wherever it is";
const CODESPACES = "A codespace is a machine of the user, with access to further repositories";

/** Operations that return, move or change something of another repository, with the reason. */
export const REACHES_FURTHER: Readonly<Record<string, string>> = {
  "activity/list-public-events-for-repo-network":
    "The answer is about every repository of the network",
  "activity/list-repo-events": EVENTS,
  "code-scanning/create-variant-analysis": VARIANT_ANALYSES,
  "code-scanning/get-variant-analysis": VARIANT_ANALYSES,
  "code-scanning/get-variant-analysis-repo-task": VARIANT_ANALYSES,
  "codespaces/create-with-pr-for-authenticated-user": CODESPACES,
  "codespaces/create-with-repo-for-authenticated-user": CODESPACES,
  "issues/add-blocked-by-dependency": DEPENDENCIES,
  "issues/add-sub-issue": SUB_ISSUES,
  "issues/get-event": EVENTS,
  "issues/get-parent": SUB_ISSUES,
  "issues/list-dependencies-blocked-by": DEPENDENCIES,
  "issues/list-dependencies-blocking": DEPENDENCIES,
  "issues/list-events": EVENTS,
  "issues/list-events-for-repo": EVENTS,
  "issues/list-events-for-timeline": EVENTS,
  "issues/list-sub-issues": SUB_ISSUES,
  "issues/remove-dependency-blocked-by": DEPENDENCIES,
  "issues/remove-sub-issue": SUB_ISSUES,
  "issues/reprioritize-sub-issue": SUB_ISSUES,
  "migrations/start-import": IMPORTS,
  "migrations/update-import": IMPORTS,
  "pulls/update-branch":
    "The branch may be of a fork, which this changes; for a branch of the repository " +
    "itself use POST /repos/{owner}/{repo}/merges",
  "repos/create-fork": "A fork is a new repository in an account that the body names",
  "repos/create-using-template": "This makes a new repository in an account that the body names",
  "repos/list-forks": "Forks are other repositories",
  "repos/list-pull-requests-associated-with-commit":
    "The pull requests of a commit may be of any repository of the network",
  "repos/merge-upstream": "This takes over commits of the repository that the fork came from",
  "repos/transfer": "A transfer moves the repository to an account that the body names",
  "repos/update": "The body may rename the repository out of the scope",
  "security-advisories/create-fork": "This makes a new, private repository",
};
