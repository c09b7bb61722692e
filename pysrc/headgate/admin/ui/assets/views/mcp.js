// MCP sessions and calls, and the tools behind an endpoint to try.

import { card, field, h, head, setText } from "../dom.js";
import { count, seconds } from "../format.js";
import { McpClient } from "../mcp-client.js";
import { schemaForm } from "../schema-form.js";
import { offered, store, watch } from "../store.js";
import { table } from "../table.js";

function shownResult(result) {
  const parts = (result.content ?? []).map((one) => {
    if (one.type === "text") return h("pre", {}, one.text);
    return h("pre", {}, JSON.stringify(one.data ? { ...one, data: `${one.data.length} characters of base64` } : one, null, 2));
  });
  if (result.structuredContent !== undefined) parts.push(h("h3", {}, "Structured content"), h("pre", {}, JSON.stringify(result.structuredContent, null, 2)));
  return parts.length ? parts : [h("pre", {}, JSON.stringify(result, null, 2))];
}

export default function mcp(root) {
  let client = null;
  let abort = null;
  const place = h("select");
  const credential = h("input", { type: "password", autocomplete: "off", placeholder: "none; sent as authorization" });
  const connect = h("button", { class: "primary" }, "List tools");
  const told = h("p", { role: "status", class: "small muted" });
  const filter = h("input", { type: "search", placeholder: "Filter tools", "aria-label": "Filter tools", on: { input: narrow } });
  const list = h("ul", { class: "tools" });
  const form = h("div", { class: "stack" }, h("p", { class: "empty" }, "List the tools of an endpoint, then choose one."));
  const result = h("div", { class: "stack", role: "status", "aria-label": "Result of the call" });
  const explorer = h("div", { class: "split narrow-first", hidden: true }, h("div", { class: "card" }, filter, list), h("div", { class: "card" }, form, result));
  const sessions = table("Sessions by backend", [
    { title: "Backend", value: (row) => row.backend },
    { title: "Sessions", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => row.backend, empty: "No MCP session has been opened yet." });
  const calls = table("Messages by method", [
    { title: "Method", value: (row) => row.method },
    { title: "Server", value: (row) => row.server },
    { title: "Name", value: (row) => row.resource, text: (row) => (row.resource === "unknown" ? "" : row.resource) },
    { title: "Messages", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => `${row.method} ${row.server} ${row.resource_type} ${row.resource}`, empty: "No MCP message has come yet." });

  async function open(event) {
    event.preventDefault();
    const target = store.state?.targets.mcp[place.selectedIndex];
    if (!target) return;
    connect.disabled = true;
    setText(told, "Connecting.");
    told.className = "small muted";
    try {
      await client?.close();
      client = new McpClient(target, credential.value);
      const server = await client.connect();
      const tools = await client.tools();
      setText(told, `${server.serverInfo?.name ?? "server"} ${server.serverInfo?.version ?? ""}, revision ${server.protocolVersion}: ${tools.length} ${tools.length === 1 ? "tool" : "tools"}.`);
      list.replaceChildren(...tools.map((tool) => {
        const button = h("button", { type: "button", on: { click: () => choose(tool, button) } }, h("strong", {}, tool.name), h("span", {}, tool.description ?? ""));
        return h("li", {}, button);
      }));
      explorer.hidden = false;
      form.replaceChildren(h("p", { class: "empty" }, tools.length ? "Choose a tool." : "This endpoint offers no tools."));
      result.replaceChildren();
      narrow();
    } catch (error) {
      told.className = "small bad-text";
      setText(told, error.message);
    } finally {
      connect.disabled = false;
    }
  }

  function narrow() {
    const text = filter.value.trim().toLowerCase();
    for (const item of list.children) item.hidden = Boolean(text) && !item.textContent.toLowerCase().includes(text);
  }

  function choose(tool, button) {
    abort?.abort();
    for (const one of list.querySelectorAll("button")) one.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const fields = schemaForm(tool.inputSchema);
    const call = h("button", { class: "primary" }, "Call tool");
    const stop = h("button", { type: "button", hidden: true, on: { click: () => abort?.abort() } }, "Stop");
    result.replaceChildren();
    form.replaceChildren(
      h("h2", { class: "wrap" }, tool.title ?? tool.name), h("p", { class: "muted wrap" }, tool.description ?? ""),
      h("form", { on: { submit: (event) => { event.preventDefault(); run(tool, fields, call, stop); } } },
        fields.elements.length ? fields.elements : h("p", { class: "muted small" }, "No arguments."), h("div", { class: "row" }, call, stop)),
      h("details", {}, h("summary", { class: "small" }, "Schema"), h("pre", {}, JSON.stringify(tool.inputSchema, null, 2))));
  }

  async function run(tool, fields, call, stop) {
    abort = new AbortController();
    const mine = abort;
    call.disabled = true;
    stop.hidden = false;
    const state = h("p", { class: "small muted" }, "Calling.");
    result.replaceChildren(h("h3", {}, "Result"), state);
    const begun = performance.now();
    try {
      const progress = (told_) => setText(state, `Calling: ${told_.progress}${told_.total ? ` of ${told_.total}` : ""} ${told_.message ?? ""}`);
      const found = await client.call(tool.name, fields.read(), { signal: mine.signal, progress });
      setText(state, `${found.isError ? "The tool reports an error" : "Done"} after ${seconds((performance.now() - begun) / 1000)}.`);
      state.className = found.isError ? "small bad-text" : "small muted";
      result.append(...shownResult(found));
    } catch (error) {
      state.className = "small bad-text wrap";
      setText(state, mine.signal.aborted ? "Stopped." : error.message);
    } finally {
      call.disabled = false;
      stop.hidden = true;
    }
  }

  const nothing = h("p", { class: "empty", hidden: true }, "No route leads to an MCP backend.");
  const asking = h("form", { on: { submit: open } }, h("div", { class: "row" }, field("Endpoint", place), field("Credential", credential), connect));
  const tools = card("Tools", null, nothing, asking, told);
  root.append(
    head("MCP", "Sessions, messages, and tools to try"),
    h("div", { class: "grid" }, card("Sessions", h("span", { class: "muted small" }, "of all workers"), sessions.element), card("Messages", null, calls.element)),
    tools, explorer,
  );
  const end = watch(({ state }) => {
    if (!state) return;
    tools.hidden = !offered("relay");
    sessions.update(state.sessions);
    calls.update(state.mcp.slice(0, 50));
    const titles = state.targets.mcp.map((one) => `:${one.port}${one.path}: ${one.targets.join(", ")} (${one.route})`);
    nothing.hidden = titles.length > 0;
    asking.hidden = !titles.length;
    if (titles.join() !== [...place.options].map((one) => one.text).join()) place.replaceChildren(...titles.map((one) => h("option", {}, one)));
  });
  return () => {
    abort?.abort();
    client?.close();
    end();
  };
}
