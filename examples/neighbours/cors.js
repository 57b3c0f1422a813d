// What a page on another origin does with the API of cors.go, at url.
async function place(order) {
  const key = crypto.randomUUID();
  let answer = null;
  for (let tries = 0; tries < 10; tries++) {
    answer = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": key },
      body: JSON.stringify(order),
    }).catch(() => null); // the network failed: the order may have been placed
    if (answer && answer.status < 500 && !answer.headers.has("Retry-After")) return answer;
    const seconds = Number(answer?.headers.get("Retry-After")) || 1;
    if (seconds > 60) return answer; // such as a quota of the month: tell the user
    await new Promise((done) => setTimeout(done, 1000 * seconds + 500 * Math.random()));
  }
  return answer; // null: nothing was ever readable, so tell the user that it is not known
}
