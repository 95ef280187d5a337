/**
 * Tests that the review of GitHub's GraphQL schema is complete: each field that leads from an
 * object of a repository to another object was reviewed, so that none leads out of the repository
 * unnoticed. A new version of the schema with a new field of that kind fails here.
 */
import { readFileSync } from "node:fs";
import { buildSchema, isInterfaceType, isObjectType } from "graphql";
import { expect, test } from "vitest";
import { categoryOfType } from "./categories.ts";
import { fieldNames, fieldOf, typeNames } from "./schema.ts";
import { LINKS, OUTSIDE_CATEGORIES } from "./walk.ts";

/** Fields that lead to another object, which is always in the same repository. */
const SAME_REPOSITORY = new Set(
  `
  AutoMergeRequest.pullRequest Blame.ranges BlameRange.commit BranchProtectionRule.matchingRefs
  BranchProtectionRuleConflict.branchProtectionRule
  BranchProtectionRuleConflict.conflictingBranchProtectionRule BranchProtectionRuleConflict.ref
  BypassForcePushAllowance.branchProtectionRule BypassPullRequestAllowance.branchProtectionRule
  CheckRun.checkSuite CheckRun.deployment CheckSuite.branch CheckSuite.checkRuns
  CheckSuite.commit CheckSuite.push CheckSuite.workflowRun Commit.blame Commit.checkSuites
  Commit.comments Commit.deployments Commit.file Commit.parents Commit.submodules Commit.tree
  CommitComment.commit CommitCommentThread.comments CommitCommentThread.commit
  Comparison.baseTarget Comparison.headTarget DependabotUpdate.pullRequest Deployment.commit
  Deployment.latestStatus Deployment.ref Deployment.statuses DeploymentRequest.environment
  DeploymentReview.environments DeploymentStatus.deployment Discussion.answer
  Discussion.comments Discussion.labels DiscussionComment.discussion DiscussionComment.replies
  DiscussionComment.replyTo DiscussionPoll.discussion Environment.latestCompletedDeployment
  Issue.comments Issue.labels Issue.milestone Issue.subIssuesSummary Issue.timeline
  Issue.timelineItems IssueComment.issue IssueComment.pullRequest IssueTemplate.labels
  Label.issues Label.pullRequests Labelable.labels MergeQueueEntry.baseCommit
  MergeQueueEntry.headCommit MergeQueueEntry.mergeQueue MergeQueueEntry.pullRequest
  Milestone.issues Milestone.pullRequests PinnedDiscussion.discussion
  PinnedEnvironment.environment PinnedIssue.issue PullRequest.baseRef
  PullRequest.comments PullRequest.labels PullRequest.latestOpinionatedReviews
  PullRequest.latestReviews PullRequest.mergeCommit PullRequest.mergeQueue PullRequest.milestone
  PullRequest.potentialMergeCommit PullRequest.reviews PullRequest.timeline
  PullRequest.timelineItems PullRequest.viewerLatestReview PullRequestCommit.commit
  PullRequestCommit.pullRequest PullRequestCommitCommentThread.comments
  PullRequestCommitCommentThread.commit PullRequestCommitCommentThread.pullRequest
  PullRequestReview.comments PullRequestReview.commit PullRequestReview.pullRequest
  PullRequestReviewComment.commit PullRequestReviewComment.originalCommit
  PullRequestReviewComment.pullRequest PullRequestReviewComment.pullRequestReview
  PullRequestReviewComment.replyTo PullRequestReviewThread.comments
  PullRequestReviewThread.pullRequest PullRequestRevisionMarker.lastSeenCommit
  PullRequestRevisionMarker.pullRequest PullRequestThread.comments PullRequestThread.pullRequest
  PushAllowance.branchProtectionRule Reaction.reactable ReactionGroup.subject
  Ref.branchProtectionRule Ref.target Release.tag Release.tagCommit ReleaseAsset.release
  RepositoryRule.repositoryRuleset RepositoryRulesetBypassActor.repositoryRuleset
  ReviewDismissalAllowance.branchProtectionRule ReviewRequest.pullRequest Status.commit
  StatusCheckRollup.commit StatusContext.commit Tag.target Tree.entries TreeEntry.object
  TreeEntry.submodule Workflow.runs WorkflowRun.checkSuite WorkflowRun.workflow
  WorkflowRunFile.run
`
    .split(/\s+/)
    .filter(Boolean),
);

/** Objects that may be in another repository than the object that leads to them. */
const THINGS =
  /^(?:Issue|PullRequest|Discussion|DiscussionComment|IssueComment|Commit|Ref|Comparison|IssueOrPullRequest|ReferencedSubject|Closer|Closable|GitObject|CheckSuite|CheckRun|Deployment|DeploymentStatus|Release|Workflow|WorkflowRun|Tree|Blob|Tag|Milestone|Label|MergeQueue|Environment|RepositoryVulnerabilityAlert|Push|PullRequestReview|PullRequestReviewComment|CommitComment|Labelable|Subscribable|Lockable|MilestoneItem|RenamedTitleSubject|Reactable|SearchResultItem|Node|.*TimelineItems?|.*Timeline|SubIssue.*|Submodule|TreeEntry|Blame.*|RepositoryRuleset|RuleSource|BranchProtectionRule|PinnableItem)(?:Connection|Edge)?$/;

const isInside = (type: string): boolean =>
  !/^(?:Query|Mutation|Repository)$|(?:Payload|Connection|Edge|Event)$/.test(type) &&
  !OUTSIDE_CATEGORIES.has(categoryOfType(type));

test("every field that leads to a thing of a repository was looked at", () => {
  const fields = typeNames()
    .filter(isInside)
    .flatMap((type) =>
      fieldNames(type).flatMap((name) => {
        const target = fieldOf(type, name);
        return target.kind === "object" && THINGS.test(target.type) ? [`${type}.${name}`] : [];
      }),
    );
  expect(fields.length).toBeGreaterThan(120);
  expect(fields.filter((field) => !SAME_REPOSITORY.has(field) && !LINKS.has(field))).toEqual([]);
  const known = new Set(fields);
  expect([...SAME_REPOSITORY].filter((field) => !known.has(field))).toEqual([]);
});

test("whatever people, teams and organisations are is outside, by every interface of theirs", () => {
  const schema = buildSchema(
    readFileSync("node_modules/@octokit/graphql-schema/schema.graphql", "utf8"),
    { assumeValidSDL: true },
  );
  const interfaces = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter(({ name }) => /^(?:User|Organization|Team|Bot|Mannequin|Enterprise)$/.test(name))
    .flatMap((type) => type.getInterfaces())
    .filter((type) => isInterfaceType(type));
  const inside = new Set(
    interfaces
      .map(({ name }) => name)
      .filter((name) => !OUTSIDE_CATEGORIES.has(categoryOfType(name))),
  );
  // The first two have an id and an address, the third whether one watches it.
  expect([...inside].sort()).toEqual(["Node", "Subscribable", "UniformResourceLocatable"]);
  expect(fieldNames("Node")).toEqual(["id"]);
});
