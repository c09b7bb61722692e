// Requests, errors and latencies by route and backend.

import { need } from "../asking.js";
import { histogram, lineChart, spark } from "../charts.js";
import { card, h, head, setText } from "../dom.js";
import { bound, bytes, count, percent, quantile, rate, seconds } from "../format.js";
import { backendName, routeName } from "../names.js";
import { ranges } from "../ranges.js";
import { intervals, knowing, latencies, lately, perSecond, rates, span, watch } from "../store.js";
import { table } from "../table.js";

// Requests, client errors and server errors of what had none.
const NONE = [0, 0, 0];
const TREND_SECONDS = 300;
// Quantiles, and where a point of the hour has those of a route or backend.
const QUANTILES = [[0.5, 3], [0.95, 4]];
const shownName = { routes: routeName, backends: backendName };

function columns(kind, store) {
  const of = (row) => (point) => (point[kind][row.name] ?? NONE)[0];
  const per = (row, share) => quantile(store().bounds, row.latency.counts, share) ?? 0;
  return [
    { title: kind === "routes" ? "Route" : "Backend", value: (row) => shownName[kind](row.name), hint: (row) => row.name },
    { title: "Per second", number: true, value: (row) => perSecond(of(row)) ?? 0, text: (row) => rate(perSecond(of(row))) },
    { title: "Trend", value: (row) => row.requests, draw: (row, cell) => spark(cell, rates(knowing(lately(TREND_SECONDS), kind, row.name), of(row))) },
    { title: "Requests", number: true, sort: true, value: (row) => row.requests, text: (row) => count(row.requests) },
    { title: "4xx", number: true, value: (row) => row.clientErrors, text: (row) => count(row.clientErrors) },
    { title: "5xx", number: true, value: (row) => row.serverErrors, draw: (row, cell) => {
      setText(cell, row.serverErrors ? `${count(row.serverErrors)} (${percent(row.serverErrors, row.requests)})` : "0");
      cell.classList.toggle("bad-text", row.serverErrors > 0);
    } },
    { title: "p50", number: true, value: (row) => per(row, 0.5), text: (row) => seconds(per(row, 0.5)) },
    { title: "p95", number: true, value: (row) => per(row, 0.95), text: (row) => seconds(per(row, 0.95)) },
    { title: "p99", number: true, value: (row) => per(row, 0.99), text: (row) => seconds(per(row, 0.99)) },
    { title: "Sent", number: true, value: (row) => row.bytes, text: (row) => bytes(row.bytes) },
  ];
}

// What guards see: one row for each guard and body, of the rows for each text.
function bodies(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = [row.route, row.model, row.side, row.number, row.guard, row.shape].join(" ");
    const one = found.get(key) ?? { ...row, key, sees: [], misses: [] };
    found.set(key, one);
    if (row.seen === "yes") one.sees.push(row.text);
    else one.misses.push(`${row.seen === "refusals" ? "part of " : ""}${row.text} (${row.why.replaceAll("`", "")})`);
  }
  return [...found.values()];
}

function coverage() {
  return table("What guards see, by body", [
    { title: "Guard", value: (row) => `${row.guard}, ${row.side} ${row.number}` },
    { title: "Model and route", value: (row) => `${row.model} at ${row.route}` },
    { title: "Body", value: (row) => row.shape },
    { title: "Sees", value: (row) => row.sees.join(", ") || "nothing" },
    { title: "Does not see", value: (row) => row.misses.join(", ") || "–" },
  ], { key: (row) => row.key, empty: "This route has no guards." });
}

export default function traffic(root) {
  let kind = "routes";
  let name = null;
  let state = null;
  const range = ranges(() => draw());
  const title = h("h2", {}, "Latency of all requests");
  const all = h("button", { type: "button", class: "quiet", hidden: true, on: { click: () => choose("routes", null) } }, "Show all requests");
  const chart = lineChart("Requests per second", [{ name: "Requests", kind: "requests" }, { name: "4xx", kind: "warn" }, { name: "5xx", kind: "errors" }], rate);
  const slow = lineChart("Latency", [{ name: "p50", kind: "blue" }, { name: "p95", kind: "violet" }], seconds);
  const latency = histogram("Latency since the start", bound);
  const tables = Object.fromEntries(["routes", "backends"].map((one) => [one, table(
    one === "routes" ? "Traffic by route" : "Traffic by backend", columns(one, () => state),
    { key: (row) => row.name, empty: "No request has come yet.", choose: (row) => choose(one, row.name) },
  )]));

  const guards = coverage();
  const scope = h("span", { class: "muted" }, "of the chosen route, or of all");
  const guarded = card("What guards see", scope, guards.element);
  guards.element.classList.add("wrapped");
  let seen = [];
  // Of many routes the answer ends early: what it lacks of a route is asked for when the route is chosen.
  let cut = false;
  let gone = false;
  const asked = new Map();
  guarded.hidden = true;

  const shown = { routes: h("span", { class: "muted" }), backends: h("span", { class: "muted" }) };

  function choose(which, chosen) {
    kind = which;
    name = chosen;
    draw();
    if (cut && which === "routes" && chosen !== null) learn(chosen);
  }

  /** Return what guards of the chosen route see, or those of all. */
  function visible() {
    if (kind !== "routes" || name === null) return seen;
    return asked.get(name) ?? seen.filter((row) => row.route === name);
  }

  async function learn(route) {
    const known = asked.get(route);
    if (known) return;
    try {
      const { rows } = await need(`/ui/api/guards?route=${encodeURIComponent(route)}`);
      if (gone) return;
      asked.clear();
      asked.set(route, bodies(rows));
      draw();
    } catch {
      // The next choice of the route asks again.
    }
  }

  function draw() {
    if (!state) return;
    const rows = name === null ? [state.all] : state[kind].filter((row) => row.name === name);
    const counts = state.bounds.map(() => 0).concat(0);
    for (const row of rows) row.latency.counts.forEach((one, at) => { counts[at] += one; });
    const names = ["requests", "clientErrors", "serverErrors"];
    const of = (at) => (point) => (name === null ? point[names[at]] : (point[kind][name] ?? NONE)[at]);
    setText(title, name === null ? "All requests" : `${kind === "routes" ? "Route" : "Backend"} ${shownName[kind](name)}`);
    all.hidden = name === null;
    const every = lately(range.seconds());
    const points = name === null ? every : knowing(every, kind, name);
    chart.update([0, 1, 2].map((at) => rates(points, of(at))), ...span(range.seconds()));
    // A route or backend has the quantiles that the gateway keeps: those of every 15 seconds.
    slow.update(QUANTILES.map(([share, at]) => (name === null ? latencies(points, state.bounds, share) : intervals(kind, name, at, range.seconds()))), ...span(range.seconds()));
    guards.update(visible());
    latency.update(state.bounds, counts);
  }

  root.append(
    head("Traffic", "Choose a route or backend to see its own figures"),
    h("section", { class: "card" }, h("div", { class: "card-head" }, title, h("div", { class: "row middle" }, all, range.element)),
      h("div", { class: "grid" },
        h("div", {}, h("h3", { class: "muted" }, "Requests per second"), chart.element),
        h("div", {}, h("h3", { class: "muted" }, "Latency"), slow.element)),
      h("h3", { class: "muted" }, "Latency since the start, requests by duration"), latency.element),
    h("div", { class: "grid tables" }, card("Routes", shown.routes, tables.routes.element), card("Backends", shown.backends, tables.backends.element)),
    guarded,
  );
  need("/ui/api/guards").then((found) => {
    if (gone) return;
    seen = bodies(found.rows);
    cut = found.cut;
    if (cut) setText(scope, `of the chosen route, or of all, of which these are the first ${count(seen.length)} bodies`);
    guarded.hidden = seen.length === 0;
    draw();
  }, () => {});
  const end = watch((store) => {
    state = store.state;
    if (!state) return;
    tables.routes.update(state.routes);
    tables.backends.update(state.backends);
    for (const one of ["routes", "backends"]) {
      const left = state.rows[one] > state[one].length;
      setText(shown[one], left ? `the busiest ${count(state[one].length)} of ${count(state.rows[one])}` : "");
    }
    draw();
  });
  return () => {
    gone = true;
    end();
  };
}
