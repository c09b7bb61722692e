// Log levels of the whole process tree.

import { card, field, h, head, setText } from "../dom.js";
import { table } from "../table.js";

const LEVELS = ["off", "error", "warn", "info", "debug", "trace"];

export default function logging(root) {
  const now = h("output", { class: "mono" }, "…");
  const status = h("p", { role: "status", class: "small" });
  const module_ = h("input", { type: "text", placeholder: "headgate.mcp", list: "modules", spellcheck: "false", autocomplete: "off" });
  const level = h("select", {}, LEVELS.map((one) => h("option", { value: one }, one)));
  level.value = "debug";
  const list = table("Directives", [
    { title: "Module", value: (row) => row.module || "everything else" },
    { title: "Level", value: (row) => row.level },
  ], { key: (row) => row.module });
  const buttons = LEVELS.map((one) => h("button", { type: "button", on: { click: () => change(`?level=${one}`) } }, one));

  function show(text) {
    const directive = text.replace(/^current log level is /, "").trim();
    setText(now, directive);
    const rows = directive.split(",").map((clause) => {
      const [left, right] = clause.split("=");
      return right === undefined ? { module: "", level: left } : { module: left, level: right };
    });
    list.update(rows);
    const base = rows.find((row) => !row.module)?.level;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === base));
  }

  async function change(query, method = "POST") {
    try {
      const answer = await fetch(`/logging${query}`, { method });
      const text = await answer.text();
      if (answer.ok) show(text);
      status.className = answer.ok ? "small" : "small bad-text";
      setText(status, answer.ok ? (method === "POST" ? "All workers use it now." : "") : text.split("\n")[0]);
    } catch (error) {
      status.className = "small bad-text";
      setText(status, `The gateway does not answer: ${error.message}`);
    }
  }

  root.append(
    head("Log levels", "A change holds in all workers at once, until the gateway restarts"),
    h("div", { class: "grid" },
      card("Now", null, h("p", {}, now), list.element, status),
      card("Change", null,
        h("div", { class: "field" }, h("span", { id: "level-all" }, "Level of everything without a level of its own"),
          h("div", { class: "row tight", role: "group", "aria-labelledby": "level-all" }, buttons)),
        h("form", { on: { submit: (event) => {
          event.preventDefault();
          change(`?level=${encodeURIComponent(`${module_.value.trim()}=${level.value}`)}`);
        } } },
        h("div", { class: "row" }, field("Module (and below)", module_), field("Level", level), h("button", { class: "primary" }, "Set"))),
        h("div", {}, h("button", { type: "button", on: { click: () => change("?reset") } }, "Back to the level at the start")),
        h("datalist", { id: "modules" }, ["request", "headgate", "headgate.admin", "headgate.downstream", "headgate.mcp", "headgate.supervisor"].map((one) => h("option", { value: one }))))),
  );
  change("", "GET");
}
