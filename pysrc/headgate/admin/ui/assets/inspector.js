// What an MCP server offers, in tabs: tools, prompts, resources, templates of resources, and what it tells of itself.

import { h, setText } from "./dom.js";
import { clock, seconds } from "./format.js";
import { schemaForm } from "./schema-form.js";

const MOST_NOTES = 200;
const strings = (names) => ({ type: "object", properties: Object.fromEntries(names.map((one) => [one, { type: "string" }])), required: names });

/** Return the names in the braces of a template of URIs (RFC 6570). */
function variables(template) {
  return [...template.matchAll(/\{[+#./;?&]?([^}]+)\}/g)].flatMap(([, names]) => names.split(",").map((one) => one.replace(/[*]$|:\d+$/, "")));
}

function filled(template, values) {
  return template.replace(/\{[+#./;?&]?([^}]+)\}/g, (_, names) => names.split(",").map((one) => encodeURIComponent(values[one.replace(/[*]$|:\d+$/, "")] ?? "")).join(","));
}

function promptSchema(prompt) {
  const given = Array.isArray(prompt.arguments) ? prompt.arguments : [];
  return { type: "object", properties: Object.fromEntries(given.map((one) => [one.name, { type: "string", description: one.description }])),
    required: given.filter((one) => one.required).map((one) => one.name) };
}

// title, capability, method of the list, its key; what an item is called, what its form asks, and how it is tried.
const KINDS = [
  { title: "Tools", one: "tool", capability: "tools", method: "tools/list", key: "tools", action: "Call tool", schema: (item) => item.inputSchema,
    run: (client, item, values, options) => client.call(item.name, values, options) },
  { title: "Prompts", one: "prompt", capability: "prompts", method: "prompts/list", key: "prompts", action: "Get prompt", schema: promptSchema,
    run: (client, item, values, options) => client.request("prompts/get", { name: item.name, arguments: values }, options) },
  { title: "Resources", one: "resource", capability: "resources", method: "resources/list", key: "resources", action: "Read resource", schema: () => strings([]),
    run: (client, item, values, options) => client.request("resources/read", { uri: item.uri }, options) },
  { title: "Templates", one: "template", capability: "resources", method: "resources/templates/list", key: "resourceTemplates", action: "Read resource",
    schema: (item) => strings(variables(String(item.uriTemplate ?? ""))),
    run: (client, item, values, options) => client.request("resources/read", { uri: filled(String(item.uriTemplate ?? ""), values) }, options) },
];

function piece(one) {
  const text = one.text ?? one.resource?.text;
  if (typeof text === "string") return h("pre", {}, text);
  const data = one.data ?? one.blob ?? one.resource?.blob;
  return h("pre", {}, JSON.stringify(data ? { ...one, data: undefined, blob: undefined, content: `${String(data).length} characters of base64` } : one, null, 2));
}

function shown(result) {
  if (Array.isArray(result.messages)) {
    return [result.description ? h("p", { class: "muted" }, result.description) : null, ...result.messages.map((one) => h("div", { class: `turn ${one.role === "user" ? "user" : "assistant"}` },
      h("h3", {}, String(one.role)), piece(one.content ?? {})))];
  }
  const parts = (result.content ?? result.contents ?? []).map(piece);
  if (result.structuredContent !== undefined) parts.push(h("h3", {}, "Structured content"), h("pre", {}, JSON.stringify(result.structuredContent, null, 2)));
  return parts.length ? parts : [h("pre", {}, JSON.stringify(result, null, 2))];
}

/** An inspector. `client()` returns the client of the open session. */
export function inspector(client) {
  let abort = null;
  let kind = KINDS[0];
  const items = new Map();
  const notes = [];
  const filter = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter", on: { input: narrow } });
  const list = h("ul", { class: "tools" });
  const form = h("div", { class: "stack" });
  const result = h("div", { class: "stack", role: "status", "aria-label": "Result of the call" });
  const log = h("ol", { class: "notes" });
  const noted = h("p", { class: "muted small" });
  const panes = h("div", { class: "split narrow-first" }, h("div", { class: "card" }, filter, list), h("div", { class: "card" }, form, result));
  const told = h("div", { class: "card", hidden: true }, h("div", { class: "card-head" }, h("h2", {}, "Notifications"),
    h("button", { type: "button", class: "quiet", on: { click: ping } }, "Ping")), noted, log);
  const tabs = h("div", { class: "row middle tight pills", role: "group", "aria-label": "What the server offers" });
  const element = h("div", { class: "stack", hidden: true }, tabs, panes, told);

  function drawTabs() {
    const one = (title, number, chosen, click) => h("button", { type: "button", class: "quiet", "aria-pressed": String(chosen), on: { click } }, `${title} (${number})`);
    tabs.replaceChildren(
      ...KINDS.map((each) => one(each.title, items.get(each)?.length ?? 0, told.hidden && each === kind, () => open(each))),
      one("Notifications", notes.length, !told.hidden, () => {
        told.hidden = false;
        panes.hidden = true;
        drawTabs();
      }));
  }

  function open(which) {
    kind = which;
    told.hidden = true;
    panes.hidden = false;
    drawTabs();
    const found = items.get(kind) ?? [];
    filter.value = "";
    list.replaceChildren(...found.map((item) => {
      const button = h("button", { type: "button", on: { click: () => choose(item, button) } },
        h("strong", {}, String(item.name ?? item.uri)), h("span", {}, item.description ?? item.uri ?? item.uriTemplate ?? ""));
      return h("li", {}, button);
    }));
    result.replaceChildren();
    form.replaceChildren(h("p", { class: "empty" }, found.length ? `Choose a ${kind.one}.` : `This endpoint offers no ${kind.title.toLowerCase()}.`));
  }

  function narrow() {
    const text = filter.value.trim().toLowerCase();
    for (const item of list.children) item.hidden = Boolean(text) && !item.textContent.toLowerCase().includes(text);
  }

  function choose(item, button) {
    abort?.abort();
    for (const one of list.querySelectorAll("button")) one.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const schema = kind.schema(item);
    const fields = schemaForm(schema);
    const call = h("button", { class: "primary" }, kind.action);
    const stop = h("button", { type: "button", hidden: true, on: { click: () => abort?.abort() } }, "Stop");
    const which = kind;
    result.replaceChildren();
    form.replaceChildren(
      h("h2", { class: "wrap" }, item.title ?? item.name ?? item.uri), h("p", { class: "muted wrap" }, item.description ?? ""),
      ...(item.uri || item.uriTemplate ? [h("p", { class: "mono wrap" }, item.uri ?? item.uriTemplate)] : []),
      h("form", { on: { submit: (event) => { event.preventDefault(); run(which, item, fields, call, stop); } } },
        fields.elements.length ? fields.elements : h("p", { class: "muted small" }, "No arguments."), h("div", { class: "row" }, call, stop)),
      h("details", {}, h("summary", { class: "small" }, "As the server says it"), h("pre", {}, JSON.stringify(item, null, 2))));
  }

  async function run(which, item, fields, call, stop) {
    abort = new AbortController();
    const mine = abort;
    call.disabled = true;
    stop.hidden = false;
    const state = h("p", { class: "small muted" }, "Calling.");
    result.replaceChildren(h("h3", {}, "Result"), state);
    const begun = performance.now();
    const taken = () => seconds((performance.now() - begun) / 1000);
    try {
      const progress = (now) => setText(state, `Calling: ${now.progress}${now.total ? ` of ${now.total}` : ""} ${now.message ?? ""}`);
      const found = await which.run(client(), item, fields.read(), { signal: mine.signal, progress });
      setText(state, `${found.isError ? "The tool reports an error" : "Done"} after ${taken()}.`);
      state.className = found.isError ? "small bad-text" : "small muted";
      result.append(...shown(found).filter(Boolean));
    } catch (error) {
      state.className = "small bad-text wrap";
      setText(state, mine.signal.aborted ? "Stopped." : `${error.message} (after ${taken()})`);
    } finally {
      call.disabled = false;
      stop.hidden = true;
    }
  }

  async function ping() {
    const begun = performance.now();
    try {
      await client().request("ping", {});
      note({ method: "ping", params: { answered: seconds((performance.now() - begun) / 1000) } });
    } catch (error) {
      note({ method: "ping", params: { failed: error.message } });
    }
  }

  /** Note a message that the server sent of its own accord. */
  function note(message) {
    notes.unshift({ time: Date.now(), message });
    notes.length = Math.min(notes.length, MOST_NOTES);
    log.replaceChildren(...notes.map((one) => h("li", {}, h("span", { class: "muted small" }, clock(one.time, true)), " ", h("strong", {}, String(one.message.method ?? "message")),
      h("pre", {}, JSON.stringify(one.message.params ?? one.message.result ?? {}, null, 2)))));
    drawTabs();
  }

  return {
    element,
    note,
    say: (text) => setText(noted, text),
    /** Ask the server for all that it says it has; return how many there are of each as text. */
    async load(capabilities, signal) {
      items.clear();
      notes.length = 0;
      log.replaceChildren();
      for (const each of KINDS) {
        if (!capabilities?.[each.capability]) continue;
        try {
          items.set(each, await client().list(each.method, each.key, signal));
        } catch (error) {
          // A server may have resources and no templates.
          if (each.one !== "template") throw error;
        }
      }
      element.hidden = false;
      open(KINDS.find((each) => items.get(each)?.length) ?? KINDS[0]);
      return KINDS.filter((each) => items.get(each)?.length).map((each) => {
        const number = items.get(each).length;
        return `${number} ${number === 1 ? each.one : each.title.toLowerCase()}`;
      }).join(", ") || "nothing offered";
    },
    stop: () => abort?.abort(),
  };
}
