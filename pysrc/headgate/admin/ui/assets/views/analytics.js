// Requests, tokens and cost over time, in groups.

import { need } from "../asking.js";
import { bars } from "../bars.js";
import { card, field, h, head, setText } from "../dom.js";
import { count, money, percent } from "../format.js";
import { store } from "../store.js";
import { table } from "../table.js";
import { RANGES, absent } from "./requests.js";

const GROUPS = [["Model", "requestModel"], ["Provider", "provider"], ["Answering model", "responseModel"], ["Status", "httpStatus"], ["Route", "attributes.route"],
  ["User of a token", "attributes.jwt.sub"]];
const EVERY_MS = 10_000;

export default function analytics(root) {
  let found = null;
  let chosen = null;
  let asked = 0;
  const range = h("select", { on: { change: load } }, RANGES.map(([name, value]) => h("option", { value }, `Last ${name}`)));
  range.value = "86400";
  const group = h("select", { on: { change: regroup } }, GROUPS.map(([name, value]) => h("option", { value }, name)));
  const told = h("p", { role: "status", class: "small muted" });
  const all = h("button", { type: "button", class: "quiet", hidden: true, on: { click: () => choose(null) } }, "Show everything");
  const charts = [
    ["Requests", bars("Requests", (value) => count(value)), (one) => one.requests, (one) => one.errors],
    ["Tokens", bars("Tokens", (value) => count(value)), (one) => one.totalTokens],
    ["Cost", bars("Cost", (value) => money(value)), (one) => one.cost],
  ];
  const groups = table("By group", [
    { title: "Group", value: (row) => row.name },
    { title: "Requests", number: true, sort: true, value: (row) => row.requests, text: (row) => count(row.requests) },
    { title: "Share", number: true, value: (row) => row.requests, text: (row) => percent(row.requests, sum((one) => one.requests)) },
    { title: "Errors", number: true, value: (row) => row.errors, text: (row) => count(row.errors) },
    { title: "Tokens", number: true, value: (row) => row.totalTokens, text: (row) => count(row.totalTokens) },
    { title: "Cost", number: true, value: (row) => row.cost, text: (row) => money(row.cost) },
  ], { key: (row) => row.name, empty: "No request in this time.", choose: (row) => choose(row.name) });

  const nameOf = (key) => String(key[group.value] ?? "none");
  const sum = (value) => found.buckets.reduce((total, one) => total + value(one), 0);

  function choose(name) {
    chosen = name;
    draw();
  }

  function regroup() {
    chosen = null;
    load();
  }

  async function load() {
    const number = (asked += 1);
    const now = Date.now();
    const timeRange = { from: new Date(now - range.value * 1000).toISOString(), to: new Date(now).toISOString() };
    try {
      const answer = await need("/api/logs/analytics/summary", { timeRange, bucketCount: 48, groupBy: [group.value] });
      if (number !== asked) return;
      found = answer;
      told.className = "small muted";
      draw();
    } catch (error) {
      if (number !== asked) return;
      if (error.message.includes("not configured")) {
        root.replaceChildren(head("Analytics", ""), absent());
        leave();
        return;
      }
      told.className = "small bad-text";
      setText(told, error.message);
    }
  }

  function draw() {
    const empty = { requests: 0, errors: 0, totalTokens: 0, cost: 0 };
    const shown = chosen === null ? found.buckets : found.buckets.map((bucket) => ({
      ...bucket, ...(bucket.groups?.find((one) => nameOf(one.key) === chosen) ?? empty),
    }));
    for (const [, chart, value, bad] of charts) chart.update(shown, value, bad);
    groups.update(found.groups.map((one) => ({ ...one, name: nameOf(one.key) })));
    all.hidden = chosen === null;
    const part = shown.reduce((total, one) => total + one.requests, 0);
    const errors = shown.reduce((total, one) => total + one.errors, 0);
    setText(told, `${chosen === null ? "Everything" : chosen}: ${count(part)} requests, ${percent(errors, part)} failed`);
  }

  const timer = setInterval(() => document.visibilityState === "visible" && load(), EVERY_MS);
  function leave() {
    clearInterval(timer);
    asked += 1;
  }

  root.append(
    head("Analytics", "From the records of the request log"),
    card("Time", all, h("div", { class: "row" }, field("Time", range), field("Group by", group)), told),
    card("Requests", null, charts[0][1].element),
    h("div", { class: "grid" }, charts.slice(1).map(([title, chart]) => card(title, null, chart.element))),
    card("By group", null, groups.element),
  );
  if (store.state && !store.state.requestLog) {
    root.replaceChildren(head("Analytics", ""), absent());
    leave();
    return null;
  }
  load();
  return leave;
}
