// Asks each address of its arguments with Node's fetch; one line of JSON for each answer.
for (const url of process.argv.slice(2)) {
  try {
    const answer = await fetch(url, { headers: { authorization: "token agents-own" } });
    console.log(
      JSON.stringify({ status: answer.status, protocol: "HTTP/1.1", body: await answer.text() }),
    );
  } catch (error) {
    console.log(JSON.stringify({ error: `${error.message}: ${error.cause?.message}` }));
  }
}
