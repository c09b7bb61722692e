// Models: prices, health, errors, time to first token, tokens and cost over time; and the results of guards.

import { ask } from "../asking.js";
import { lineChart } from "../charts.js";
import { card, h, head, setText } from "../dom.js";
import { count, money, percent, quantile, seconds } from "../format.js";
import { backendName } from "../names.js";
import { ranges } from "../ranges.js";
import { knowing, lately, rates, span, watch } from "../store.js";
import { table } from "../table.js";

// The health of a model is that of its calls in this time.
const HEALTH_SECONDS = 900;
const NONE = [0, 0, 0, null];

const keyOf = (row) => `${row.provider} ${row.model}`;
const nameOf = (row) => backendName(row.model);

/** Return what came of the calls of a model lately: how many, and how many of them failed. */
function recent(points, key) {
  const known = knowing(points, "models", key);
  const [last, first] = [known[known.length - 1]?.models[key] ?? NONE, known[0]?.models[key] ?? NONE];
  return { calls: Math.max(0, last[0] - first[0]), errors: Math.max(0, last[1] - first[1]) };
}

function healthOf({ calls, errors }) {
  if (!calls) return ["no calls", ""];
  const share = errors / calls;
  return share === 0 ? ["healthy", "good"] : share < 0.5 ? [`${percent(errors, calls)} fail`, "warn"] : [share === 1 ? "fails" : `${percent(errors, calls)} fail`, "bad"];
}

/** Return the price of a model as text, null without one: dollars per million tokens, in and out. */
function priceOf(prices, row) {
  const names = [nameOf(row), row.upstream].filter(Boolean);
  const found = prices.find((one) => one.provider === row.provider && names.includes(one.model));
  if (!found) return null;
  const shown = (rate) => (rate === undefined ? "–" : `$${Number(rate)}`);
  return `${shown(found.rates.input)} in, ${shown(found.rates.output)} out`;
}

export default function models(root) {
  let prices = [];
  let points = [];
  let bounds = { firstToken: [], durations: [] };
  let gone = false;
  const range = ranges(paint);
  const charts = {
    tokens: lineChart("Tokens per minute", [{ name: "Tokens", kind: "violet" }], (value) => count(Math.round(value))),
    money: lineChart("Cost per minute", [{ name: "Cost", kind: "good" }], money),
  };
  const first = (row, share) => quantile(bounds.firstToken, row.firstToken, share);
  const used = table("Models", [
    { title: "Model", value: nameOf, hint: (row) => (row.upstream ? `${row.model}, sent as ${row.upstream}` : row.model) },
    { title: "Provider", value: (row) => row.provider, hint: (row) => row.address ?? "" },
    { title: "Health", value: (row) => recent(points, keyOf(row)).errors, draw: health },
    { title: "Price per million", value: (row) => priceOf(prices, row) ?? "", text: (row) => priceOf(prices, row) ?? "none known" },
    { title: "Calls", number: true, sort: true, value: (row) => row.calls, text: (row) => count(row.calls) },
    { title: "Errors", number: true, value: (row) => (row.calls ? row.errors / row.calls : 0), draw: failed },
    { title: "First token p50", number: true, value: (row) => first(row, 0.5) ?? 0, text: (row) => seconds(first(row, 0.5)) },
    { title: "First token p95", number: true, value: (row) => first(row, 0.95) ?? 0, text: (row) => seconds(first(row, 0.95)) },
    { title: "Call p95", number: true, value: (row) => quantile(bounds.durations, row.durations, 0.95) ?? 0, text: (row) => seconds(quantile(bounds.durations, row.durations, 0.95)) },
    { title: "Tokens in", number: true, value: (row) => row.inputTokens, text: (row) => count(row.inputTokens) },
    { title: "Tokens out", number: true, value: (row) => row.outputTokens, text: (row) => count(row.outputTokens) },
    { title: "Cost", number: true, value: (row) => row.costUsd ?? 0, text: (row) => money(row.costUsd) },
  ], { key: keyOf, empty: "No model is configured, and none has been called yet." });
  const guards = table("Checks of guards", [
    { title: "Phase", value: (row) => row.phase },
    { title: "Outcome", value: (row) => row.action },
    { title: "Guard", value: (row) => row.guard, text: (row) => row.guard || "MCP policy server" },
    { title: "Checks", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => `${row.phase} ${row.action} ${row.guard}`, empty: "No guard has looked at anything yet." });

  function health(row, cell) {
    const own = recent(points, keyOf(row));
    const [text, kind] = healthOf(own);
    const badge = cell.firstElementChild ?? cell.appendChild(h("span"));
    badge.className = `badge ${kind}`;
    setText(badge, text);
    badge.title = `${count(own.calls)} calls in the last 15 minutes, ${count(own.errors)} failed`;
  }

  function failed(row, cell) {
    setText(cell, row.errors ? `${count(row.errors)} (${percent(row.errors, row.calls)})` : "0");
    cell.classList.toggle("bad-text", row.errors > 0);
  }

  /** Return a row for each model that is configured or was called. */
  function rows(state) {
    const called = new Set(state.models.map(keyOf));
    const known = new Map(state.targets.served.map((one) => [`${one.provider} ${one.name}`, one]));
    const zeros = { calls: 0, errors: 0, inputTokens: 0, outputTokens: 0, costUsd: null, firstToken: [], durations: [] };
    return [
      ...state.models.map((row) => ({ ...row, ...(({ address, upstream }) => ({ address, upstream }))(known.get(`${row.provider} ${nameOf(row)}`) ?? {}) })),
      ...[...known.values()].map((one) => ({ ...zeros, ...one, model: one.name })).filter((row) => !called.has(keyOf(row))),
    ];
  }

  function paint() {
    const shown = lately(range.seconds());
    const minutely = (read) => [rates(shown, read).map((one) => ({ ...one, value: one.value * 60 }))];
    charts.tokens.update(minutely((one) => one.tokens), ...span(range.seconds()));
    charts.money.update(minutely((one) => one.costUsd ?? 0), ...span(range.seconds()));
  }

  async function learnPrices() {
    try {
      const { status, found } = await ask("/api/costs/models");
      if (status === 200 && !gone) prices = found.models;
    } catch {
      // Without a catalog there are no prices; the table says so.
    }
  }

  root.append(
    head("Models", "Prices, health, tokens and cost"),
    card("Models", h("a", { href: "/ui/playground" }, "Try a model"), used.element),
    h("div", { class: "card-head" }, h("h2", {}, "Over time"), range.element),
    h("div", { class: "grid wide" }, card("Tokens per minute", null, charts.tokens.element), card("Cost per minute", null, charts.money.element)),
    card("Guards", null, guards.element),
  );
  learnPrices();
  const end = watch(({ state }) => {
    if (!state) return;
    bounds = state.modelBounds;
    points = lately(HEALTH_SECONDS);
    used.update(rows(state));
    guards.update(state.guardrails);
    paint();
  });
  return () => {
    gone = true;
    end();
  };
}
