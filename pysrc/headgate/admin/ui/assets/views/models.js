// Tokens and cost by model, and the results of guards.

import { lineChart } from "../charts.js";
import { card, h, head } from "../dom.js";
import { count, money } from "../format.js";
import { series, watch } from "../store.js";
import { table } from "../table.js";

export default function models(root) {
  const chart = lineChart("Tokens per second", [{ name: "Tokens", kind: "violet" }], (value) => count(Math.round(value)));
  const used = table("Token use and cost by model", [
    { title: "Model", value: (row) => row.model.replace(/^llm:model:(.*):\d+$/, "$1") },
    { title: "Provider", value: (row) => row.provider },
    { title: "Requests", number: true, sort: true, value: (row) => row.requests, text: (row) => count(row.requests) },
    { title: "Input tokens", number: true, value: (row) => row.inputTokens, text: (row) => count(row.inputTokens) },
    { title: "Output tokens", number: true, value: (row) => row.outputTokens, text: (row) => count(row.outputTokens) },
    { title: "Per request", number: true, value: (row) => (row.requests ? (row.inputTokens + row.outputTokens) / row.requests : 0),
      text: (row) => (row.requests ? count((row.inputTokens + row.outputTokens) / row.requests) : "–") },
    { title: "Cost", number: true, value: (row) => row.costUsd ?? 0, text: (row) => money(row.costUsd) },
  ], { key: (row) => `${row.provider} ${row.model}`, empty: "No model has been called yet." });
  const guards = table("Checks of guards", [
    { title: "Phase", value: (row) => row.phase },
    { title: "Outcome", value: (row) => row.action },
    { title: "Guard", value: (row) => row.guard, text: (row) => row.guard || "MCP policy server" },
    { title: "Checks", number: true, sort: true, value: (row) => row.count, text: (row) => count(row.count) },
  ], { key: (row) => `${row.phase} ${row.action} ${row.guard}`, empty: "No guard has looked at anything yet." });
  root.append(
    head("Models", "Token use and cost"),
    card("Tokens per second", h("span", { class: "muted small" }, "last five minutes"), chart.element),
    card("By model", h("a", { href: "/ui/playground" }, "Try a model"), used.element),
    card("Guards", null, guards.element),
  );
  return watch(({ state }) => {
    if (!state) return;
    chart.update([series((one) => one.tokens)]);
    used.update(state.models);
    guards.update(state.guardrails);
  });
}
