// The running configuration and its file, as trees with search.

import { card, h, head, setText } from "../dom.js";
import { offered, watch } from "../store.js";
import { find, marked, tree } from "../tree.js";

const SOURCES = [["running", "Running state", "/config_dump"], ["file", "File", "/api/config"], ["effective", "File and stored", "/api/config/effective"]];

export default function configuration(root) {
  let source = "running";
  let generation = null;
  let shown = null;
  let drawn = null;
  const search = h("input", { type: "search", placeholder: "Search names and values", "aria-label": "Search names and values", on: { input: look } });
  const summary = h("p", { class: "small muted", role: "status" });
  const results = h("ul", { class: "results", hidden: true });
  const place = h("div");
  const choices = SOURCES.map(([name, title]) => h("button", { type: "button", class: "quiet", on: { click: () => choose(name) } }, title));
  const copy = h("a", { class: "small", download: "headgate-config.json", href: "/config_dump" }, "Download");

  function choose(name) {
    source = name;
    load();
  }

  async function load() {
    const [, , address] = SOURCES.find(([name]) => name === source);
    choices.forEach((button, at) => button.setAttribute("aria-pressed", String(SOURCES[at][0] === source)));
    copy.setAttribute("href", address);
    try {
      const answer = await fetch(address, { cache: "no-store" });
      const found = await answer.json();
      if (!answer.ok) throw new Error(String(found));
      shown = found;
      drawn = tree(found);
      place.replaceChildren(drawn.element);
      look();
    } catch (error) {
      shown = null;
      place.replaceChildren(h("p", { class: "bad-text wrap" }, error.message));
    }
  }

  function look() {
    const wanted = search.value.trim();
    results.hidden = !wanted || !shown;
    if (results.hidden) {
      setText(summary, "");
      return;
    }
    const found = find(shown, wanted);
    setText(summary, `${found.length === 200 ? "The first 200" : found.length} ${found.length === 1 ? "match" : "matches"}`);
    results.replaceChildren(...found.map(({ path, value }) => h("li", {}, h("button", { type: "button", class: "mono", on: { click: () => drawn.reveal(path) } },
      marked(path.join(" › "), wanted), value ? [" = ", marked(value, wanted)] : null))));
  }

  root.append(
    head("Configuration", "Secrets are not shown"),
    card("Tree", h("div", { class: "row middle" }, copy, h("div", { class: "row middle", role: "group", "aria-label": "Source" }, choices)),
      h("div", { class: "field" }, search), summary, results, place),
  );
  return watch(({ state }) => {
    if (!state || generation === state.generation) return;
    generation = state.generation;
    choices[2].hidden = !offered("resources");
    if (!offered("dump")) {
      choices[0].hidden = true;
      source = "file";
    }
    load();
  });
}
