// Lists pull requests and merges one, with Octokit; one line of JSON for each answer.
import { Octokit } from "@octokit/rest";

const { rest } = new Octokit({
  auth: "agents-own",
  log: { debug() {}, info() {}, warn() {}, error() {} },
});
const [owner, repo] = process.argv[2].split("/");
const calls = [
  () => rest.pulls.list({ owner, repo, state: "open" }),
  () => rest.pulls.merge({ owner, repo, pull_number: 1 }),
  () => rest.users.getAuthenticated(),
];
for (const call of calls) {
  try {
    const { status, data } = await call();
    console.log(JSON.stringify({ status, data }));
  } catch (error) {
    console.log(JSON.stringify({ status: error.status, message: error.message }));
  }
}
