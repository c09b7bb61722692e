// The next request, step by step, as a waterfall.

import { card, facts, field, h, head, setText } from "../dom.js";
import { micros } from "../format.js";
import { listenerName, routeName } from "../names.js";
import { linesOf, orderFor, send } from "../relay.js";
import { store, watch } from "../store.js";

const NAMES = {
  requestStarted: "Request", requestSnapshot: "Request state", responseSnapshot: "Response state", bodySnapshot: "Body", routeSelection: "Route",
  policySelection: "Policies", policy: "Policy", policyEvent: "Policy event", authorizationResult: "Authorization", backendCallStart: "Call",
  backendCallResult: "Call result", llmRouteResolved: "Model route", llmRequestDetected: "Model request", llmStreamingTranslation: "Model stream",
  requestFinished: "Finished", cel: "Expression", traceSampling: "Sampling",
};

function policies(chosen) {
  const names = Object.entries(chosen ?? {}).filter(([, value]) => value !== null).map(([name]) => name);
  return names.join(", ") || "none";
}

/** Return a value as text: a refusal, for one, is an object. */
function textOf(value) {
  return typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
}

/** Return a one-line summary of an event. */
function summary(message) {
  switch (message.type) {
    case "requestSnapshot": case "responseSnapshot": case "bodySnapshot": return message.stage;
    case "routeSelection": return message.selectedRoute ? routeName(message.selectedRoute) : "no route matches";
    case "policySelection": return `${message.phase}: ${policies(message.effectivePolicy)}`;
    case "policy": return `${message.kind}: ${textOf(message.result?.details ?? message.result?.reason)}`;
    case "policyEvent": return `${message.kind}: ${textOf(message.details)}`;
    case "authorizationResult": return message.result;
    case "backendCallStart": return message.target;
    case "backendCallResult": case "requestFinished": return message.error ?? `status ${message.status}`;
    case "llmRouteResolved": return `${message.provider}, ${message.routeType}`;
    case "llmRequestDetected": return `${message.provider}, ${message.requestModel}`;
    case "cel": return `${message.expr} = ${JSON.stringify(message.result)}`;
    default: return "";
  }
}

/** Return the headers of lines such as `x-team: search`. Throws an Error that names a line that is none. */
function headersOf(text) {
  const found = {};
  for (const line of text.split("\n").map((one) => one.trim()).filter(Boolean)) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+)\s*:\s*(.*)$/.exec(line) ?? [];
    if (!name) throw new Error(`"${line}" is no header: write name: value`);
    const known = name.toLowerCase();
    found[known] = known in found ? `${found[known]}, ${value}` : value;
  }
  return found;
}

function decoded(message) {
  if (message.type !== "bodySnapshot") return message;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(message.body), (one) => one.charCodeAt(0)));
    try {
      return { ...message, body: JSON.parse(text) };
    } catch {
      return { ...message, body: text };
    }
  } catch {
    return message;
  }
}

export default function trace(root) {
  let events = [];
  let abort = null;
  let chosen = null;
  const expression = h("input", { type: "text", class: "mono", spellcheck: "false", placeholder: 'request.path.startsWith("/api")' });
  const begin = h("button", { class: "primary" }, "Trace the next request");
  const stop = h("button", { type: "button", hidden: true, on: { click: () => abort?.abort() } }, "Stop waiting");
  const status = h("p", { role: "status", class: "muted" }, "Nothing is traced. A trace costs the gateway nothing until it is started.");
  const body = h("tbody");
  const grid = h("div", { class: "scroll", hidden: true }, h("table", { class: "waterfall" }, h("caption", {}, "Events of the traced request"),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "c-event" }, "Event"), h("th", { scope: "col", class: "c-time number" }, "At"), h("th", { scope: "col" }, "Timeline"))), body));
  const empty = h("p", { class: "empty" }, "Events appear here as they happen.");
  const detail = h("pre", { tabindex: "0", "aria-label": "Details of the chosen event" }, "Choose an event.");
  const about = h("div");
  const save = h("button", { type: "button", class: "quiet", hidden: true, on: { click: keep } }, "Save as JSON lines");

  function keep() {
    const text = events.map((one) => JSON.stringify(one)).join("\n");
    const link = h("a", { href: URL.createObjectURL(new Blob([`${text}\n`], { type: "application/x-ndjson" })), download: "trace.jsonl" });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function pick(at, row) {
    chosen?.classList.remove("chosen");
    chosen = row;
    row.classList.add("chosen");
    const { message, ...envelope } = events[at];
    about.replaceChildren(facts([["Event", NAMES[message.type] ?? message.type], ["Time", micros(envelope.eventEnd)],
      ["Took", envelope.eventStart === null ? "–" : micros(envelope.eventEnd - envelope.eventStart)], ["Scope", (envelope.scope ?? []).join(" > ") || "request"]]));
    detail.textContent = JSON.stringify(decoded(message), null, 2);
  }

  function lane(event, before, total) {
    const box = h("div", { class: "lane-box", "aria-hidden": "true" });
    const put = (kind, from, to) => {
      const part = h("span", { class: kind });
      part.style.left = `${(from / total) * 100}%`;
      if (kind !== "tick") part.style.width = `${(Math.max(0, to - from) / total) * 100}%`;
      box.append(part);
    };
    if (event.eventStart !== null) put("bar", event.eventStart, event.eventEnd);
    else {
      put("since", Math.min(before, event.eventEnd), event.eventEnd);
      put("tick", event.eventEnd, event.eventEnd);
    }
    return box;
  }

  function draw() {
    const total = Math.max(1, ...events.map((one) => one.eventEnd)) * 1.01;
    const rows = events.map((event, at) => {
      const text = `${"  ".repeat((event.scope ?? []).length)}${NAMES[event.message.type] ?? event.message.type}`;
      const about_ = summary(event.message);
      const row = h("tr", { class: `sev-${["success", "warn", "error"].includes(event.severity) ? event.severity : "info"}` },
        h("th", { scope: "row" }, h("button", { type: "button", class: "link", title: about_, on: { click: () => pick(at, row) } }, text, " ", h("span", { class: "muted" }, about_))),
        h("td", { class: "number" }, micros(event.eventEnd)),
        h("td", { class: "lane" }, lane(event, at ? events[at - 1].eventEnd : 0, total)));
      return row;
    });
    body.replaceChildren(...rows);
    grid.hidden = save.hidden = !events.length;
    empty.hidden = Boolean(events.length);
  }

  /** Wait for a request; `ready` is called once the watcher is registered. */
  async function run(ready) {
    abort?.abort();
    abort = new AbortController();
    const mine = abort;
    events = [];
    draw();
    stop.hidden = false;
    begin.disabled = true;
    setText(status, "Waiting for a request.");
    try {
      const answer = await fetch(`/debug/trace?expression=${encodeURIComponent(expression.value)}`, { method: "POST", signal: mine.signal });
      if (!answer.ok) throw new Error((await answer.text()).trim());
      for await (const line of linesOf(answer.body)) {
        if (line === ": ready") ready?.();
        if (!line.startsWith("data: ")) continue;
        events.push(JSON.parse(line.slice(6)));
        draw();
        setText(status, `${events.length} events.`);
      }
      setText(status, events.length ? `Complete: ${events.length} events, ${micros(events[events.length - 1].eventEnd)}.` : "The gateway ended the trace.");
    } catch (error) {
      setText(status, mine.signal.aborted ? "Stopped." : error.message);
    } finally {
      if (abort === mine) {
        stop.hidden = true;
        begin.disabled = false;
      }
    }
  }

  const place = h("select");
  const method = h("select", {}, ["GET", "POST", "PUT", "DELETE"].map((one) => h("option", { value: one }, one)));
  const path = h("input", { type: "text", class: "mono", value: "/", spellcheck: "false" });
  const content = h("textarea", { class: "code", rows: 3, spellcheck: "false", placeholder: '{"a": 1}' });
  const fields = h("textarea", { class: "code", rows: 3, spellcheck: "false", placeholder: "authorization: Bearer ...\nx-team: search" });
  const sent = h("p", { class: "small wrap", role: "status" });

  async function sendTraced(event) {
    event.preventDefault();
    const target = store.state?.targets.ports[place.selectedIndex];
    if (!target) return;
    setText(sent, "");
    let headers;
    try {
      headers = { ...(content.value ? { "content-type": "application/json" } : {}), ...headersOf(fields.value) };
    } catch (error) {
      setText(sent, error.message);
      fields.focus();
      return;
    }
    run(async () => {
      try {
        const answer = await send(orderFor(target, "", { method: method.value, path: path.value, headers, body: content.value }));
        const text = await answer.text();
        setText(sent, `Answered with status ${answer.status}, ${text.length} characters.`);
      } catch (error) {
        setText(sent, error.message);
      }
    });
  }

  root.append(
    head("Trace", "One request, from its first byte to its last"),
    h("div", { class: "grid" },
      card("Wait for a request", null, h("form", { on: { submit: (event) => { event.preventDefault(); run(); } } },
        field("Only when this CEL expression holds", expression, "empty: any request"), h("div", { class: "row" }, begin, stop)), status),
      card("Or send one", null, h("form", { on: { submit: sendTraced } },
        h("div", { class: "row" }, field("Port", place), field("Method", method)), field("Path", path),
        h("details", {}, h("summary", {}, "Headers and body"), h("div", { class: "stack" }, field("Headers", fields, "one a line; kept nowhere"), field("Body", content, "sent as JSON unless a header says otherwise"))), h("div", {}, h("button", {}, "Send and trace"))), sent)),
    h("div", { class: "split" }, card("Waterfall", save, grid, empty), card("Details", null, about, detail)),
  );
  const end = watch(({ state }) => {
    if (!state) return;
    const names = state.targets.ports.map((one) => `${one.port} ${one.host === "localhost" ? "any host" : one.host} (${listenerName(one.listener)})`);
    if (names.join() !== [...place.options].map((one) => one.text).join()) place.replaceChildren(...names.map((one) => h("option", {}, one)));
  });
  return () => {
    abort?.abort();
    end();
  };
}
