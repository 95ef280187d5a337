// What the conformance suite runs as a client: passes the scenario on to the test, which runs the
// client where it wants. Arguments: the test's URL, and that of the suite's server.
const [test, url] = process.argv.slice(2);
const {
  MCP_CONFORMANCE_SCENARIO: scenario,
  MCP_CONFORMANCE_PROTOCOL_VERSION: revision = "",
  MCP_CONFORMANCE_CONTEXT: context = "",
} = process.env;
const answer = await fetch(test, {
  method: "POST",
  body: JSON.stringify({ scenario, revision, context, url }),
});
process.stderr.write(await answer.text());
process.exitCode = answer.status === 200 ? 0 : 1;
