// Virtual keys: made, with the key shown once, limited, rotated and revoked.

import { ask, send } from "../asking.js";
import { card, facts, field, h, head, setText } from "../dom.js";
import { count, local } from "../format.js";
import { table } from "../table.js";

const PATH = "/api/keys";
const UNITS = ["requests", "tokens", "dollars"];
const WINDOWS = ["minute", "day", "month"];
const LIMIT = /^(requests|tokens|dollars)=(\d+(?:\.\d+)?)\/(minute|day|month)(?:@(\d+))?$/;
const PICOS = 1e12;

const unitOf = (limit) => UNITS.find((unit) => unit in limit);
const words = (text) => text.split(",").map((one) => one.trim()).filter(Boolean);

function amount(unit, value) {
  return unit === "dollars" ? `$${value < 1 && value > 0 ? value.toFixed(6).replace(/0{1,4}$/, "") : value.toFixed(2)}` : count(value);
}

function shown(limit) {
  const unit = unitOf(limit);
  return `${unit === "dollars" ? `$${limit[unit]}` : `${count(Number(limit[unit]))} ${unit}`} a ${limit.per}`;
}

/** Return what is wrong with a limit that cannot be read. */
function fault(text) {
  const [, unit, most, window, warn] = /^([^=]*)=?([^/]*)\/?([^@]*)@?(.*)$/.exec(text);
  if (!UNITS.includes(unit)) return `the unit is ${UNITS.join(", ").replace(/, (\w+)$/, " or $1")}`;
  if (!/^\d+(\.\d+)?$/.test(most)) return "the amount is a number";
  if (!WINDOWS.includes(window)) return `the window is ${WINDOWS.join(", ").replace(/, (\w+)$/, " or $1")}`;
  return warn && !/^\d+$/.test(warn) ? "behind @ stands a percentage" : "a limit is such as dollars=25/day@80";
}

/** Return limits from a text such as `dollars=25/day@80, requests=60/minute`. Throws an Error. */
function limitsOf(text) {
  return words(text).map((one) => {
    const found = LIMIT.exec(one);
    if (!found) throw new Error(`${one}: ${fault(one)}`);
    const [, unit, most, per, warn] = found;
    return { [unit]: unit === "dollars" ? most : Number(most), per, ...(warn ? { warnAtPercent: Number(warn) } : {}) };
  });
}

function stateOf(key) {
  if (key.revoked) return ["revoked", "bad"];
  const ends = typeof key.expires === "number" ? key.expires * 1000 : Date.parse(key.expires ?? "");
  return ends <= Date.now() ? ["expired", "warn"] : ["active", "good"];
}

/** Return a bar of what was used of a limit. */
function bar(limit, usage) {
  const unit = unitOf(limit);
  const used = usage[limit.per][unit] / (unit === "dollars" ? PICOS : 1);
  const most = Number(limit[unit]);
  const share = most ? Math.min(1, used / most) : 1;
  const kind = share >= 1 ? "bad" : share * 100 >= (limit.warnAtPercent ?? 80) ? "warn" : "";
  const filled = h("span");
  filled.style.width = `${share * 100}%`;
  const text = `${amount(unit, used)} of ${amount(unit, most)} ${unit === "dollars" ? "" : unit} a ${limit.per}`.replace("  ", " ");
  return h("li", {},
    h("div", { class: `meter wide ${kind}`, role: "meter", "aria-label": text, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(share * 100) }, filled),
    h("p", { class: "small" }, text, h("span", { class: "muted" }, ` until ${local(usage[limit.per].ends * 1000)}`)));
}

export default function keys(root) {
  let all = [];
  let chosen = null;
  let gone = false;

  const list = table("Virtual keys", [
    { title: "Name", value: (row) => row.name, sort: true },
    { title: "State", value: (row) => stateOf(row)[0],
      draw: (row, cell) => cell.replaceChildren(h("span", { class: `badge ${stateOf(row)[1]}` }, stateOf(row)[0])) },
    { title: "Team", value: (row) => row.team ?? "" },
    { title: "Owner", value: (row) => row.owner ?? "" },
    { title: "Limits", value: (row) => (row.limits ?? []).map(shown).join(", ") },
  ], { key: (row) => row.name, empty: "No key yet.", choose: (row) => choose(row.name) });

  const input = (placeholder = "") => h("input", { type: "text", spellcheck: "false", autocomplete: "off", placeholder });
  const name = input("ada");
  const owner = input("ada@example.com");
  const team = h("select", {}, h("option", { value: "" }, "none"));
  const models = input("all");
  const expires = h("input", { type: "date" });
  const limits = input("dollars=25/day@80, requests=60/minute");
  const badLimits = h("small", { id: "bad-limits", class: "bad-text wrap", role: "status" });
  limits.addEventListener("input", checkLimits);
  const status = h("p", { role: "status", class: "small muted" });
  const make = h("button", { type: "submit", class: "primary" }, "Create key");
  const secret = h("div", { class: "stack", hidden: true });
  const detail = h("div", { class: "stack" });

  function say(text, bad = false) {
    status.className = bad ? "small bad-text wrap lines" : "small muted";
    setText(status, text);
  }

  /** Tell below the field what is wrong with it while it is written. */
  function checkLimits() {
    try {
      limitsOf(limits.value);
      wrong(limits, "");
    } catch (error) {
      wrong(limits, error.message);
    }
  }

  /** Mark a field as wrong, or with an empty text as right. */
  function wrong(input_, text) {
    if (text) input_.setAttribute("aria-invalid", "true");
    else input_.removeAttribute("aria-invalid");
    if (input_ !== limits) return;
    setText(badLimits, text);
    if (text) limits.setAttribute("aria-describedby", badLimits.id);
    else limits.removeAttribute("aria-describedby");
  }

  /** Mark the field that the gateway complains of: its message begins with the path of the field. */
  function blame(text) {
    const fields = { name, owner, team, allowedModels: models, expires, limits };
    const named = Object.keys(fields).find((one) => new RegExp(`^(?:[\\w.[\\]]*\\.)?${one}\\b`).test(String(text)));
    for (const [each, input_] of Object.entries(fields)) wrong(input_, each === named ? String(text) : "");
    if (named) fields[named].focus();
  }

  /** Show a key: nobody can read it again. */
  function reveal(title, key) {
    const copy = h("button", { type: "button", on: { click: () => navigator.clipboard?.writeText(key).then(() => setText(copy, "Copied")) } }, "Copy");
    const close = h("button", { type: "button", class: "quiet", on: { click: hide } }, "I have it");
    secret.replaceChildren(h("p", {}, `${title} It is shown once; keep it now.`), h("pre", { class: "secret" }, key), h("div", { class: "row" }, copy, close));
    secret.hidden = false;
  }

  function hide() {
    secret.replaceChildren();
    secret.hidden = true;
  }

  async function load() {
    try {
      const [found, teams] = await Promise.all([ask(PATH), ask("/api/teams")]);
      if (gone) return;
      if (found.status !== 200) throw new Error(found.found);
      all = found.found.keys;
      const before = team.value;
      team.replaceChildren(h("option", { value: "" }, "none"), ...(teams.found.teams ?? []).map((one) => h("option", {}, one.name)));
      team.value = before;
      list.update(all);
    } catch (error) {
      say(`The keys cannot be read: ${error.message}`, true);
    }
  }

  async function choose(wanted) {
    chosen = wanted;
    try {
      const { status: code, found } = await ask(`${PATH}/${encodeURIComponent(wanted)}`);
      if (gone || chosen !== wanted) return;
      if (code !== 200) throw new Error(found);
      draw(found);
    } catch (error) {
      detail.replaceChildren(h("p", { class: "bad-text" }, `The key cannot be read: ${error.message}`));
    }
  }

  function draw(key) {
    const [state, kind] = stateOf(key);
    const ends = key.expires && local(typeof key.expires === "number" ? key.expires * 1000 : key.expires);
    const stored = key.owned !== "file";
    const totals = WINDOWS.slice(1).map((window) => [window === "day" ? "Used today" : `Used this ${window}`,
      UNITS.map((unit) => amount(unit, key.usage[window][unit] / (unit === "dollars" ? PICOS : 1)) + (unit === "dollars" ? "" : ` ${unit}`)).join(", ")]);
    detail.replaceChildren(
      facts([["Name", key.name], ["State", h("span", { class: `badge ${kind}` }, state)], ["Owner", key.owner ?? "–"], ["Team", key.team || "–"],
        ["Models", (key.allowedModels ?? ["all"]).join(", ")], ["Expires", ends ?? "never"], ...totals]),
      key.limits?.length ? h("ul", { class: "limits" }, key.limits.map((one) => bar(one, key.usage))) : h("p", { class: "muted small" }, "It has no limits of its own."),
      stored ? h("div", { class: "row" },
        h("button", { type: "button", disabled: Boolean(key.revoked), on: { click: () => act(key.name, "rotate") } }, "Rotate"),
        h("button", { type: "button", disabled: Boolean(key.revoked), on: { click: () => act(key.name, "revoke") } }, "Revoke"))
        : h("p", { class: "muted small" }, "The file defines it: change it there."),
    );
  }

  async function act(wanted, action) {
    const question = action === "rotate" ? `Give ${wanted} a new key? The old one ends at once.` : `Revoke ${wanted}? It cannot be taken back.`;
    if (!confirm(question)) return;
    hide();
    await apply(() => send("POST", `${PATH}/${encodeURIComponent(wanted)}/${action}`, {}), (found) => {
      if (found.key) reveal(`The new key of ${wanted}.`, found.key);
      say(action === "rotate" ? `${wanted} has a new key.` : `${wanted} is revoked.`);
      return choose(wanted);
    });
  }

  async function create(event) {
    event.preventDefault();
    hide();
    let body;
    try {
      body = { name: name.value.trim(), ...(owner.value.trim() && { owner: owner.value.trim() }), ...(team.value && { team: team.value }),
        ...(words(models.value).length && { allowedModels: words(models.value) }), ...(expires.value && { expires: `${expires.value}T00:00:00Z` }),
        ...(words(limits.value).length && { limits: limitsOf(limits.value) }) };
    } catch (error) {
      say(error.message, true);
      wrong(limits, error.message);
      limits.focus();
      return;
    }
    await apply(() => send("POST", PATH, body), (found) => {
      reveal(`The key of ${found.name}.`, found.key);
      say(`${found.name} is created.`);
      for (const one of [name, owner, models, expires, limits]) one.value = "";
      return choose(found.name);
    });
  }

  async function apply(request, done) {
    make.disabled = true;
    say("…");
    try {
      const { status: code, found } = await request();
      if (gone) return;
      if (code >= 300) {
        say(`Nothing was changed: ${found}`, true);
        blame(found);
      } else {
        blame("");
        await load();
        await done(found);
      }
    } catch (error) {
      say(`The gateway does not answer: ${error.message}`, true);
    }
    make.disabled = false;
  }

  detail.append(h("p", { class: "muted" }, "Choose a key."));
  root.append(
    head("Keys", "Credentials of clients, with limits of requests, tokens and money"),
    card("Keys", null, list.element),
    h("div", { class: "grid" },
      card("Key", null, detail),
      card("New key", null,
        h("form", { on: { submit: create } },
          h("div", { class: "row" }, field("Name", name), field("Owner", owner)),
          h("div", { class: "row" }, field("Team", team), field("Expires", expires)),
          field("Models", models, "patterns, such as gpt-4o*, separated by commas"),
          field("Limits", limits, "unit=amount/minute, /day or /month, @ percent that warns; the team's where none is said"), badLimits,
          h("div", { class: "row" }, make)),
        status, secret)),
  );
  load();
  return () => {
    gone = true;
    // A key must not stay in the page.
    hide();
  };
}
