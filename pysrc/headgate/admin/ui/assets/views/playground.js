// Talk to a model through the gateway.

import { card, field, freshId, h, head, setText } from "../dom.js";
import { count, seconds } from "../format.js";
import { events, orderFor, send } from "../relay.js";
import { store, watch } from "../store.js";

export default function playground(root) {
  let turns = [];
  let abort = null;
  const list = freshId("models");
  const place = h("select", { on: { change: suggest } });
  const model = h("input", { type: "text", list, spellcheck: "false", autocomplete: "off", placeholder: "name of a model", required: true });
  const names = h("datalist", { id: list });
  const system = h("textarea", { rows: 2, placeholder: "You are a helpful assistant." });
  const heat = h("input", { type: "number", min: 0, max: 2, step: 0.1, placeholder: "default" });
  const most = h("input", { type: "number", min: 1, step: 1, placeholder: "default" });
  const credential = h("input", { type: "password", autocomplete: "off", placeholder: "none" });
  const stream = h("input", { type: "checkbox", checked: true });
  const message = h("textarea", { rows: 3, required: true, placeholder: "Say something", on: { keydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  } } });
  const chat = h("div", { class: "chat", role: "log", "aria-label": "Conversation", tabindex: "0" }, h("p", { class: "empty" }, "The conversation appears here. It goes through the gateway as any client's: policies, limits and guards hold."));
  const figures = h("p", { class: "small muted", role: "status" });
  const go = h("button", { class: "primary" }, "Send");
  const stop = h("button", { type: "button", hidden: true, on: { click: () => abort?.abort() } }, "Stop");
  const clear = h("button", { type: "button", class: "quiet", on: { click: () => {
    turns = [];
    chat.replaceChildren();
    setText(figures, "");
  } } }, "New conversation");

  function bubble(who, text) {
    const content = h("div", {}, text);
    chat.querySelector(".empty")?.remove();
    chat.append(h("article", { class: `turn ${who}` }, h("h3", {}, { user: "You", assistant: model.value, error: "Error" }[who]), content));
    chat.scrollTop = chat.scrollHeight;
    return content;
  }

  function suggest() {
    const target = store.state?.targets.models[place.selectedIndex];
    names.replaceChildren(...(target?.models ?? []).filter((one) => !one.includes("*")).map((one) => h("option", { value: one })));
    const first = names.querySelector("option")?.value;
    if (!model.value && first) model.value = first;
  }

  function request() {
    const messages = [...(system.value ? [{ role: "system", content: system.value }] : []), ...turns];
    const body = { model: model.value, messages, stream: stream.checked };
    if (stream.checked) body.stream_options = { include_usage: true };
    if (heat.value !== "") body.temperature = Number(heat.value);
    if (most.value !== "") body.max_tokens = Number(most.value);
    return JSON.stringify(body);
  }

  function refused(status, text) {
    try {
      const error = JSON.parse(text).error;
      return `${status}: ${error?.message ?? JSON.stringify(error) ?? text}`;
    } catch {
      return `${status}: ${text.slice(0, 500)}`;
    }
  }

  async function read(answer, content, begun) {
    let text = "";
    let usage = null;
    let first = null;
    if (!(answer.header("content-type") ?? "").startsWith("text/event-stream")) {
      const whole = JSON.parse(await answer.text());
      text = whole.choices?.[0]?.message?.content ?? "";
      content.textContent = text;
      return { text, usage: whole.usage, first };
    }
    for await (const data of events(answer.pieces())) {
      if (data === "[DONE]") break;
      const part = JSON.parse(data);
      if (part.error) throw new Error(part.error.message ?? JSON.stringify(part.error));
      usage = part.usage ?? usage;
      const piece = part.choices?.[0]?.delta?.content;
      if (!piece) continue;
      first ??= performance.now() - begun;
      text += piece;
      content.append(piece);
      chat.scrollTop = chat.scrollHeight;
    }
    return { text, usage, first };
  }

  async function ask(event) {
    event.preventDefault();
    const target = store.state?.targets.models[place.selectedIndex];
    if (!target || abort) return;
    turns.push({ role: "user", content: message.value });
    bubble("user", message.value);
    message.value = "";
    abort = new AbortController();
    stop.hidden = false;
    go.disabled = true;
    setText(figures, "Waiting for the model.");
    const begun = performance.now();
    let content = null;
    try {
      const order = orderFor(target, credential.value, { method: "POST", headers: { "content-type": "application/json" }, body: request() });
      const answer = await send(order, abort.signal);
      if (answer.status !== 200) throw new Error(refused(answer.status, await answer.text()));
      content = bubble("assistant", "");
      const { text, usage, first } = await read(answer, content, begun);
      turns.push({ role: "assistant", content: text });
      const parts = [`${seconds((performance.now() - begun) / 1000)} in all`];
      if (first !== null) parts.unshift(`first word after ${seconds(first / 1000)}`);
      if (usage) parts.push(`${count(usage.prompt_tokens ?? 0)} tokens in, ${count(usage.completion_tokens ?? 0)} out`);
      setText(figures, parts.join(", "));
    } catch (error) {
      if (abort.signal.aborted) setText(figures, "Stopped.");
      else {
        bubble("error", error.message);
        setText(figures, "");
      }
      if (!content?.textContent) turns.pop();
      else turns.push({ role: "assistant", content: content.textContent });
    } finally {
      abort = null;
      stop.hidden = true;
      go.disabled = false;
    }
  }

  const form = h("form", { on: { submit: ask } }, field("Message", message, "Ctrl+Enter sends"), h("div", { class: "row middle" }, go, stop, clear));
  const nothing = h("p", { class: "empty", hidden: true }, "No route leads to a model: the configuration has no llm section and no ai backend.");
  const parts = h("div", { class: "split" },
    card("Conversation", null, chat, figures, form),
    card("Settings", null, h("form", { on: { submit: (event) => event.preventDefault() } },
      field("Endpoint", place), field("Model", model), names, field("System prompt", system),
      h("div", { class: "row" }, field("Temperature", heat), field("Token limit", most)),
      field("Credential", credential, "sent as authorization, and kept nowhere"),
      h("label", { class: "check" }, stream, "Stream the answer"))));
  root.append(head("Playground", "Talk to a model through the gateway"), nothing, parts);
  const end = watch(({ state }) => {
    if (!state) return;
    const titles = state.targets.models.map((one) => `:${one.port}${one.path} (${one.route})`);
    nothing.hidden = titles.length > 0;
    parts.hidden = !titles.length;
    if (titles.join() === [...place.options].map((one) => one.text).join()) return;
    place.replaceChildren(...titles.map((one) => h("option", {}, one)));
    suggest();
  });
  return () => {
    abort?.abort();
    end();
  };
}
