// The gateway at a glance.

import { said, say } from "../address.js";
import { lineChart } from "../charts.js";
import { card, facts, h, head, tile } from "../dom.js";
import { age, count, money, percent, quantile, rate, seconds } from "../format.js";
import { hourly, perSecond, series, watch } from "../store.js";
import { table } from "../table.js";

export default function overview(root) {
  const tiles = {
    requests: tile("Requests/s"),
    errors: tile("Server errors"),
    latency: tile("Latency p95"),
    sessions: tile("MCP sessions"),
    tokens: tile("Tokens/min"),
    cost: tile("Cost of models"),
  };
  const chart = lineChart("Requests per second", [{ name: "Requests", kind: "requests" }, { name: "Server errors", kind: "errors" }], rate);
  const range = h("select", { "aria-label": "Range of the chart" }, h("option", { value: "" }, "last five minutes"), h("option", { value: "hour" }, "last hour"));
  range.value = said(["range"]).range === "hour" ? "hour" : "";
  range.addEventListener("change", () => {
    say({ range: range.value });
    paint();
  });
  const routes = table("Busiest routes", [
    { title: "Route", value: (row) => row.name },
    { title: "Requests", number: true, sort: true, value: (row) => row.requests, text: (row) => count(row.requests) },
    { title: "Errors", number: true, value: (row) => row.serverErrors, text: (row) => count(row.serverErrors) },
  ], { key: (row) => row.name, empty: "No request has come yet." });
  const workers = table("Workers", [
    { title: "Worker", value: (row) => row.index },
    { title: "Process", number: true, value: (row) => row.pid ?? 0, text: (row) => row.pid ?? "restarting" },
    { title: "Connections", number: true, value: (row) => row.connections ?? 0, text: (row) => (row.connections === null ? "–" : count(row.connections)) },
    { title: "CPU time", number: true, value: (row) => row.cpu_seconds ?? 0, text: (row) => (row.cpu_seconds === null ? "–" : seconds(row.cpu_seconds)) },
  ], { key: (row) => row.index });
  const about = h("div");
  root.append(
    head("Overview", "What the gateway does now"),
    h("div", { class: "tiles" }, Object.values(tiles).map((one) => one.element)),
    card("Traffic", range, chart.element),
    h("div", { class: "grid" }, card("Busiest routes", h("a", { href: "/ui/traffic" }, "All traffic"), routes.element), card("Workers", null, workers.element, about)),
  );

  function paint() {
    // Of the hour only the gateway knows all: this page may have been opened a moment ago.
    if (range.value) chart.update([hourly((one) => one.requests), hourly((one) => one.serverErrors)], 240, 15);
    else chart.update([series((one) => one.requests), series((one) => one.errors)]);
  }

  return watch(({ state, history }) => {
    if (!state) return;
    const newest = history[history.length - 1];
    const older = history[Math.max(0, history.length - 61)];
    const delta = newest.counts.map((one, at) => (history.length > 1 ? one - older.counts[at] : one));
    const [asked, failed] = [newest.requests - older.requests, newest.errors - older.errors];
    tiles.requests.set(rate(perSecond((one) => one.requests)), `${count(newest.requests)} in total`);
    tiles.errors.set(percent(failed, asked), `${count(newest.errors)} in total`, failed > 0);
    tiles.latency.set(seconds(quantile(state.bounds, delta, 0.95)), "last minute");
    tiles.sessions.set(count(state.sessions.reduce((all, one) => all + one.count, 0)), "open now");
    const tokens = perSecond((one) => one.tokens, 60);
    tiles.tokens.set(tokens === null ? "–" : count(Math.round(tokens * 60)), `${count(newest.tokens)} in total`);
    const priced = state.models.filter((one) => one.costUsd !== null);
    tiles.cost.set(priced.length ? money(priced.reduce((all, one) => all + one.costUsd, 0)) : "–", priced.length ? "since the start" : "no prices known");
    paint();
    routes.update(state.routes.slice(0, 8));
    workers.update(state.workers);
    about.replaceChildren(facts([
      ["Version", state.version], ["Running for", age(state.time - state.started)], ["Configuration", `generation ${state.generation}`],
      ["Workers replaced", String(state.restarts)], ["Connections taken", count(state.connections)], ["Refused requests", count(state.refused)],
    ]));
  });
}
