// One line of JSON on standard output for each try of a client.

/** `failure` reads an SDK's error: its status, code and message. */
export function attempts(failure) {
  return async (name, call) => {
    try {
      console.log(JSON.stringify({ name, value: await call() }));
    } catch (error) {
      console.log(JSON.stringify({ name, ...failure(error) }));
    }
  };
}
