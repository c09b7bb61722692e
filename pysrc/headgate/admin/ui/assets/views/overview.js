// The gateway at a glance.

import { lineChart } from "../charts.js";
import { card, facts, h, head, tile } from "../dom.js";
import { age, count, local, money, percent, quantile, rate, seconds } from "../format.js";
import { routeName } from "../names.js";
import { ranges } from "../ranges.js";
import { lately, latencies, perSecond, rates, span, watch } from "../store.js";
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
  const range = ranges(paint);
  const charts = {
    traffic: lineChart("Requests per second", [{ name: "Requests", kind: "requests" }, { name: "4xx", kind: "warn" }, { name: "5xx", kind: "errors" }], rate),
    latency: lineChart("Latency", [{ name: "p50", kind: "blue" }, { name: "p95", kind: "violet" }], seconds),
    tokens: lineChart("Tokens per minute", [{ name: "Tokens", kind: "violet" }], (value) => count(Math.round(value))),
    money: lineChart("Cost per minute", [{ name: "Cost", kind: "good" }], money),
  };
  let bounds = [];
  const routes = table("Busiest routes", [
    { title: "Route", value: (row) => routeName(row.name), hint: (row) => row.name },
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
    h("div", { class: "card-head" }, h("h2", {}, "Over time"), range.element),
    h("div", { class: "grid wide" }, card("Requests per second", null, charts.traffic.element), card("Latency", null, charts.latency.element),
      card("Tokens per minute", null, charts.tokens.element), card("Cost per minute", null, charts.money.element)),
    h("div", { class: "grid" }, card("Busiest routes", h("a", { href: "/ui/traffic" }, "All traffic"), routes.element), card("Workers", null, workers.element, about)),
  );

  function paint() {
    const points = lately(range.seconds());
    const [from, to] = span(range.seconds());
    charts.traffic.update(["requests", "clientErrors", "serverErrors"].map((name) => rates(points, (one) => one[name])), from, to);
    charts.latency.update([0.5, 0.95].map((share) => latencies(points, bounds, share)), from, to);
    const minutely = (read) => [rates(points, read).map((one) => ({ ...one, value: one.value * 60 }))];
    charts.tokens.update(minutely((one) => one.tokens), from, to);
    charts.money.update(minutely((one) => one.costUsd ?? 0), from, to);
  }

  return watch(({ state, history }) => {
    if (!state) return;
    bounds = state.bounds;
    const newest = history[history.length - 1];
    const older = history[Math.max(0, history.length - 61)];
    const delta = newest.counts.map((one, at) => (history.length > 1 ? one - older.counts[at] : one));
    const [asked, failed] = [newest.requests - older.requests, newest.serverErrors - older.serverErrors];
    tiles.requests.set(rate(perSecond((one) => one.requests)), `${count(newest.requests)} in total`);
    tiles.errors.set(percent(failed, asked), `${count(newest.serverErrors)} in total`, failed > 0);
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
      ["Version", state.version], ["Running for", `${age(state.time - state.started)}, since ${local(state.started)}`], ["Configuration", `generation ${state.generation}`],
      ["Workers replaced", String(state.restarts)], ["Connections taken", count(state.connections)], ["Refused requests", count(state.refused)],
    ]));
  });
}
