// Requests, tokens, cost and time over time, stacked by the groups of any attribute.

import { said, say } from "../address.js";
import { ask, need } from "../asking.js";
import { bars } from "../bars.js";
import { card, field, h, head, setText } from "../dom.js";
import { count, money, percent, seconds } from "../format.js";
import { backendName, routeName } from "../names.js";
import { offered, store } from "../store.js";
import { table } from "../table.js";
import { ATTRIBUTES, RANGES, absent } from "./requests.js";

// The ledger of virtual keys has days, and knows every request with a key.
const LEDGER = [["Virtual key", "ledger.key"], ["Team of the key", "ledger.team"], ["Model, by the ledger", "ledger.model"]];
const GROUPS = [["Model", "requestModel"], ["Provider", "provider"], ["Answering model", "responseModel"], ["Status", "httpStatus"], ...ATTRIBUTES, ...LEDGER];
const OTHER = "other";
const EVERY_MS = 10_000;
// Groups with a colour of their own; what is left is one part.
const COLOURS = 6;
const EMPTY = { requests: 0, errors: 0, totalTokens: 0, cost: 0 };
const DAY_MS = 86_400_000;

/** Return what the ledger has of some days in the form of the summary of the request log. */
function ledgerSummary(rows, by, from, to) {
  const sums = (row) => ({ requests: row.requests, errors: 0, totalTokens: row.inputTokens + row.outputTokens, cost: Number(row.cost) });
  const add = (a, b) => Object.fromEntries(Object.keys(EMPTY).map((name) => [name, a[name] + b[name]]));
  const groups = new Map();
  const buckets = [];
  for (let at = from; at <= to; at += DAY_MS) {
    const day = new Date(at).toISOString().slice(0, 10);
    const own = rows.filter((row) => row.day === day).map((row) => ({ key: { [by]: row[by] || null }, ...sums(row) }));
    buckets.push({ start: `${day}T00:00:00Z`, end: new Date(at + DAY_MS).toISOString(), ...own.reduce(add, EMPTY), groups: own });
    for (const one of own) {
      const name = one.key[by];
      groups.set(name, { key: one.key, ...add(groups.get(name) ?? EMPTY, one) });
    }
  }
  return { buckets, groups: [...groups.values()].sort((a, b) => b.requests - a.requests) };
}

export default function analytics(root) {
  let found = null;
  let chosen = null;
  let asked = 0;
  const range = h("select", { on: { change: load } }, RANGES.map(([name, value]) => h("option", { value }, `Last ${name}`)));
  range.value = "86400";
  const known = GROUPS.filter(([, value]) => offered("keys") || !value.startsWith("ledger."));
  const group = h("select", { on: { change: regroup } }, [...known, ["Another attribute", OTHER]].map(([name, value]) => h("option", { value }, name)));
  const attribute = h("input", { type: "text", class: "mono", autocomplete: "off", spellcheck: "false", placeholder: "http.host", on: { change: regroup } });
  const named = h("div", { class: "field", hidden: true }, field("Attribute", attribute));
  const told = h("p", { role: "status", class: "small muted" });
  const all = h("button", { type: "button", class: "quiet", hidden: true, on: { click: () => choose(null) } }, "Show everything");
  const requests = h("a", { class: "small", hidden: true, href: "/ui/requests" }, "Show these requests");
  const charts = [
    ["Requests", bars("Requests", (value) => count(value)), (one) => one.requests],
    ["Errors", bars("Errors", (value) => count(value)), (one) => one.errors],
    ["Tokens", bars("Tokens", (value) => count(value)), (one) => one.totalTokens],
    ["Cost", bars("Cost", (value) => money(value)), (one) => one.cost],
  ];
  const groups = table("By group", [
    { title: "Group", value: (row) => row.name, hint: (row) => String(row.value) },
    { title: "Requests", number: true, sort: true, value: (row) => row.requests, text: (row) => count(row.requests) },
    { title: "Share", number: true, value: (row) => row.requests, text: (row) => percent(row.requests, sum((one) => one.requests)) },
    { title: "Errors", number: true, value: (row) => row.errors, text: (row) => count(row.errors) },
    { title: "Tokens", number: true, value: (row) => row.totalTokens, text: (row) => count(row.totalTokens) },
    { title: "Cost", number: true, value: (row) => row.cost, text: (row) => money(row.cost) },
    { title: "Time taken", number: true, value: (row) => row.meanMs ?? 0, text: (row) => (row.meanMs == null ? "–" : seconds(row.meanMs / 1000)) },
  ], { key: (row) => row.name, empty: "No request in this time.", choose: (row) => choose(row.name) });

  const by = () => (group.value === OTHER ? `attributes.${attribute.value.trim()}` : group.value);
  const keyName = () => by().replace("ledger.", "");

  /** Return the name of a group, as somebody wrote it. */
  function nameOf(key) {
    const value = key[keyName()];
    if (value === null || value === undefined || value === "") return "none";
    if (by() === "attributes.route") return routeName(String(value));
    return by() === "requestModel" ? backendName(String(value)) : String(value);
  }

  const sum = (value) => found.buckets.reduce((total, one) => total + value(one), 0);

  function choose(name) {
    chosen = name;
    draw();
  }

  function regroup() {
    chosen = null;
    named.hidden = group.value !== OTHER;
    if (group.value !== OTHER || attribute.value.trim()) load();
    else attribute.focus();
  }

  async function summary(from, to) {
    if (!by().startsWith("ledger.")) {
      const timeRange = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
      return need("/api/logs/analytics/summary", { timeRange, bucketCount: 48, groupBy: [by()] });
    }
    const [first, last] = [from, to].map((one) => Math.floor(one / DAY_MS) * DAY_MS);
    const day = (one) => new Date(one).toISOString().slice(0, 10);
    const { status, found: answer } = await ask(`/api/spend?from=${day(first)}&to=${day(last)}&by=day,${keyName()}`);
    if (status !== 200) throw new Error(String(answer));
    return ledgerSummary(answer.rows, keyName(), first, last);
  }

  async function load() {
    const number = (asked += 1);
    const now = Date.now();
    say({ range: range.value === "86400" ? "" : range.value, by: by() === "requestModel" ? "" : by() });
    try {
      const answer = await summary(now - range.value * 1000, now);
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
    const own = (bucket, name) => bucket.groups?.find((one) => nameOf(one.key) === name) ?? EMPTY;
    const names = chosen === null ? found.groups.slice(0, COLOURS).map((one) => nameOf(one.key)) : [chosen];
    for (const [, chart, value] of charts) {
      const parts = names.map((name, at) => ({ name, kind: String(at + 1), value: (bucket) => value(own(bucket, name)) }));
      const rest = (bucket) => Math.max(0, value(bucket) - names.reduce((all, name) => all + value(own(bucket, name)), 0));
      if (chosen === null && found.buckets.some((bucket) => rest(bucket) > 1e-9)) parts.push({ name: "all others", kind: "7", value: rest });
      chart.update(found.buckets, parts);
    }
    groups.update(found.groups.map((one) => ({ ...one, name: nameOf(one.key), value: one.key[keyName()] })));
    all.hidden = chosen === null;
    const shown = chosen === null ? found.buckets : found.buckets.map((bucket) => own(bucket, chosen));
    const part = shown.reduce((total, one) => total + one.requests, 0);
    const errors = shown.reduce((total, one) => total + one.errors, 0);
    setText(told, `${chosen === null ? "Everything" : chosen}: ${count(part)} requests, ${percent(errors, part)} failed`);
    link();
  }

  /** Lead to the requests of the chosen group. */
  function link() {
    const row = found.groups.find((one) => nameOf(one.key) === chosen);
    const value = row?.key[keyName()];
    const fields = { httpStatus: "status", provider: "provider", requestModel: "model" };
    const query = by().startsWith("attributes.") ? { attribute: `${by().slice("attributes.".length)}=${value}` } : fields[by()] ? { [fields[by()]]: String(value) } : null;
    requests.hidden = chosen === null || value === null || value === undefined || query === null;
    if (!requests.hidden) requests.setAttribute("href", `/ui/requests?${new URLSearchParams({ ...query, range: range.value })}`);
  }

  const timer = setInterval(() => document.visibilityState === "visible" && load(), EVERY_MS);
  function leave() {
    clearInterval(timer);
    asked += 1;
  }

  root.append(
    head("Analytics", "From the records of the request log"),
    card("Range and grouping", h("div", { class: "row middle" }, requests, all), h("div", { class: "row" }, field("Time", range), field("Group by", group), named), told),
    h("div", { class: "grid wide" }, charts.map(([title, chart]) => card(title, null, chart.element))),
    card("By group", null, groups.element),
  );
  if (store.state && !store.state.requestLog) {
    root.replaceChildren(head("Analytics", ""), absent());
    leave();
    return null;
  }
  const before = said(["range", "by"]);
  if (RANGES.some(([, value]) => String(value) === before.range)) range.value = before.range;
  if (known.some(([, value]) => value === before.by)) group.value = before.by;
  else if (before.by?.startsWith("attributes.")) {
    group.value = OTHER;
    attribute.value = before.by.slice("attributes.".length);
    named.hidden = false;
  }
  load();
  return leave;
}
