// The request log: search, live tail, and the details of a record.

import { said, say as tell } from "../address.js";
import { events, need } from "../asking.js";
import { completionOf, promptOf } from "../conversation.js";
import { card, facts, field, h, head, setText } from "../dom.js";
import { count, local, money, seconds } from "../format.js";
import { routeName } from "../names.js";
import { drawer } from "../drawer.js";
import { store } from "../store.js";
import { table } from "../table.js";

const KEPT = 500;
const PAGE = 50;
export const RANGES = [["15 minutes", 900], ["hour", 3600], ["24 hours", 86400], ["7 days", 604800]];
/** Attributes that requests are grouped and looked for by. Keys and teams have the names that `accessLog` gives them. */
export const ATTRIBUTES = [["Route", "attributes.route"], ["Tool", "attributes.gen_ai.tool.name"], ["MCP target", "attributes.mcp.target"],
  ["User of a token", "attributes.jwt.sub"], ["Team", "attributes.team"], ["Key", "attributes.key"]];
export const ABSENT = "config:\n  database:\n    url: sqlite:data.db";

/** Return the card that is shown if no database is configured. */
export function absent() {
  return card("No request log", null,
    h("p", {}, "This gateway keeps no records of requests. Name a database in the configuration, and each request from then on has one:"),
    h("pre", { tabindex: "0", "aria-label": "Configuration of a request log" }, ABSENT));
}

function words(text) {
  return text.split(",").map((one) => one.trim()).filter(Boolean);
}

/** Return statuses as the API takes them: numbers, and classes such as 5xx. */
function statuses(text) {
  return words(text).map((one) => (/^[1-5]xx$/i.test(one) ? one.toLowerCase() : Number(one)));
}

/** Return [name, value] of each part of `name=value, other=value`; a part without a name belongs to the value before it. */
function pairsOf(text) {
  const found = [];
  for (const part of text.split(",")) {
    const [, name, value] = /^\s*([\w.-]+)\s*=(.*)$/.exec(part) ?? [];
    if (name) found.push([name, value.trim()]);
    else if (found.length) found[found.length - 1][1] += `,${part}`;
  }
  return found;
}

function turns(title, messages, text) {
  if (!messages) return [h("h3", {}, title), h("pre", { tabindex: "0", "aria-label": title }, text ?? "–")];
  return [h("h3", {}, title), h("div", { class: "chat", role: "group", "aria-label": title }, messages.map((one) => h("div", { class: `turn ${one.role === "user" ? "user" : "assistant"}` },
    h("h3", {}, one.role), one.text, one.calls.map((call) => h("pre", { "aria-label": `Call of ${call.name}` }, `${call.name}(${call.arguments})`))))),
  h("details", {}, h("summary", {}, "As it was sent"), h("pre", { tabindex: "0", "aria-label": `${title}, as it was sent` }, text ?? "–"))];
}

function target(row) {
  const { attributes } = row;
  return `${attributes["http.method"] ?? ""} ${attributes["http.path"] ?? ""}`.trim() || attributes["mcp.method.name"] || "–";
}

export default function requests(root) {
  let rows = [];
  let next = null;
  let abort = null;
  let asked = 0;
  let chosen = "";

  const status = h("input", { type: "text", placeholder: "5xx, 404", autocomplete: "off" });
  const provider = h("input", { type: "text", list: "known-providers", autocomplete: "off" });
  const model = h("input", { type: "text", list: "known-models", autocomplete: "off" });
  const trace = h("input", { type: "text", class: "mono", autocomplete: "off", spellcheck: "false" });
  const attribute = h("input", { type: "text", class: "mono", list: "known-attributes", placeholder: "team=search, jwt.sub=ada", autocomplete: "off", spellcheck: "false" });
  const range = h("select", {}, RANGES.map(([name, value]) => h("option", { value }, `Last ${name}`)), h("option", { value: "" }, "All"));
  range.value = "86400";
  const follow = h("button", { type: "button", "aria-pressed": "false", on: { click: () => (abort ? stop() : tail()) } }, "Follow");
  const older = h("button", { type: "button", class: "quiet", hidden: true, on: { click: () => search(next) } }, "Older");
  const told = h("p", { role: "status", class: "small muted" });
  const details = drawer("Request", () => {
    chosen = "";
    remember();
  });
  const lists = ["known-providers", "known-models"].map((id) => h("datalist", { id }));
  lists.push(h("datalist", { id: "known-attributes" }, ATTRIBUTES.map(([, name]) => h("option", { value: `${name.replace("attributes.", "")}=` }))));
  const list = table("Requests", [
    { title: "Time", sort: true, number: false, value: (row) => row.completedAt, text: (row) => local(row.completedAt) },
    { title: "Status", value: (row) => row.httpStatus, draw: badge },
    { title: "Request", value: target, hint: target, wide: true },
    { title: "Route", value: (row) => (row.attributes.route ? routeName(row.attributes.route) : "–"), hint: (row) => row.attributes.route ?? "" },
    { title: "Model", value: (row) => row.genAi?.requestModel ?? row.genAi?.responseModel ?? "–" },
    { title: "Tokens", number: true, value: (row) => row.usage?.totalTokens ?? 0, text: (row) => (row.usage ? count(row.usage.totalTokens) : "–") },
    { title: "Cost", number: true, value: (row) => row.cost ?? 0, text: (row) => money(row.cost) },
    { title: "Time taken", number: true, value: (row) => row.durationMs, text: (row) => seconds(row.durationMs / 1000) },
  ], { key: (row) => row.id, empty: "No request fits.", choose });

  function badge(row, cell) {
    const kind = row.httpStatus >= 500 || row.httpStatus === 0 ? "bad" : row.httpStatus >= 400 ? "warn" : "good";
    const found = cell.firstElementChild ?? cell.appendChild(h("span"));
    found.className = `badge ${kind}`;
    setText(found, row.httpStatus ? String(row.httpStatus) : "none");
  }

  function filters() {
    const found = {};
    if (words(status.value).length) found.httpStatus = statuses(status.value);
    if (words(provider.value).length) found.provider = words(provider.value);
    if (words(model.value).length) found.requestModel = words(model.value);
    if (trace.value.trim()) found.traceId = trace.value.trim();
    const wanted = pairsOf(attribute.value);
    if (wanted.length) found.attributes = Object.fromEntries(wanted);
    return found;
  }

  function say(text, bad = false) {
    told.className = bad ? "small bad-text" : "small muted";
    setText(told, text);
  }

  const fields = { range, status, provider, model, trace, attribute };

  function remember() {
    const values = Object.fromEntries(Object.entries(fields).map(([name, input]) => [name, input.value.trim()]));
    tell({ ...values, range: range.value === "86400" ? "" : range.value || "all", request: chosen });
  }

  async function search(cursor = null) {
    stop();
    remember();
    const number = (asked += 1);
    const from = range.value && { from: new Date(Date.now() - range.value * 1000).toISOString() };
    try {
      const found = await need("/api/logs/search", { limit: PAGE, cursor, filters: filters(), includeAttributes: true, ...(from ? { timeRange: from } : {}) });
      if (number !== asked) return;
      rows = cursor ? [...rows, ...found.logs] : found.logs;
      next = found.nextCursor;
      say(`${rows.length}${next ? " and more" : ""} ${rows.length === 1 && !next ? "request" : "requests"}`);
    } catch (error) {
      if (number !== asked) return;
      if (error.message.includes("not configured")) {
        root.replaceChildren(head("Requests", ""), absent());
        return;
      }
      say(error.message, true);
    }
    draw();
  }

  function draw() {
    older.hidden = next === null || abort !== null;
    list.update(rows);
  }

  async function tail() {
    abort = new AbortController();
    const mine = abort;
    follow.setAttribute("aria-pressed", "true");
    say("Requests appear as they end.");
    draw();
    try {
      for await (const { event, data } of events("/api/logs/tail", { filters: filters(), includeAttributes: true }, mine.signal)) {
        if (event === "error") throw new Error(data.message);
        if (event === "log" && !rows.some((row) => row.id === data.entry.id)) {
          rows = [data.entry, ...rows].slice(0, KEPT);
          draw();
        }
      }
      if (mine === abort) throw new Error("The gateway ended it.");
    } catch (error) {
      if (mine === abort && !mine.signal.aborted) {
        stop();
        say(error.message, true);
      }
    }
  }

  function stop() {
    abort?.abort();
    abort = null;
    follow.setAttribute("aria-pressed", "false");
  }

  async function choose(row) {
    chosen = row.id;
    remember();
    try {
      const { log } = await need("/api/logs/get", { id: row.id });
      if (chosen !== row.id) return;   // another one has been chosen since
      const { usage, genAi } = log;
      details.show(
        facts([["Began", local(log.startedAt)], ["Took", seconds(log.durationMs / 1000)], ["Status", String(log.httpStatus || "none")],
          ...(log.error ? [["Error", log.error]] : []), ...(log.traceId ? [["Trace", h("span", { class: "mono" }, log.traceId)]] : []),
          ...(genAi ? [["Provider", genAi.provider ?? "–"], ["Model", [genAi.requestModel, genAi.responseModel].filter(Boolean).join(" → ")]] : []),
          ...(usage ? [["Tokens", `${count(usage.inputTokens ?? 0)} in, ${count(usage.outputTokens ?? 0)} out`]] : []),
          ...(log.cost === null ? [] : [["Cost", money(log.cost)]])]),
        ...(log.payload ? [...turns("Prompt", promptOf(log.payload.requestPrompt), log.payload.requestPrompt),
          ...turns("Completion", completionOf(log.payload.responseCompletion), log.payload.responseCompletion)] : []),
        h("h3", {}, "Attributes"),
        h("dl", { class: "facts attributes" }, Object.entries(log.attributes).map(([name, value]) => [h("dt", { class: "mono" }, name),
          h("dd", {}, h("span", { class: "mono" }, typeof value === "string" ? value : JSON.stringify(value)), " ",
            h("button", { type: "button", class: "link small", "aria-label": `Only requests with this ${name}`, on: { click: () => only(name, value) } }, "filter"))])),
      );
    } catch (error) {
      if (chosen === row.id) details.show(h("p", { class: "bad-text" }, error.message));
    }
  }

  /** Search for requests with an attribute of the one that is shown. */
  function only(name, value) {
    attribute.value = [...pairsOf(attribute.value).filter(([one]) => one !== name), [name, String(value)]].map((one) => one.join("=")).join(", ");
    details.close();
    search();
  }

  async function learn() {
    try {
      const { filterOptions } = await need("/api/logs/analytics/summary", { bucketCount: 1 });
      [filterOptions.provider, filterOptions.requestModel].forEach((names, at) => lists[at].replaceChildren(...names.map((value) => h("option", { value }))));
    } catch {
      // The search reports the error.
    }
  }

  root.append(
    head("Requests", "A record of each, kept in the database of the request log"),
    card("Search", null, h("form", { on: { submit: (event) => {
      event.preventDefault();
      search();
    } } },
    h("div", { class: "row" }, field("Time", range), field("Status", status), field("Provider", provider), field("Model", model)),
    h("div", { class: "row" }, field("Trace", trace), field("Attribute", attribute), h("button", { class: "primary" }, "Search"), follow)), lists),
    card("Requests", told, h("div", { class: "tall" }, list.element), h("div", {}, older)),
    details.element,
  );
  if (store.state && !store.state.requestLog) {
    root.replaceChildren(head("Requests", ""), absent());
    return null;
  }
  const { request, ...before } = said([...Object.keys(fields), "request"]);
  for (const [name, value] of Object.entries(before)) fields[name].value = name === "range" && value === "all" ? "" : value;
  search();
  learn();
  if (/^[0-9]+$/.test(request ?? "")) choose({ id: request });
  return stop;
}
