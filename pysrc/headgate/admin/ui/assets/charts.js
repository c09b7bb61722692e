// Lines over time, histograms and small lines in tables, as SVG, drawn for their current width.

import { h, s } from "./dom.js";
import { BOTTOM, LEFT, TOP, legend, nice, plot } from "./plot.js";

const HEIGHT = 170;
// The width in pixels of a value between gaps.
const DOT = 4;

/** Return the path of the values that are known; a value that is null makes a gap, and one between gaps is a dot. */
function path(points, x, y) {
  let begun = false;
  return points.map(({ time, value }, at) => {
    if (value === null) {
      begun = false;
      return "";
    }
    const alone = !begun && (points[at + 1]?.value ?? null) === null;
    const step = `${begun ? "L" : "M"}${(x(time) - (alone ? DOT / 2 : 0)).toFixed(1)} ${y(value).toFixed(1)}${alone ? `h${DOT}` : ""}`;
    begun = true;
    return step;
  }).join("");
}

/** Lines over time. lines: {name, kind}; update takes for each line the points {time, value} between two times. */
export function lineChart(title, lines, format) {
  let shown = [];
  const frame = plot(title, HEIGHT, format, (at) => lines.map((line, index) => {
    const value = shown[index][at]?.value ?? null;
    return { kind: line.kind, text: `${line.name} ${value === null ? "–" : format(value)}` };
  }));
  function update(all, from, to) {
    shown = all;
    const most = Math.max(0, ...all.flat().map((one) => one.value ?? 0));
    const newest = (points) => points[points.length - 1]?.value ?? null;
    const words = lines.map((line, at) => `${line.name} ${newest(all[at]) === null ? "–" : format(newest(all[at]))}`).join(", ");
    frame.update(from, to, most, (all[0] ?? []).map((one) => one.time), (parts, x, y) => {
      all.forEach((points, at) => {
        if (points.length < 2) return;
        const line = path(points, x, y);
        const whole = points.every((one) => one.value !== null);
        if (whole) parts.push(s("path", { class: `area s-${lines[at].kind}`, d: `${line}L${x(points[points.length - 1].time)} ${y(0)}L${x(points[0].time)} ${y(0)}Z` }));
        parts.push(s("path", { class: `series s-${lines[at].kind}`, d: line }));
      });
    }, `${words} now`);
  }
  return { element: h("figure", { class: "figure" }, frame.box, lines.length > 1 ? legend(lines) : null), update };
}

/** A histogram; there is one more count than there are bounds. */
export function histogram(title, format) {
  const drawing = s("svg", { role: "img", height: HEIGHT, "aria-label": title });
  const box = h("div", { class: "chart" }, drawing);
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
export function spark(cell, points) {
  const most = Math.max(...points.map((one) => one.value ?? 0), 1e-9);
  const [from, to] = [points[0]?.time ?? 0, points[points.length - 1]?.time ?? 1];
  const x = (time) => ((time - from) / Math.max(1, to - from)) * 96;
  const y = (value) => 22 - 20 * (value / most);
  let line = cell.querySelector("path");
  if (!line) {
    line = s("path");
    cell.replaceChildren(s("svg", { class: "spark", viewBox: "0 0 96 24", preserveAspectRatio: "none", "aria-hidden": "true" }, line));
  }
  line.setAttribute("d", points.length > 1 ? path(points, x, y) : "M0 22L96 22");
}
