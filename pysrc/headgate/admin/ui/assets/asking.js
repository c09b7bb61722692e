// JSON requests to the gateway's own endpoints.

/** Send a request; return {status, found}, found being the JSON of the response. Throws if no response arrives. */
export function ask(path, body, headers) {
  return send(body === undefined ? "GET" : "POST", path, body, headers);
}

/** Send a request with a method of its own, and with a body unless that is undefined; as ask() otherwise. */
export async function send(method, path, body, headers = {}) {
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const answer = await fetch(path, { cache: "no-store", method, body: JSON.stringify(body), headers: { ...type, ...headers } });
  return { status: answer.status, found: await answer.json() };
}

/** Send a request and return the JSON of the response. Throws an Error with the reason if the request is refused. */
export async function need(path, body) {
  const { status, found } = await ask(path, body);
  if (status !== 200) throw new Error(typeof found === "string" ? found : `status ${status}`);
  return found;
}

/** Yield the server-sent events of a response as {event, data}. */
export async function* events(path, body, signal) {
  const answer = await fetch(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" }, signal });
  if (!answer.ok) throw new Error(await answer.json());
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const fields = new Map(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      if (fields.has("data")) yield { event: fields.get("event"), data: JSON.parse(fields.get("data")) };
    }
  }
}
