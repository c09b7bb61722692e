// One conversation with one model: its turns, what streams in, tool calls, and the request as it is sent.

import { h, setText } from "./dom.js";
import { count, seconds } from "./format.js";
import { markdown } from "./markdown.js";
import { events, orderFor, send } from "./relay.js";

function refused(status, text) {
  try {
    const error = JSON.parse(text).error;
    return `${status}: ${error?.message ?? JSON.stringify(error) ?? text}`;
  } catch {
    return `${status}: ${text.slice(0, 500)}`;
  }
}

/** Return a word for a shell, quoted. */
function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Return a command of curl that sends the same request; a credential is left to the environment. */
export function asCurl(target, order) {
  const headers = Object.entries(order.headers).map(([name, value]) => (name === "authorization" ? `-H "authorization: ${value.startsWith("Bearer ") ? "Bearer " : ""}$TOKEN"` : `-H ${quoted(`${name}: ${value}`)}`));
  const host = target.host === "localhost" ? [] : [`-H ${quoted(`host: ${target.host}`)}`];
  const scheme = target.tls ? "https" : "http";
  return [`curl ${target.tls ? "-k " : ""}-N ${quoted(`${scheme}://127.0.0.1:${target.port}${target.path}`)}`, ...host, ...headers, `-d ${quoted(order.body)}`].join(" \\\n  ");
}

/**
 * A conversation. settings(): {target, model, credential, system, body(messages)}. `changed` is called when an answer begins
 * and ends.
 */
export function conversation(settings, changed) {
  let turns = [];
  let abort = null;
  const title = h("h3", { class: "muted wrap" });
  const chat = h("div", { class: "chat", role: "log", "aria-label": "Conversation", tabindex: "0" },
    h("p", { class: "empty" }, "The conversation appears here. It goes through the gateway as any client's: policies, limits and guards hold."));
  const figures = h("p", { class: "small muted", role: "status" });
  const element = h("div", { class: "stack" }, title, chat, figures);

  function bubble(who, text, ...more) {
    const content = h("div", { class: "said" }, text);
    chat.querySelector(".empty")?.remove();
    chat.append(h("article", { class: `turn ${who}` }, h("h3", {}, { user: "You", assistant: settings().model, error: "Error", tool: "Result of the tool" }[who]), content, ...more));
    chat.scrollTop = chat.scrollHeight;
    return content;
  }

  function order() {
    const { target, credential, body, system } = settings();
    const messages = [...(system ? [{ role: "system", content: system }] : []), ...turns];
    return orderFor(target, credential, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body(messages)) });
  }

  async function read(answer, content, begun) {
    const found = { text: "", usage: null, first: null, calls: [] };
    let waiting = 0;
    const paint = () => {
      waiting = 0;
      content.replaceChildren(...markdown(found.text));
      chat.scrollTop = chat.scrollHeight;
    };
    if (!(answer.header("content-type") ?? "").startsWith("text/event-stream")) {
      const whole = JSON.parse(await answer.text());
      const message = whole.choices?.[0]?.message ?? {};
      Object.assign(found, { text: message.content ?? "", usage: whole.usage, calls: message.tool_calls ?? [] });
      paint();
      return found;
    }
    try {
      for await (const data of events(answer.pieces())) {
        if (data === "[DONE]") break;
        const part = JSON.parse(data);
        if (part.error) throw new Error(part.error.message ?? JSON.stringify(part.error));
        found.usage = part.usage ?? found.usage;
        const delta = part.choices?.[0]?.delta ?? {};
        for (const one of delta.tool_calls ?? []) {
          const call = found.calls[one.index ?? 0] ??= { id: "", type: "function", function: { name: "", arguments: "" } };
          call.id ||= one.id ?? "";
          call.function.name += one.function?.name ?? "";
          call.function.arguments += one.function?.arguments ?? "";
        }
        if (!delta.content) continue;
        found.first ??= performance.now() - begun;
        found.text += delta.content;
        // Several words in one frame are drawn once.
        waiting ||= requestAnimationFrame(paint);
      }
    } finally {
      if (waiting) cancelAnimationFrame(waiting);
      paint();
      content.dataset.text = found.text;
    }
    return found;
  }

  /** Show the calls that the model wants, each with a field for its result. */
  function wanted(content, calls) {
    const results = calls.map((call) => h("textarea", { class: "code", rows: 2, "aria-label": `Result of ${call.function.name}`, placeholder: "result for the model" }));
    const form = h("form", { on: { submit: (event) => {
      event.preventDefault();
      form.querySelector("button").remove();
      calls.forEach((call, at) => {
        results[at].readOnly = true;
        turns.push({ role: "tool", tool_call_id: call.id, content: results[at].value });
      });
      run();
    } } }, calls.map((call, at) => [h("pre", { "aria-label": `Call of ${call.function.name}` }, `${call.function.name}(${call.function.arguments})`), results[at]]),
    h("div", {}, h("button", {}, "Send results")));
    content.after(form);
  }

  async function run() {
    abort = new AbortController();
    const mine = abort;
    // What is said belongs to this conversation, also when another one has begun meanwhile.
    const said = turns;
    changed();
    setText(title, settings().model);
    setText(figures, "Waiting for the model.");
    const begun = performance.now();
    let content = null;
    try {
      const answer = await send(order(), mine.signal);
      if (answer.status !== 200) throw new Error(refused(answer.status, await answer.text()));
      content = bubble("assistant", "");
      const { text, usage, first, calls } = await read(answer, content, begun);
      if (mine.signal.aborted) throw new Error("stopped");
      said.push({ role: "assistant", content: text, ...(calls.length ? { tool_calls: calls } : {}) });
      if (calls.length) wanted(content, calls);
      const parts = [`${seconds((performance.now() - begun) / 1000)} in all`];
      if (first !== null) parts.unshift(`first word after ${seconds(first / 1000)}`);
      if (usage) parts.push(`${count(usage.prompt_tokens ?? 0)} tokens in, ${count(usage.completion_tokens ?? 0)} out`);
      setText(figures, parts.join(", "));
    } catch (error) {
      if (said !== turns) return;
      if (mine.signal.aborted) setText(figures, "Stopped.");
      else {
        bubble("error", error.message);
        setText(figures, "");
      }
      // What was said so far stays; a question without any answer is asked anew.
      const part = content?.dataset.text;
      if (part) turns.push({ role: "assistant", content: part });
      else if (turns[turns.length - 1]?.role === "user") turns.pop();
    } finally {
      if (abort === mine) abort = null;
      changed();
    }
  }

  return {
    element,
    get busy() {
      return abort !== null;
    },
    /** Ask; pictures are {url, canvas()}. */
    ask(text, pictures) {
      const content = pictures.length ? [{ type: "text", text }, ...pictures.map((one) => ({ type: "image_url", image_url: { url: one.url } }))] : text;
      turns.push({ role: "user", content });
      bubble("user", text, ...pictures.map((one) => one.canvas()));
      return run();
    },
    /** Return the request that would be sent now with this text, as a command. */
    curl(text) {
      const kept = turns;
      turns = text ? [...turns, { role: "user", content: text }] : turns;
      try {
        return asCurl(settings().target, order());
      } finally {
        turns = kept;
      }
    },
    stop: () => abort?.abort(),
    clear() {
      abort?.abort();
      abort = null;
      changed();
      turns = [];
      chat.replaceChildren();
      setText(figures, "");
      setText(title, "");
    },
  };
}
