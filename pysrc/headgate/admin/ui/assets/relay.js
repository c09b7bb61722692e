// Sends requests to the gateway's own ports through the admin server; a page of another origin cannot send them itself.

/** Yield the lines of text in a stream of bytes. */
export async function* linesOf(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n");
      rest = parts.pop();
      yield* parts;
    }
    if (rest) yield rest;
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function reason(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || `status ${answer.status}`;
  }
}

/** Send a request ({bind, host, method, path, headers, body}); return {status, header(name), headers, pieces(), text()}. */
export async function send(order, signal) {
  const answer = await fetch("/ui/api/relay", {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(order), signal,
  });
  if (!answer.ok) throw new Error(await reason(answer));
  const lines = linesOf(answer.body);
  let head = null;
  while (!head) {
    const { value, done } = await lines.next();
    if (done) throw new Error("the gateway ended the answer before its head");
    if (!value) continue;
    const message = JSON.parse(value);
    if (message.error) throw new Error(message.error);
    head = message;
  }
  async function* pieces() {
    for await (const line of lines) {
      if (!line) continue;
      const message = JSON.parse(line);
      if (message.data) yield message.data;
      if (message.error) throw new Error(message.error);
      if (message.end) return;
    }
    throw new Error("the answer broke off");
  }
  return {
    status: head.status,
    header: (name) => head.headers.find(([key]) => key.toLowerCase() === name)?.[1] ?? null,
    headers: head.headers,
    pieces,
    async text() {
      let found = "";
      for await (const piece of pieces()) found += piece;
      return found;
    },
  };
}

/** Yield the data of server-sent events from chunks of text. */
export async function* events(pieces) {
  let rest = "";
  let data = [];
  for await (const piece of pieces) {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      if (line === "" && data.length) {
        yield data.join("\n");
        data = [];
      }
    }
  }
  if (data.length) yield data.join("\n");
}

/** Return the request for a target of the state, with a credential if one is given. */
export function orderFor(target, credential, more) {
  const headers = { ...(more.headers ?? {}) };
  if (credential) headers.authorization = credential.includes(" ") ? credential : `Bearer ${credential}`;
  return { bind: target.bind, host: target.host, path: target.path, ...more, headers };
}
