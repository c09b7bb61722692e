// The state of the gateway, fetched every second, and rates computed from it.

const KEPT = 300;
const EVERY_MS = 1000;
const PATIENCE_MS = 8000;
const HOUR_EVERY_MS = 15000;

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

function point(state) {
  return {
    time: state.time,
    requests: state.all.requests,
    errors: state.all.serverErrors,
    tokens: sum(state.models, "inputTokens") + sum(state.models, "outputTokens"),
    counts: state.all.latency.counts,
    routes: new Map(state.routes.map((row) => [row.name, row])),
    backends: new Map(state.backends.map((row) => [row.name, row])),
  };
}

function take(state) {
  const last = store.state;
  if (last && last.time === state.time) return;
  if (last && last.started !== state.started) history.length = 0;   // a new process: its counters start at zero
  store.before = last;
  store.state = state;
  history.push(point(state));
  if (history.length > KEPT) history.shift();
}

/** Return the rate per second over the last `span` seconds, null without an older point. */
export function perSecond(read, span = 5) {
  const newest = history[history.length - 1];
  const older = history.find((one) => newest.time - one.time <= span * 1000);
  if (!older || older === newest) return null;
  return Math.max(0, (read(newest) - read(older)) / ((newest.time - older.time) / 1000));
}

/** Return the rates per second between the points of the history, oldest first. */
export function series(read) {
  const found = [];
  for (let at = 1; at < history.length; at += 1) {
    const span = (history[at].time - history[at - 1].time) / 1000;
    found.push(Math.max(0, (read(history[at]) - read(history[at - 1])) / span));
  }
  return found;
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

/** Fetch the hour that the gateway keeps: what was before this page was opened. */
async function askHour() {
  try {
    const answer = await fetch("/ui/api/history", { cache: "no-store" });
    if (answer.ok) store.hour = (await answer.json()).points;
  } catch {
    // The next look at the state tells that the gateway does not answer.
  }
}

/** Return the rates per second between the points of the last hour, oldest first. A new process begins at zero. */
export function hourly(read) {
  const points = store.hour;
  return points.slice(1).map((one, at) => Math.max(0, (read(one) - read(points[at])) / Math.max(0.001, (one.time - points[at].time) / 1000)));
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
