// The ranges of charts: a choice that the address has.

import { said, say } from "./address.js";
import { h } from "./dom.js";
import { offered, store, watch } from "./store.js";

const RANGES = [["5 min", "", 300], ["15 min", "15m", 900], ["1 hour", "hour", 3600]];

/** Return where there are longer ranges, told once it is known what this gateway keeps. */
function longer() {
  const note = h("span", { class: "small muted" });
  let stop = null;
  stop = watch(() => {
    if (!store.state) return;
    if (!store.state.requestLog) note.textContent = "Longer ranges need a request log (config.database).";
    else if (offered("store")) note.replaceChildren(h("a", { href: "/ui/analytics" }, "Longer ranges"));
    // A first call comes within watch() itself.
    queueMicrotask(() => stop());
  });
  return note;
}

/** Return {element, seconds()}: buttons for the range of charts. `changed` is called when another one is chosen. */
export function ranges(changed) {
  let chosen = RANGES.find(([, name]) => name === (said(["range"]).range ?? "")) ?? RANGES[0];
  const buttons = RANGES.map((one) => h("button", { type: "button", class: "quiet", on: { click: () => choose(one) } }, one[0]));
  const tell = () => buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(RANGES[at] === chosen)));
  function choose(one) {
    chosen = one;
    say({ ...Object.fromEntries(new URLSearchParams(window.location.search)), range: one[1] });
    tell();
    changed();
  }
  tell();
  const pills = h("div", { class: "row middle tight pills", role: "group", "aria-label": "Range of the charts" }, buttons);
  return { element: h("div", { class: "row middle" }, longer(), pills), seconds: () => chosen[2] };
}
