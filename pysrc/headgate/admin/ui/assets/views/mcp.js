// MCP servers: targets with their state and figures, sessions and messages, and an inspector of what they offer.

import { need } from "../asking.js";
import { card, field, h, head, setText } from "../dom.js";
import { age, count, local, percent, seconds } from "../format.js";
import { inspector } from "../inspector.js";
import { McpClient } from "../mcp-client.js";
import { backendName, routeName } from "../names.js";
import { offered, store, watch } from "../store.js";
import { table } from "../table.js";

const FIGURES_EVERY_MS = 3000;
const STATES = { up: "good", down: "bad", unknown: "" };

const placeOf = (target) => `${target.bind} ${target.host} ${target.path}`;

export default function mcp(root) {
  let client = null;
  let listening = null;
  let gone = false;
  // What a check has found, by endpoint; and what the gateway knows of targets from its own calls.
  const checks = new Map();
  let known = new Map();
  const place = h("select");
  const credential = h("input", { type: "password", autocomplete: "off", placeholder: "none; sent as authorization" });
  const connect = h("button", { class: "primary" }, "Connect");
  const told = h("p", { role: "status", class: "small muted" });
  const view = inspector(() => client);

  const targets = table("Targets", [
    { title: "Target", value: (row) => row.name },
    { title: "State", value: (row) => row.known?.state ?? "", draw: state },
    { title: "Server", value: version, hint: (row) => (row.known?.protocol ? `revision ${row.known.protocol}` : "") },
    { title: "Address", value: (row) => `${row.address} (${row.kind})` },
    { title: "Endpoint", value: (row) => `:${row.port}${row.path}`, hint: (row) => routeName(row.route) },
    { title: "Check", value: (row) => checks.get(row.place)?.text ?? "", draw: checked },
    { title: "Calls", number: true, sort: true, value: (row) => row.known?.calls ?? 0, text: (row) => count(row.known?.calls ?? 0) },
    { title: "Errors", number: true, value: (row) => failed(row), draw: errors },
    { title: "p50", number: true, value: (row) => row.known?.p50Ms ?? -1, text: (row) => took(row.known?.p50Ms) },
    { title: "p95", number: true, value: (row) => row.known?.p95Ms ?? -1, text: (row) => took(row.known?.p95Ms) },
    { title: "Last error", wide: true, value: (row) => row.known?.error ?? "", draw: lastError },
  ], { key: (row) => `${row.place} ${row.name}`, empty: "No route leads to an MCP backend." });
  const sessions = table("Sessions by backend", [
    { title: "Backend", value: (row) => backendName(row.backend), hint: (row) => row.backend },
    { title: "Sessions", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => row.backend, empty: "No MCP session has been opened yet." });
  const calls = table("Messages by method", [
    { title: "Method", value: (row) => row.method },
    { title: "Server", value: (row) => row.server, text: (row) => (row.server === "unknown" ? "" : row.server) },
    { title: "Name", value: (row) => row.resource, text: (row) => (row.resource === "unknown" ? "–" : row.resource) },
    { title: "Messages", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => `${row.method} ${row.server} ${row.resource_type} ${row.resource}`, empty: "No MCP message has come yet." });

  function badge(cell, kind, text, why) {
    const found = cell.firstElementChild ?? cell.appendChild(h("span"));
    found.className = `badge ${kind}`;
    found.title = why ?? "";
    setText(found, text);
  }

  const ago = (time) => `${age((store.state?.time ?? time) - time)} ago`;

  function state(row, cell) {
    const own = row.known;
    if (!own) return;
    const why = own.state === "unknown" ? "no call has come yet" : [own.answered && `answered ${ago(own.answered)}`, own.failed && `failed ${ago(own.failed)}`].filter(Boolean).join(", ");
    badge(cell, STATES[own.state], own.state, why);
  }

  function version({ known: own }) {
    return [own?.name, own?.version].filter(Boolean).join(" ") || "–";
  }

  function checked(row, cell) {
    const found = checks.get(row.place) ?? { text: "not checked", kind: "" };
    badge(cell, found.kind, found.text, found.why);
  }

  function failed({ known: own }) {
    return own ? own.errors + own.failures : 0;
  }

  function took(milliseconds) {
    return milliseconds == null ? "–" : seconds(milliseconds / 1000);
  }

  function errors(row, cell) {
    const own = row.known;
    const all = failed(row);
    setText(cell, all ? `${count(all)} (${percent(all, own.calls)})` : "0");
    cell.title = own ? `${count(own.errors)} answered with an error, ${count(own.failures)} not answered` : "";
    cell.classList.toggle("bad-text", all > 0);
  }

  function lastError({ known: own }, cell) {
    setText(cell, own?.error ? `${own.error}, ${ago(own.erred)}` : "–");
    cell.title = own?.error ? `${local(own.erred)}: ${own.error}` : "";
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
        checks.set(placeOf(target), { text: `up, ${seconds((performance.now() - begun) / 1000)}`, kind: "good", why: `revision ${server.protocolVersion}` });
        await one.close();
      } catch (error) {
        checks.set(placeOf(target), { text: "no session", kind: "bad", why: error.message });
      }
    }
    checking.disabled = false;
    learn();
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
    try {
      const { targets: rows } = await need("/ui/api/mcp");
      if (gone) return;
      known = new Map(rows.map((one) => [`${one.backend} ${one.target}`, one]));
      draw();
    } catch {
      // The state of the gateway tells that it does not answer.
    }
  }

  function draw() {
    const { state: now } = store;
    if (!now) return;
    targets.update(now.targets.mcp.flatMap((target) => target.servers.map((server) => ({
      ...server, place: placeOf(target), port: target.port, path: target.path, route: target.route, known: known.get(`${target.backend} ${server.name}`),
    }))));
  }

  const nothing = h("p", { class: "empty", hidden: true }, "No route leads to an MCP backend.");
  const asking = h("form", { on: { submit: open } }, h("div", { class: "row" }, field("Endpoint", place), field("Credential", credential), connect));
  const tools = card("Inspector", null, nothing, asking, told);
  root.append(
    head("MCP", "Targets, sessions and messages, and what servers offer"),
    card("Targets", checking, targets.element, h("p", { class: "muted small" }, "State, version, errors and latency are those of the calls that clients have made since the start. A check opens a session at each endpoint and ends it.")),
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
