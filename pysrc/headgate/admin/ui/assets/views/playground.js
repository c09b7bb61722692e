// Talk to a model through the gateway, or to two of them side by side: with pictures and tools.

import { conversation } from "../chat.js";
import { card, field, freshId, h, head, setText } from "../dom.js";
import { picture } from "../pictures.js";
import { routeName } from "../names.js";
import { store, watch } from "../store.js";

const MOST_PICTURES = 4;
const TOOLS = '[{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}}}]';

export default function playground(root) {
  let pictures = [];
  const list = freshId("models");
  const place = h("select", { on: { change: suggest } });
  const name = (required) => h("input", { type: "text", list, spellcheck: "false", autocomplete: "off", placeholder: required ? "name of a model" : "none", required, on: { input: compare } });
  const [model, other] = [name(true), name(false)];
  const names = h("datalist", { id: list });
  const system = h("textarea", { rows: 2, placeholder: "You are a helpful assistant." });
  const heat = h("input", { type: "number", min: 0, max: 2, step: 0.1, placeholder: "default" });
  const most = h("input", { type: "number", min: 1, step: 1, placeholder: "default" });
  const credential = h("input", { type: "password", autocomplete: "off", placeholder: "none" });
  const stream = h("input", { type: "checkbox", checked: true });
  const tools = h("textarea", { class: "code", rows: 3, spellcheck: "false", placeholder: TOOLS, on: { input: checkTools } });
  const badTools = h("p", { class: "small bad-text wrap", role: "status" });
  const message = h("textarea", { rows: 3, required: true, placeholder: "Say something", on: { keydown: (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  } } });
  const files = h("input", { type: "file", accept: "image/*", multiple: true, hidden: true, "aria-label": "Pictures", on: { change: add } });
  const chosen = h("div", { class: "row tight" });
  const told = h("p", { class: "small bad-text wrap", role: "status" });
  const command = h("pre", { tabindex: "0", "aria-label": "Command of curl", hidden: true });
  const go = h("button", { class: "primary" }, "Send");
  const stop = h("button", { type: "button", hidden: true, on: { click: () => chats.forEach((one) => one.stop()) } }, "Stop");
  const attach = h("button", { type: "button", class: "quiet", on: { click: () => files.click() } }, "Add pictures");
  const curl = h("button", { type: "button", class: "quiet", on: { click: copy } }, "Copy as curl");
  const clear = h("button", { type: "button", class: "quiet", on: { click: () => {
    chats.forEach((one) => one.clear());
    command.hidden = true;
  } } }, "New conversation");

  /** Return the tools of the field; null if it has none. Throws an Error if they are no list. */
  function toolsOf() {
    if (!tools.value.trim()) return null;
    const found = JSON.parse(tools.value);
    if (!Array.isArray(found)) throw new Error("expected a list of tools");
    return found;
  }

  function checkTools() {
    try {
      toolsOf();
      setText(badTools, "");
    } catch (error) {
      setText(badTools, `Tools: ${error.message}`);
    }
  }

  function settings(input) {
    return () => ({
      target: store.state?.targets.models[place.selectedIndex], model: input.value, credential: credential.value, system: system.value,
      body(messages) {
        const body = { model: input.value, messages, stream: stream.checked };
        if (stream.checked) body.stream_options = { include_usage: true };
        if (heat.value !== "") body.temperature = Number(heat.value);
        if (most.value !== "") body.max_tokens = Number(most.value);
        const wanted = toolsOf();
        if (wanted) body.tools = wanted;
        return body;
      },
    });
  }

  const chats = [model, other].map((input) => conversation(settings(input), () => {
    const busy = chats.some((one) => one.busy);
    stop.hidden = !busy;
    go.disabled = busy;
  }));
  const sides = h("div", { class: "sides" }, chats.map((one) => one.element));

  function compare() {
    chats[1].element.hidden = !other.value.trim();
    sides.classList.toggle("two", Boolean(other.value.trim()));
  }

  async function add() {
    setText(told, "");
    for (const file of [...files.files].slice(0, MOST_PICTURES - pictures.length)) {
      try {
        pictures.push(await picture(file));
      } catch (error) {
        setText(told, error.message);
      }
    }
    files.value = "";
    showPictures();
  }

  function showPictures() {
    chosen.replaceChildren(...pictures.map((one) => h("span", { class: "attached" }, one.canvas(), h("button", { type: "button", class: "quiet", "aria-label": `Remove ${one.name}`, on: { click: () => {
      pictures = pictures.filter((other_) => other_ !== one);
      showPictures();
    } } }, "Remove"))));
  }

  function suggest() {
    const target = store.state?.targets.models[place.selectedIndex];
    names.replaceChildren(...(target?.models ?? []).filter((one) => !one.includes("*")).map((one) => h("option", { value: one })));
    const first = names.querySelector("option")?.value;
    if (!model.value && first) model.value = first;
  }

  async function copy() {
    if (!store.state?.targets.models[place.selectedIndex]) return;
    try {
      command.textContent = chats[0].curl(message.value);
    } catch (error) {
      setText(told, error.message);
      return;
    }
    command.hidden = false;
    try {
      await navigator.clipboard.writeText(command.textContent);
      setText(curl, "Copied");
      setTimeout(() => setText(curl, "Copy as curl"), 2000);
    } catch {
      // Without access to the clipboard the command stands there to be selected.
      getSelection().selectAllChildren(command);
    }
  }

  function ask(event) {
    event.preventDefault();
    const target = store.state?.targets.models[place.selectedIndex];
    if (!target || chats.some((one) => one.busy)) return;
    try {
      toolsOf();
    } catch {
      tools.focus();
      return;
    }
    const [text, sent] = [message.value, pictures];
    message.value = "";
    pictures = [];
    showPictures();
    chats[0].ask(text, sent);
    if (other.value.trim()) chats[1].ask(text, sent);
  }

  const form = h("form", { on: { submit: ask } }, field("Message", message, "Ctrl+Enter sends"), chosen, told, files,
    h("div", { class: "row middle" }, go, stop, attach, curl, clear), command);
  const nothing = h("p", { class: "empty", hidden: true }, "No route leads to a model: the configuration has no llm section and no ai backend.");
  const parts = h("div", { class: "split" },
    card("Conversation", null, sides, form),
    card("Settings", null, h("form", { on: { submit: (event) => event.preventDefault() } },
      field("Endpoint", place), h("div", { class: "row" }, field("Model", model), field("Compare with", other)), names, field("System prompt", system),
      h("div", { class: "row" }, field("Temperature", heat), field("Token limit", most)),
      field("Tools", tools, "definitions as in chat completions; you give the results of calls"), badTools,
      field("Credential", credential, "sent as authorization, and kept nowhere"),
      h("label", { class: "check" }, stream, "Stream the answer"))));
  compare();
  root.append(head("Playground", "Talk to a model through the gateway"), nothing, parts);
  const end = watch(({ state }) => {
    if (!state) return;
    const titles = state.targets.models.map((one) => `:${one.port}${one.path} (${routeName(one.route)})`);
    nothing.hidden = titles.length > 0;
    parts.hidden = !titles.length;
    if (titles.join() === [...place.options].map((one) => one.text).join()) return;
    place.replaceChildren(...titles.map((one) => h("option", {}, one)));
    suggest();
  });
  return () => {
    chats.forEach((one) => one.stop());
    end();
  };
}
