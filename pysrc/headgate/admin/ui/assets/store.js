// The state of the gateway, fetched every second, and rates computed from it.

import { quantile } from "./format.js";

const KEPT = 300;
const EVERY_MS = 1000;
const PATIENCE_MS = 8000;
const HOUR_EVERY_MS = 15000;
const HOUR_MS = 3_630_000;
// Of a chart: more than this many points are thinned out.
const MOST_STEPS = 120;
// A point may be this much older than the chart, so that its line begins at the edge.
const MARGIN_MS = 15000;

const listeners = new Set();
const history = [];
let timer = 0;
let asking = null;

/** The data of the views: the newest state, the previous one, and whether the gateway answers. */
export const store = { state: null, before: null, history, hour: [], connected: null };

/** Return true if a function is available here: behind a listener there are fewer than on the admin port. */
export function offered(what) {
  return Boolean(store.state?.offers.includes(what));
}

/** Call `listener` after every response and every failure; return a function that removes it. */
export function watch(listener) {
  listeners.add(listener);
  if (store.state) listener(store);
  return () => listeners.delete(listener);
}

function sum(rows, key) {
  return rows.reduce((total, row) => total + row[key], 0);
}

/** Return the state as a point of the history: the form that /ui/api/history has. */
function point(state) {
  const traffic = (rows) => Object.fromEntries(rows.map((row) => [row.name, [row.requests, row.clientErrors, row.serverErrors]]));
  const priced = state.models.filter((row) => row.costUsd !== null);
  return {
    time: state.time,
    requests: state.all.requests,
    clientErrors: state.all.clientErrors,
    serverErrors: state.all.serverErrors,
    tokens: sum(state.models, "inputTokens") + sum(state.models, "outputTokens"),
    costUsd: priced.length ? sum(priced, "costUsd") : null,
    counts: state.all.latency.counts,
    routes: traffic(state.routes),
    backends: traffic(state.backends),
    cut: ["routes", "backends"].filter((kind) => state.rows[kind] > state[kind].length),
    models: Object.fromEntries(state.models.map((row) => [`${row.provider} ${row.model}`, [row.calls, row.errors, row.inputTokens + row.outputTokens, row.costUsd]])),
  };
}

function take(state) {
  const last = store.state;
  if (last && last.time === state.time) return;
  if (last && last.started !== state.started) history.length = store.hour.length = 0;   // a new process: its counters start at zero
  store.before = last;
  store.state = state;
  history.push(point(state));
  if (history.length > KEPT) history.shift();
}

/** Return the points that know a row of a kind: where others were busier, a point has nothing of it. */
export function knowing(points, kind, name) {
  return points.filter((one) => one[kind][name] || !one.cut.includes(kind));
}

/** Return the rate per second over the last `span` seconds, null without an older point. */
export function perSecond(read, span = 5) {
  const newest = history[history.length - 1];
  const older = history.find((one) => newest.time - one.time <= span * 1000);
  if (!older || older === newest) return null;
  return Math.max(0, (read(newest) - read(older)) / ((newest.time - older.time) / 1000));
}

/** Return the points of the last `span` seconds, oldest first: those of this page, and before it those of the gateway. */
export function lately(span) {
  const [first, newest] = [history[0], history[history.length - 1]];
  if (!newest) return [];
  const from = newest.time - span * 1000;
  const step = (span * 1000) / MOST_STEPS;
  const known = [...store.hour.filter((one) => one.time < first.time), ...history].filter((one) => one.time >= from - MARGIN_MS);
  // One of each step, at places that stay while newer ones come.
  const found = known.filter((one, at) => at === 0 || Math.floor(one.time / step) !== Math.floor(known[at - 1].time / step));
  if (found[found.length - 1] !== newest) found.push(newest);
  return found;
}

function between(points, change) {
  return points.slice(1).map((one, at) => ({ time: one.time, value: change(one, points[at], (one.time - points[at].time) / 1000) }));
}

/** Return the rates per second between points, as {time, value}. */
export function rates(points, read) {
  return between(points, (one, before, span) => Math.max(0, (read(one) - read(before)) / Math.max(0.001, span)));
}

/** Return a quantile of the latencies between points, as {time, value}; null where nothing came. */
export function latencies(points, bounds, share) {
  return between(points, (one, before) => quantile(bounds, one.counts.map((value, at) => Math.max(0, value - before.counts[at])), share));
}

/**
 * Return a value that the gateway keeps of a row for each of its intervals, as {time, value} of the last `span` seconds;
 * null where it knows none. `at`: its place in the row.
 */
export function intervals(kind, name, at, span) {
  const from = (store.state?.time ?? 0) - span * 1000 - MARGIN_MS;
  return store.hour.filter((one) => one.time >= from).map((one) => ({ time: one.time, value: one[kind][name]?.[at] == null ? null : one[kind][name][at] / 1000 }));
}

/** Return the time span of a chart of the last `span` seconds: from and to in ms. */
export function span(seconds) {
  const to = store.state?.time ?? Date.now();
  return [to - seconds * 1000, to];
}

async function ask() {
  asking = new AbortController();
  const limit = setTimeout(() => asking.abort(), PATIENCE_MS);
  try {
    const answer = await fetch("/ui/api/state", { signal: asking.signal, cache: "no-store" });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    take(await answer.json());
    store.connected = true;
  } catch {
    store.connected = false;
  } finally {
    clearTimeout(limit);
  }
  for (const listener of listeners) listener(store);
}

/** Fetch what is new of the hour that the gateway keeps: what was before this page was opened. */
async function askHour() {
  const known = store.hour[store.hour.length - 1]?.time ?? 0;
  try {
    const answer = await fetch(`/ui/api/history?since=${known}`, { cache: "no-store" });
    if (!answer.ok) return;
    const { points } = await answer.json();
    // By the clock of the gateway, which may differ from that of the browser.
    const oldest = (points[points.length - 1]?.time ?? known) - HOUR_MS;
    store.hour = [...store.hour.filter((one) => one.time > oldest), ...points.filter((one) => one.time > known)];
  } catch {
    // The next look at the state tells that the gateway does not answer.
  }
}

async function loop() {
  if (document.visibilityState === "visible") await ask();
  timer = setTimeout(loop, EVERY_MS);
}

/** Start polling. A hidden page does not poll. */
export function start() {
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") {
      clearTimeout(timer);
      loop();
    }
  });
  loop();
  askHour();
  setInterval(() => document.visibilityState === "visible" && askHour(), HOUR_EVERY_MS);
}
