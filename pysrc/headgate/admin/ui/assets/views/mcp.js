// MCP servers: targets with their state and figures, sessions and messages, and an inspector of what they offer.

import { need } from "../asking.js";
import { card, field, h, head, setText } from "../dom.js";
import { count, percent, seconds } from "../format.js";
import { inspector } from "../inspector.js";
import { McpClient } from "../mcp-client.js";
import { backendName, routeName } from "../names.js";
import { offered, store, watch } from "../store.js";
import { table } from "../table.js";

const FIGURES_EVERY_MS = 15_000;
const FIGURES_MS = 3_600_000;

const placeOf = (target) => `${target.bind} ${target.host} ${target.path}`;

export default function mcp(root) {
  let client = null;
  let listening = null;
  let gone = false;
  // What a check has found, by endpoint; and what the request log has of the last hour, by target.
  const checks = new Map();
  let figures = new Map();
  const place = h("select");
  const credential = h("input", { type: "password", autocomplete: "off", placeholder: "none; sent as authorization" });
  const connect = h("button", { class: "primary" }, "Connect");
  const told = h("p", { role: "status", class: "small muted" });
  const view = inspector(() => client);

  const targets = table("Targets", [
    { title: "Target", value: (row) => row.name },
    { title: "State", value: (row) => checks.get(row.place)?.text ?? "", draw: state },
    { title: "Version", value: (row) => checks.get(row.place)?.version ?? "–" },
    { title: "Kind", value: (row) => row.kind },
    { title: "Address", value: (row) => row.address },
    { title: "Endpoint", value: (row) => `:${row.port}${row.path}`, hint: (row) => routeName(row.route) },
    { title: "Messages", number: true, sort: true, value: (row) => row.messages, text: (row) => count(row.messages) },
    { title: "Errors", number: true, value: (row) => row.figures?.errors ?? -1, draw: errors },
    { title: "Latency", number: true, value: (row) => row.figures?.meanMs ?? -1, text: (row) => (row.figures?.meanMs == null ? "–" : seconds(row.figures.meanMs / 1000)) },
  ], { key: (row) => `${row.place} ${row.name}`, empty: "No route leads to an MCP backend." });
  const sessions = table("Sessions by backend", [
    { title: "Backend", value: (row) => backendName(row.backend), hint: (row) => row.backend },
    { title: "Sessions", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => row.backend, empty: "No MCP session has been opened yet." });
  const calls = table("Messages by method", [
    { title: "Method", value: (row) => row.method },
    { title: "Server", value: (row) => row.server, text: (row) => (row.server === "unknown" ? "" : row.server) },
    { title: "Name", value: (row) => row.resource, text: (row) => (row.resource === "unknown" ? "" : row.resource) },
    { title: "Messages", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => `${row.method} ${row.server} ${row.resource_type} ${row.resource}`, empty: "No MCP message has come yet." });

  function state(row, cell) {
    const found = checks.get(row.place) ?? { text: "not checked", kind: "" };
    const badge = cell.firstElementChild ?? cell.appendChild(h("span"));
    badge.className = `badge ${found.kind}`;
    badge.title = found.why ?? "";
    setText(badge, found.text);
  }

  function errors(row, cell) {
    const own = row.figures;
    setText(cell, own ? `${count(own.errors)} (${percent(own.errors, own.requests)})` : "–");
    cell.classList.toggle("bad-text", Boolean(own?.errors));
  }

  /** Open a session and end it again, at each endpoint: that is what a client finds. */
  async function check() {
    checking.disabled = true;
    for (const target of store.state?.targets.mcp ?? []) {
      if (gone) return;
      checks.set(placeOf(target), { text: "checking", kind: "" });
      draw();
      const one = new McpClient(target, credential.value);
      const begun = performance.now();
      try {
        const server = await one.connect();
        // With several targets the gateway answers in their name.
        const version = target.servers.length === 1 ? `${server.serverInfo?.name ?? ""} ${server.serverInfo?.version ?? ""}`.trim() : "–";
        checks.set(placeOf(target), { text: `up, ${seconds((performance.now() - begun) / 1000)}`, kind: "good", version, why: `revision ${server.protocolVersion}` });
        await one.close();
      } catch (error) {
        checks.set(placeOf(target), { text: "no session", kind: "bad", why: error.message });
      }
    }
    checking.disabled = false;
    draw();
  }

  const checking = h("button", { type: "button", class: "quiet", on: { click: check } }, "Check all");

  async function open(event) {
    event.preventDefault();
    const target = store.state?.targets.mcp[place.selectedIndex];
    if (!target) return;
    connect.disabled = true;
    setText(told, "Connecting.");
    told.className = "small muted";
    listening?.abort();
    try {
      await client?.close();
      const mine = new McpClient(target, credential.value, view.note);
      client = mine;
      const server = await mine.connect();
      if (gone) {
        // Whoever left the view meanwhile wants no session.
        await mine.close();
        return;
      }
      const found = await view.load(server.capabilities);
      if (gone) return;
      setText(told, `${server.serverInfo?.name ?? "server"} ${server.serverInfo?.version ?? ""}, revision ${server.protocolVersion}: ${found}.`);
      listen(mine);
    } catch (error) {
      told.className = "small bad-text wrap";
      setText(told, error.message);
    } finally {
      connect.disabled = false;
    }
  }

  /** Take in what the server sends outside of answers, for as long as the session is open. */
  async function listen(mine) {
    listening = new AbortController();
    const { signal } = listening;
    view.say("What the server sends appears here.");
    try {
      if (!await mine.listen(signal)) view.say("The server has no stream for notifications; those within answers appear here.");
    } catch (error) {
      if (!signal.aborted) view.say(`The stream of notifications ended: ${error.message}`);
    }
  }

  async function learn() {
    if (!store.state?.requestLog || !offered("store")) return;
    const now = Date.now();
    try {
      const found = await need("/api/logs/analytics/summary", { bucketCount: 1, groupBy: ["attributes.mcp.target"],
        timeRange: { from: new Date(now - FIGURES_MS).toISOString(), to: new Date(now).toISOString() } });
      figures = new Map(found.groups.map((one) => [one.key["attributes.mcp.target"], one]));
      draw();
    } catch {
      // The view of requests tells what is wrong with the log.
    }
  }

  function draw() {
    const { state } = store;
    if (!state) return;
    const messages = new Map();
    for (const one of state.mcp) messages.set(one.server, (messages.get(one.server) ?? 0) + one.count);
    targets.update(state.targets.mcp.flatMap((target) => target.servers.map((server) => ({
      ...server, place: placeOf(target), port: target.port, path: target.path, route: target.route, messages: messages.get(server.name) ?? 0, figures: figures.get(server.name),
    }))));
  }

  const nothing = h("p", { class: "empty", hidden: true }, "No route leads to an MCP backend.");
  const asking = h("form", { on: { submit: open } }, h("div", { class: "row" }, field("Endpoint", place), field("Credential", credential), connect));
  const tools = card("Inspector", null, nothing, asking, told);
  root.append(
    head("MCP", "Targets, sessions and messages, and what servers offer"),
    card("Targets", checking, targets.element, h("p", { class: "muted small" }, "Errors and latency are those of the last hour in the request log. A check opens a session and ends it.")),
    h("div", { class: "grid" }, card("Sessions", h("span", { class: "muted small" }, "of all workers"), sessions.element), card("Messages", null, h("div", { class: "tall" }, calls.element))),
    tools, view.element,
  );
  const timer = setInterval(() => document.visibilityState === "visible" && learn(), FIGURES_EVERY_MS);
  let first = true;
  const end = watch(({ state: now }) => {
    if (!now) return;
    tools.hidden = checking.hidden = !offered("relay");
    sessions.update(now.sessions);
    calls.update(now.mcp.slice(0, 50));
    draw();
    if (first) learn();
    first = false;
    const titles = now.targets.mcp.map((one) => `:${one.port}${one.path}: ${one.targets.join(", ")} (${routeName(one.route)})`);
    nothing.hidden = titles.length > 0;
    asking.hidden = !titles.length;
    if (titles.join() !== [...place.options].map((one) => one.text).join()) place.replaceChildren(...titles.map((one) => h("option", {}, one)));
  });
  return () => {
    gone = true;
    clearInterval(timer);
    listening?.abort();
    view.stop();
    client?.close();
    end();
  };
}
