// Navigation, theme and connection; each view is a module of its own.

import { h, setText } from "./dom.js";
import { offered, start, store, watch } from "./store.js";
import { age } from "./format.js";
import analytics from "./views/analytics.js";
import configuration from "./views/configuration.js";
import editor from "./views/editor.js";
import endpoints from "./views/endpoints.js";
import expressions from "./views/expressions.js";
import keys from "./views/keys.js";
import logging from "./views/logging.js";
import mcp from "./views/mcp.js";
import models from "./views/models.js";
import overview from "./views/overview.js";
import playground from "./views/playground.js";
import requests from "./views/requests.js";
import resources from "./views/resources.js";
import trace from "./views/trace.js";
import traffic from "./views/traffic.js";

const VIEWS = [
  ["Observe", [["", "Overview", overview], ["traffic", "Traffic", traffic], ["endpoints", "Endpoints", endpoints], ["trace", "Trace", trace],
    ["requests", "Requests", requests], ["analytics", "Analytics", analytics]]],
  ["Agents", [["models", "Models", models], ["keys", "Keys", keys], ["playground", "Playground", playground], ["mcp", "MCP", mcp]]],
  ["Gateway", [["configuration", "Configuration", configuration], ["editor", "Edit configuration", editor], ["resources", "Stored resources", resources],
    ["expressions", "Expressions", expressions], ["logging", "Log levels", logging]]],
];
// The function that a view requires.
const NEEDS = new Map([["trace", "trace"], ["keys", "keys"], ["playground", "relay"], ["logging", "logging"], ["requests", "store"], ["analytics", "store"],
  ["editor", "store"], ["resources", "resources"], ["expressions", "expressions"]]);
const BY_PATH = new Map(VIEWS.flatMap(([, views]) => views.map((view) => [view[0], view])));

const nav = document.getElementById("nav");
const view = document.getElementById("view");
const main = document.getElementById("main");
let leave = null;
let waiting = false;

function pathOf(location) {
  return location.pathname.replace(/^\/ui\/?/, "").replace(/\/$/, "");
}

/** Hide the views that are not available here. Before the first response this is unknown, and such a view waits. */
function offers() {
  for (const link of nav.querySelectorAll("a")) {
    const needed = NEEDS.get(link.dataset.view);
    link.hidden = Boolean(needed) && Boolean(store.state) && !offered(needed);
  }
  if (waiting && store.state) show(false);
}

/** On a narrow screen the links are one scrolling line: bring that of the view into it. */
function reveal() {
  nav.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function show(moved) {
  const path = pathOf(window.location);
  const needed = NEEDS.get(path);
  waiting = Boolean(needed) && !store.state;
  if (waiting) return;
  const found = (needed && !offered(needed) ? null : BY_PATH.get(path)) ?? BY_PATH.get("");
  leave?.();
  view.replaceChildren();
  for (const link of nav.querySelectorAll("a")) {
    if (link.dataset.view === found[0]) {
      link.setAttribute("aria-current", "page");
      reveal();
    } else link.removeAttribute("aria-current");
  }
  document.title = found[0] ? `${found[1]} · Headgate` : "Headgate";
  leave = found[2](view) ?? null;
  if (moved) {
    window.scrollTo(0, 0);
    main.focus();
  }
}

function go(event) {
  const link = event.target.closest?.("a[href^='/ui']");
  if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  history.pushState(null, "", link.getAttribute("href"));
  show(true);
}

function themes() {
  const button = document.getElementById("theme");
  const names = { auto: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
  const order = ["auto", "light", "dark"];
  const current = () => document.documentElement.dataset.theme ?? "auto";
  const tell = () => setText(button, names[current()]);
  button.addEventListener("click", () => {
    const next = order[(order.indexOf(current()) + 1) % order.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("headgate.theme", next);
    } catch {
      // Without storage the choice lasts until the page is closed.
    }
    tell();
  });
  tell();
}

function connection() {
  const banner = document.getElementById("banner");
  const box = document.getElementById("connection");
  const text = document.getElementById("connection-text");
  watch(({ connected, state }) => {
    box.dataset.state = connected ? "live" : "lost";
    setText(text, connected ? `Live, generation ${state.generation}` : "Gateway does not answer");
    const stale = connected && !state.synchronized;
    banner.hidden = connected && !stale;
    setText(banner, stale ? "The newest configuration could not be loaded; the one before it is running. The log says why."
      : connected ? "" : `The gateway does not answer; trying again.${state ? ` What is shown is ${age(Date.now() - state.time)} old.` : ""}`);
  });
}

window.matchMedia("(max-width: 760px)").addEventListener("change", reveal);
for (const [title, views] of VIEWS) {
  nav.append(h("h2", {}, title), ...views.map(([path, name]) => h("a", { href: path ? `/ui/${path}` : "/ui", "data-view": path }, name)));
}
document.addEventListener("click", go);
window.addEventListener("popstate", () => show(true));
themes();
connection();
show(false);
watch(offers);
start();
