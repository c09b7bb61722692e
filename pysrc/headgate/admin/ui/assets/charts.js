// Charts as SVG, drawn for their current width.

import { h, s } from "./dom.js";

const HEIGHT = 170;
const LEFT = 44;
const BOTTOM = 22;
const TOP = 10;

/** Return a round number that is at least the given one. */
export function nice(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((one) => one >= most) ?? most;
}

function frame(title) {
  const drawing = s("svg", { role: "img", height: HEIGHT, "aria-label": title });
  return { drawing, box: h("div", { class: "chart" }, drawing) };
}

function path(values, x, y) {
  return values.map((value, at) => `${at ? "L" : "M"}${x(at).toFixed(1)} ${y(value).toFixed(1)}`).join("");
}

/** A line chart of the last minutes. lines: {name, kind}; update takes one list of values per line. */
export function lineChart(title, lines, format) {
  const { drawing, box } = frame(title);
  const legend = h("ul", { class: "legend" }, lines.map((line) => h("li", {},
    s("svg", { viewBox: "0 0 12 12", "aria-hidden": "true" }, s("rect", { class: `s-${line.kind}`, width: 12, height: 12, rx: 3 })), line.name)));
  function update(all, points = 300, each = 1) {
    const width = Math.max(240, box.clientWidth || 600);
    const most = nice(Math.max(0, ...all.flat()));
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
    const slots = Math.max(60, Math.min(points, Math.max(...all.map((one) => one.length))));
    const step = (width - LEFT - 6) / (slots - 1);
    const parts = [0, 0.5, 1].flatMap((share) => [
      s("line", { class: "grid-line", x1: LEFT, x2: width, y1: y(most * share), y2: y(most * share) }),
      s("text", { x: LEFT - 8, y: y(most * share) + 4, "text-anchor": "end" }, format(most * share)),
    ]);
    parts.push(s("text", { x: width, y: HEIGHT - 4, "text-anchor": "end" }, "now"));
    parts.push(s("text", { x: LEFT, y: HEIGHT - 4 }, slots * each < 120 ? `${slots * each} s ago` : `${Math.round((slots * each) / 60)} min ago`));
    all.forEach((values, at) => {
      if (values.length < 2) return;
      const x = (index) => width - 6 - (values.length - 1 - index) * step;
      const line = path(values, x, y);
      parts.push(s("path", { class: `area s-${lines[at].kind}`, d: `${line}L${x(values.length - 1)} ${y(0)}L${x(0)} ${y(0)}Z` }));
      parts.push(s("path", { class: `series s-${lines[at].kind}`, d: line }));
    });
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.replaceChildren(...parts);
    const words = lines.map((line, at) => `${line.name} ${format(all[at][all[at].length - 1] ?? 0)}`).join(", ");
    drawing.setAttribute("aria-label", `${title}: ${words} now`);
  }
  return { element: h("figure", { class: "figure" }, box, lines.length > 1 ? legend : null), update };
}

/** A histogram; there is one more count than there are bounds. */
export function histogram(title, format) {
  const { drawing, box } = frame(title);
  function update(bounds, counts) {
    const width = Math.max(240, box.clientWidth || 600);
    const most = nice(Math.max(0, ...counts));
    const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
    const slot = (width - LEFT) / counts.length;
    const every = Math.ceil(48 / slot);
    const parts = [0, 0.5, 1].flatMap((share) => [
      s("line", { class: "grid-line", x1: LEFT, x2: width, y1: y(most * share), y2: y(most * share) }),
      most * share === Math.round(most * share)
        ? s("text", { x: LEFT - 8, y: y(most * share) + 4, "text-anchor": "end" }, String(most * share)) : null,
    ]);
    counts.forEach((value, at) => {
      const name = at < bounds.length ? `up to ${format(bounds[at])}` : `over ${format(bounds[bounds.length - 1])}`;
      const column = s("rect", {
        class: "column", x: LEFT + at * slot + slot * 0.12, width: slot * 0.76, y: y(value), height: Math.max(0, y(0) - y(value)), rx: 2,
      }, s("title", {}, `${name}: ${value}`));
      parts.push(column);
      if (at % every === 0 && at < bounds.length) {
        parts.push(s("text", { x: LEFT + (at + 1) * slot, y: HEIGHT - 4, "text-anchor": "middle" }, format(bounds[at])));
      }
    });
    drawing.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    drawing.replaceChildren(...parts.filter(Boolean));
    const total = counts.reduce((sum, one) => sum + one, 0);
    drawing.setAttribute("aria-label", `${title}: ${total} observations`);
  }
  return { element: h("figure", { class: "figure" }, box), update };
}

/** A small line chart without axes, for a table cell. */
export function spark(cell, values) {
  const most = Math.max(...values, 1e-9);
  const x = (at) => (at / Math.max(1, values.length - 1)) * 96;
  const y = (value) => 22 - 20 * (value / most);
  let line = cell.querySelector("path");
  if (!line) {
    line = s("path");
    cell.replaceChildren(s("svg", { class: "spark", viewBox: "0 0 96 24", preserveAspectRatio: "none", "aria-hidden": "true" }, line));
  }
  line.setAttribute("d", values.length > 1 ? path(values, x, y) : "M0 22L96 22");
}
