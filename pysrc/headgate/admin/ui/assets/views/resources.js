// Configuration that is stored in the database beside the file: list, edit, add and remove.

import { ask, send } from "../asking.js";
import { card, field, h, head, setText } from "../dom.js";
import { local } from "../format.js";
import { table } from "../table.js";

const PATH = "/api/config/resources";
const KINDS = ["llm.provider", "llm.model", "llm.virtualModel", "llm.apiKey", "llm.policy", "mcp.target", "mcp.policy", "mcp.settings",
  "traffic.gateway", "traffic.route", "traffic.tcpRoute", "ui.policy", "modelCatalog"];

export default function resources(root) {
  let all = [];
  // The resource that is edited; null for a new one.
  let chosen = null;
  let gone = false;

  const only = h("select", { on: { change: draw } }, h("option", { value: "" }, "all kinds"), KINDS.map((one) => h("option", {}, one)));
  const kind = h("select", { on: { change: drawForm } }, KINDS.map((one) => h("option", {}, one)));
  kind.value = "traffic.route";
  const name = h("input", { type: "text", spellcheck: "false", autocomplete: "off", placeholder: "as the value says" });
  const text = h("textarea", { class: "code editor", "aria-label": "Value", spellcheck: "false", autocomplete: "off", autocapitalize: "off", rows: 14 });
  const status = h("p", { role: "status", class: "small muted" });
  const save = h("button", { type: "button", class: "primary", on: { click: write } }, "Save");
  const remove = h("button", { type: "button", on: { click: erase } }, "Remove");
  const fresh = h("button", { type: "button", class: "quiet", on: { click: () => choose(null) } }, "New resource");
  const list = table("Resources", [
    { title: "Id", value: (row) => row.id, sort: true },
    { title: "Kind", value: (row) => row.kind },
    { title: "Owner", value: (row) => (row.revision === undefined ? "file" : "stored") },
    { title: "Changed", value: (row) => row.updatedAt ?? "", text: (row) => (row.updatedAt ? local(row.updatedAt) : "–") },
  ], { key: (row) => `${row.kind}/${row.id}/${row.revision === undefined}`, empty: "Nothing yet.", choose });

  function say(words, bad = false) {
    status.className = bad ? "small bad-text wrap lines" : "small muted";
    setText(status, words);
  }

  function draw() {
    list.update(all.filter((one) => !only.value || one.kind === only.value));
  }

  function drawForm() {
    const owned = chosen && chosen.revision === undefined;
    kind.disabled = name.disabled = chosen;
    text.readOnly = save.disabled = owned;
    remove.disabled = !chosen || owned;
  }

  function choose(row) {
    chosen = row;
    if (row) kind.value = row.kind;
    name.value = row?.id ?? "";
    text.value = row ? JSON.stringify(row.value, null, 2) : "{\n  \n}";
    say(!row ? "" : row.revision === undefined ? "The file defines it: change it there." : `Revision ${row.revision}. Secrets are shown as <redacted> and stay.`);
    drawForm();
  }

  async function load() {
    try {
      const { status: code, found } = await ask(PATH);
      if (gone) return;
      if (code !== 200) throw new Error(found);
      all = found.resources;
    } catch (error) {
      say(`The resources cannot be read: ${error.message}`, true);
    }
    draw();
  }

  const place = (of, id) => `${PATH}/${of}${id && `/${encodeURIComponent(id)}`}`;

  async function write() {
    let value;
    try {
      value = JSON.parse(text.value);
    } catch (error) {
      say(`This is no JSON: ${error.message}`, true);
      return;
    }
    const id = chosen?.id ?? name.value.trim();
    const condition = chosen ? { "if-match": `"${chosen.revision}"` } : { "if-none-match": "*" };
    await apply(() => send("PUT", place(kind.value, id), id ? { value } : { resources: [{ value }] }, id && condition), (found) => {
      choose(found.resources[0]);
      say(`Saved; revision ${found.resources[0].revision} runs.`);
    });
  }

  async function erase() {
    if (!confirm(`Remove ${chosen.kind}/${chosen.id}?`)) return;
    await apply(() => send("DELETE", place(chosen.kind, chosen.id), undefined, { "if-match": `"${chosen.revision}"` }), () => {
      choose(null);
      say("Removed.");
    });
  }

  async function apply(request, done) {
    save.disabled = remove.disabled = true;
    say("…");
    try {
      const { status: code, found } = await request();
      if (gone) return;
      if (code === 200) {
        await load();
        return done(found);
      }
      say(`Nothing was changed:\n${found}`, true);
    } catch (error) {
      say(`The gateway does not answer: ${error.message}`, true);
    }
    drawForm();
  }

  root.append(
    head("Stored resources", "Kept in the database and merged with the file; a change is in force when it is saved"),
    card("Resources", h("div", { class: "row middle" }, only, fresh), list.element),
    card("Resource", null, h("div", { class: "row" }, field("Kind", kind), field("Id", name)), text, status, h("div", { class: "row" }, save, remove)),
  );
  choose(null);
  load();
  return () => {
    gone = true;
  };
}
