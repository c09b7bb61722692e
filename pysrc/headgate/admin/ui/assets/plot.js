// What charts over time have in common: the frame, ticks at round times, and a crosshair with the values at it.

import { h, s } from "./dom.js";
import { clock } from "./format.js";

export const LEFT = 54;
export const TOP = 10;
export const BOTTOM = 22;
const EDGE = 6;
const STEPS = [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((one) => one * 1000);
// Room for the text of one tick.
const TICK = 76;

/** Return a round number that is at least the given one. */
export function nice(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((one) => one >= most) ?? most;
}

/** Return round local times between two others, at most `most` of them. */
export function ticks(from, to, most) {
  const step = STEPS.find((one) => (to - from) / one <= most) ?? STEPS[STEPS.length - 1];
  // Round for whoever looks: a day begins at local midnight.
  const shift = new Date(from).getTimezoneOffset() * 60000;
  const found = [];
  for (let at = Math.ceil((from - shift) / step) * step + shift; at <= to; at += step) found.push(at);
  return { step, times: found };
}

/** Return a legend of {name, kind}. */
export function legend(lines) {
  return h("ul", { class: "legend" }, lines.map((line) => h("li", {},
    s("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, s("rect", { class: `s-${line.kind}`, width: 12, height: 12, rx: 3 })), line.name)));
}

/**
 * The frame of a chart over time. `draw(parts, x, y, width)` adds the figures; `values(at)` returns the texts of the
 * crosshair as {kind, text} at the index `at` of the times that the last update had.
 */
export function plot(title, height, format, values) {
  const drawing = s("svg", { role: "img", height, "aria-label": title, tabindex: 0 });
  const line = s("line", { class: "cross", y1: TOP, y2: height - BOTTOM });
  const readout = h("div", { class: "readout", hidden: true, "aria-live": "polite" });
  const box = h("div", { class: "chart" }, drawing, readout);
  let times = [];
  let x = () => 0;
  let wide = 600;
  // The index of the value at the crosshair, -1 without one.
  let here = -1;

  function point(at) {
    here = Math.min(times.length - 1, at);
    readout.hidden = here < 0;
    if (here < 0) {
      line.remove();
      return;
    }
    const place = x(times[here]);
    line.setAttribute("x1", place);
    line.setAttribute("x2", place);
    drawing.append(line);
    readout.replaceChildren(h("strong", {}, clock(times[here], true)), ...values(here).map(({ kind, text }) => h("div", {},
      s("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, s("rect", { class: `s-${kind}`, width: 12, height: 12, rx: 3 })), text)));
    const left = place < wide / 2;
    readout.style.left = left ? `${place + 10}px` : "auto";
    readout.style.right = left ? "auto" : `${wide - place + 10}px`;
  }

  drawing.addEventListener("pointermove", (event) => {
    const at = event.clientX - drawing.getBoundingClientRect().left;
    let best = -1;
    times.forEach((one, index) => {
      if (best < 0 || Math.abs(x(one) - at) < Math.abs(x(times[best]) - at)) best = index;
    });
    point(best);
  });
  drawing.addEventListener("pointerleave", () => point(-1));
  drawing.addEventListener("blur", () => point(-1));
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") point(-1);
    if (!step || !times.length) return;
    event.preventDefault();
    point(here < 0 ? times.length - 1 : Math.max(0, here + step));
  });

  let last = null;
  // Charts are drawn for their width: for another one they are drawn anew.
  new ResizeObserver(() => {
    if (last && box.clientWidth !== wide) update(...last);
  }).observe(box);

  function update(...given) {
    last = given;
    const [from, to, most, shown, draw, words] = given;
    const width = Math.max(240, box.clientWidth || 600);
    const top = nice(most);
    const y = (value) => TOP + (height - TOP - BOTTOM) * (1 - value / top);
    const before = times[here];
    [times, wide] = [shown, width];
    x = (time) => Math.max(LEFT, LEFT + (width - LEFT - EDGE) * ((time - from) / Math.max(1, to - from)));
    const parts = [0, 0.5, 1].flatMap((share) => [
      s("line", { class: "grid-line", x1: LEFT, x2: width - EDGE, y1: y(top * share), y2: y(top * share) }),
      s("text", { x: LEFT - 8, y: y(top * share) + 4, "text-anchor": "end" }, format(top * share)),
    ]);
    const round = ticks(from, to, Math.max(2, Math.floor((width - LEFT) / TICK)));
    for (const time of round.times) {
      const text = clock(time, round.step < 60000, round.step >= 86_400_000);
      const at = Math.min(width - 18, Math.max(LEFT + 14, x(time)));
      parts.push(s("line", { class: "tick-line", x1: x(time), x2: x(time), y1: height - BOTTOM, y2: height - BOTTOM + 4 }),
        s("text", { x: at, y: height - 4, "text-anchor": "middle" }, text));
    }
    draw(parts, x, y, width);
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    drawing.setAttribute("aria-label", `${title}: ${words}`);
    drawing.replaceChildren(...parts.filter(Boolean));
    // The crosshair stays at its time while newer values come.
    if (here >= 0) point(before === undefined ? -1 : times.findIndex((one) => one >= before));
  }

  return { box, update };
}
